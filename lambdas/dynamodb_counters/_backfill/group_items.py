"""The numbers that the items of a group hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._fold.item_layout import GroupKey
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import Number, parse_number
from dynamodb_counters._items.table_schema import SCORE, TALLY_PREFIX
from dynamodb_counters._timeline.tiers import BY_LETTER, TOTAL


def counted(declaration: Declaration, group: GroupKey, items: list[Image]) -> dict[str, Number]:
    """Numbers that a group's items have counted without their tallies, by attribute."""
    names: Iterable[str] = declaration._attributes
    if isinstance(declaration, Window):
        slots = (TOTAL, *BY_LETTER[group[-2]].slots)
        names = [attribute for slot in slots for attribute in declaration.measure._attributes(slot)]
    sums: dict[str, Number] = {}
    for item in items:
        for name in names:
            sums[name] = sums.get(name, 0) + _number(item, name) - _number(item, TALLY_PREFIX + name)
        if (measure := ranked_by(declaration)) is not None:
            # It has no tally of its own: it has its measure's in it.
            sums[SCORE] = sums.get(SCORE, 0) + _number(item, SCORE) - _number(item, TALLY_PREFIX + measure)
    return {name: number for name, number in sums.items() if number}


def tally_of(item: Image) -> dict[str, Number]:
    """The tally that an item holds, by attribute."""
    held = {name.removeprefix(TALLY_PREFIX): _number(item, name) for name in item if name.startswith(TALLY_PREFIX)}
    return {name: number for name, number in held.items() if number}


def shown(declaration: Declaration, numbers: Mapping[str, Number]) -> dict[str, Number]:
    """The part of some numbers that sources show: each without its tally."""
    found = {
        name: number - numbers.get(TALLY_PREFIX + name, 0)
        for name, number in {**{name.removeprefix(TALLY_PREFIX): 0 for name in numbers}, **numbers}.items()
        if not name.startswith(TALLY_PREFIX)
    }
    measure = ranked_by(declaration)
    return {**found, SCORE: found[measure]} if measure in found else found


def ranked_by(declaration: Declaration) -> str | None:
    """The measure that a declaration ranks its groups by."""
    ranking = declaration.ranking if isinstance(declaration, Aggregate) else None
    return None if ranking is None else ranking.measure


def _number(item: Mapping[str, Any], name: str) -> Number:
    try:
        return parse_number(item[name]["N"])
    except (LookupError, ValueError):
        return 0
