"""Numbers that groups have counted, and what is certain where sources that may have expired show others. Pure.

An expired item leaves a count that keeps it greater than its sources, never smaller. So what a count lacks is lost for
certain, and what a group has that counts nothing expired is wrong for certain. A score equals its measure, whichever
of the two is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._assumptions import GROUP_KEPT, WIDE_MARGIN
from dynamodb_counters._declarations import Aggregate, Average, Count, Declaration, Histogram, Window
from dynamodb_counters._fold.expiry import begin_of
from dynamodb_counters._fold.item_layout import GroupKey, closing_times
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import Number, parse_number
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._items.table_schema import SCORE, TALLY_PREFIX
from dynamodb_counters._timeline.tiers import BY_LETTER, TOTAL

Verdict: TypeAlias = Literal["drift", "unknown", "waiting"]

EXPIRED: Final = "events may have expired that it still counts"
AT_LEAST: Final = "at least so much: events may have expired that it counted, too"

WAITS: Final = ("1 entry of the quarantine waits for it", "{:,} entries of the quarantine wait for it")

Judged: TypeAlias = tuple[Verdict, str, dict[str, Number]]
"""A verdict, its reason, and what is missing by attribute."""


def judge(
    declaration: Declaration, group: GroupKey, missing: Mapping[str, Number], until: float | None, *, is_gone: bool
) -> Iterator[Judged]:
    """Judge what a group lacks: it may count what expired, if it began before `until`; if it `is_gone`, has no item."""
    begin = begin_of(declaration, group)
    if until is None or declaration.on_expiry == "subtract" or (begin is not None and begin >= until):
        yield "drift", "", dict(missing)
        return
    found, measure = dict(missing), ranked_by(declaration)
    # How much the score differs from the measure that it repeats.
    apart = 0 if measure is None else missing.get(SCORE, 0) - missing.get(measure, 0)
    if apart:
        found[SCORE] = found.get(SCORE, 0) - apart
    lost = {name: number for name, number in found.items() if is_gone or (number > 0 and _grows(declaration, name))}
    certain = {**lost, SCORE: lost.get(SCORE, 0) + apart} if apart else lost
    if certain := {name: number for name, number in certain.items() if number}:
        yield "drift", AT_LEAST if lost else "", certain
    if rest := {name: number for name, number in found.items() if number and name not in lost}:
        yield "unknown", EXPIRED, rest


def _grows(declaration: Declaration, attribute: str) -> bool:
    """Whether no item adds less than nothing to an attribute."""
    if isinstance(declaration, Window):
        return isinstance(declaration.measure, Count)
    if attribute == SCORE:
        return declaration.ranking is not None and _grows(declaration, declaration.ranking.measure)
    for name, measure in declaration.measures.items():
        held = measure._attributes(name)
        if attribute in held:
            return isinstance(measure, Count | Histogram) or (isinstance(measure, Average) and attribute == held[1])
    return False


def counts_gone(declaration: Declaration, group: GroupKey, now: float) -> bool:
    """Whether a group counts groups of a source with a retention that may be deleted."""
    source = declaration.source
    if not isinstance(source, Aggregate) or source.retention is None or declaration.on_expiry != "keep":
        return False
    if not any(map(tier_of, declaration.fields)):
        return False
    return closing_times(declaration.fields, source.retention)(group) + GROUP_KEPT - WIDE_MARGIN <= now


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
    ranking = declaration.ranking if isinstance(declaration, Aggregate) else None
    return None if ranking is None else ranking.measure


def _number(item: Mapping[str, Any], name: str) -> Number:
    try:
        return parse_number(item[name]["N"])
    except (LookupError, ValueError):
        return 0
