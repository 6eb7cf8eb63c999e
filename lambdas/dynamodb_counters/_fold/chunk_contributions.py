"""Contributions of the events of a chunk by columns, which is several times faster than event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

from dynamodb_counters._declarations import Aggregate, Count, Sum
from dynamodb_counters._fold.contributions import SHORT, Contribution
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._items.chunks import Chunk
from dynamodb_counters._items.conditions import is_plain
from dynamodb_counters._items.conversions import Number
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS

ByColumns: TypeAlias = Callable[[Chunk], list[Contribution] | None]
"""All that a chunk contributes; None if its events must be looked at one by one."""


def compile_columns(layout: ItemLayout, declaration: Aggregate) -> ByColumns | None:
    """None for a declaration that has more to look at than whole columns of plain attributes."""
    fields, measures = declaration.fields, declaration.measures
    if declaration.where is not None or not all(map(is_plain, fields)):
        return None
    counts = [name for name, measure in measures.items() if isinstance(measure, Count)]
    sums = {name: measure for name, measure in measures.items() if isinstance(measure, Sum)}
    if len(counts) + len(sums) < len(measures) or any("." in measure.attribute for measure in sums.values()):
        return None

    def contribute(chunk: Chunk) -> list[Contribution] | None:
        groups = _groups(chunk, fields)
        added = {name: _numbers(chunk, measure) for name, measure in sums.items()}
        if groups is None or chunk.signs or None in added.values():
            return None
        totals = {name: _total(groups, numbers) for name, numbers in added.items() if numbers is not None}
        touched = Counter(groups if counts else (group for total in totals.values() for group in total))
        return [
            (layout, group, (*[(c, rows) for c in counts], *[(s, t[group]) for s, t in totals.items() if group in t]))
            for group, rows in touched.items()
        ]

    return contribute


def _groups(chunk: Chunk, fields: tuple[str, ...]) -> list[GroupKey] | None:
    """The group of each row, unless a text is missing, no string or long."""
    columns: list[Iterable[str]] = []
    longest = 0
    for field in fields:
        kind, cells = chunk.columns.get(field, ("", ()))
        if kind != "S" or None in cells:
            return None
        longest += max(map(len, cells))
        columns.append(cells)
    if longest > SHORT:
        return None
    return list(zip(*columns, strict=True)) if columns else [()] * chunk.rows


def _numbers(chunk: Chunk, measure: Sum) -> list[int] | None:
    """The number of each row, unless one is missing, no whole number or capped."""
    kind, cells = chunk.columns.get(measure.attribute, ("", ()))
    if kind != "N" or measure.cap is not None or None in cells or max(map(len, cells)) > MAX_NUMBER_DIGITS:
        return None
    try:
        return list(map(int, cells))
    except ValueError:
        return None


def _total(groups: Iterable[GroupKey], numbers: Iterable[int]) -> dict[GroupKey, Number]:
    totals: dict[GroupKey, Number] = {}
    for group, number in zip(groups, numbers, strict=True):
        if number:  # Zero touches no group.
            totals[group] = totals.get(group, 0) + number
    return totals
