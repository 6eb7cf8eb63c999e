"""Explanations: of each declaration, the lines that make one of its numbers, as `counters explain` finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, localcontext
from typing import Any, Final

from demo.terminal import printable
from dynamodb_counters import Counters
from dynamodb_counters._backfill.feeds import feeds_of
from dynamodb_counters._control.control import read_control, read_declarations
from dynamodb_counters._declarations import Declaration, Window
from dynamodb_counters._declarations.generations import base_name, read_name
from dynamodb_counters._explain.explainer import make_explainer
from dynamodb_counters._explain.lines import Explanation, added
from dynamodb_counters._fold.expiry import begin_of
from dynamodb_counters._fold.item_layout import GroupKey, group_items, group_of_item
from dynamodb_counters._items.decimals import EXACT
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR, utc

_QUIET_PAGES: Final = 3
"""All has been counted before: nothing is on its way to the stream."""


@dataclass(frozen=True)
class Explained:
    """Why a group of a declaration counts what it counts."""

    name: str
    group: str
    numbers: Mapping[str, Any]
    sums: Mapping[str, Any]
    lines: int
    difference: Mapping[str, Any]

    @classmethod
    def of(cls, declared: Declaration, group: GroupKey, found: Explanation) -> Explained:
        with localcontext(EXACT):
            sums = added(line.adds for line in found.lines())
        lines = sum(1 for _ in found.lines())
        text = printable(" ".join(group) or "all")
        return cls(base_name(declared.name), text, found.numbers, sums, lines, found.difference)

    @property
    def is_exact(self) -> bool:
        return not self.difference and self.sums == self.numbers and bool(self.numbers)

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={number}" for name, number in self.numbers.items()) or "nothing"
        rest = "" if self.is_exact else f"; the lines add up to {dict(self.sums)}, unexplained: {dict(self.difference)}"
        return f"{self.name} of {self.group}: {numbers}, by {self.lines:,} lines{rest}"


def explain_each(counters: Counters, streams: Any) -> Iterator[Explained]:
    """Explain the largest group of each declaration that readers use."""
    table = counters._table  # noqa: SLF001 - its items, which show which groups there are
    control = read_control(table)
    folded = read_declarations(table, control.history.last.deployment) if control.history else None
    declared = {one.name: one for one in folded or () if one.name == read_name(base_name(one.name), control.reads)}
    feeds = feeds_of(table, streams)
    feeds = feeds._replace(stream=replace(feeds.stream, quiet_pages=_QUIET_PAGES))
    largest = _largest(table, declared)
    for name in sorted(declared.keys() - largest.keys()):
        yield Explained(base_name(name), "no group", {}, {}, 0, {})
    for name, group in sorted(largest.items()):
        values = dict(zip(declared[name].fields, group, strict=False))
        explainer = make_explainer(table, feeds, declared[name], values, _ends(declared[name], group))
        yield Explained.of(declared[name], group[: len(values)], explainer.explained())


def _largest(table: Table, declared: Mapping[str, Declaration]) -> dict[str, GroupKey]:
    """By declaration, the group with the highest number."""
    largest: dict[str, tuple[Decimal, GroupKey]] = {}
    for page in table.client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True):
        for item in page["Items"]:
            one = declared.get(item.get(TYPE, {}).get("S", ""))
            for held in group_items(one, item) if one is not None else ():
                numbers = [Decimal(value["N"]) for name, value in held.items() if _is_measure(name, value)]
                group = group_of_item(one, held) if one is not None else None
                if one is not None and group is not None and numbers:
                    found = max(numbers), group
                    largest[one.name] = max(largest.get(one.name, found), found)
    return {name: group for name, (_, group) in largest.items()}


def _ends(declared: Declaration, group: GroupKey) -> tuple[datetime | None, datetime | None]:
    """For a window, the first hour of the group's bucket."""
    begin = begin_of(declared, group) if isinstance(declared, Window) else None
    return (None, None) if begin is None else (utc(begin), utc(begin + max(HOUR, declared._unit)))


def _is_measure(name: str, value: Mapping[str, Any]) -> bool:
    return "N" in value and not name.startswith("_") and name != "ttl"
