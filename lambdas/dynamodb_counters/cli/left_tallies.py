"""The groups whose tally a backfill would leave behind, for `counters diff --tallies`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dynamodb_counters._backfill.group_items import tally_of
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.effective import Merged
from dynamodb_counters._declarations.generations import base_name, generation, left_behind
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.stored_groups import group_of_item
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table


@dataclass(frozen=True, slots=True)
class LeftTally:
    """A group's item with a tally that has no place in the next generation."""

    name: str
    group: Mapping[str, str]
    tally: Mapping[str, Number]


def left_tallies(table: Table, found: Merged, reads: Mapping[str, int]) -> Iterator[LeftTally]:
    """Scan a table for them; `reads` has the generations that readers use."""
    by_type: dict[str, Declaration] = {}
    for name, change in found.changes.items():
        before, after = change.before, change.after
        if change.kind == "waits" and before is not None and after is not None and left_behind(after, before):
            before = generation(before, reads.get(name, 0))
            by_type[before.name] = before
    if not by_type:
        return
    for page in table.client.get_paginator("scan").paginate(TableName=table.name):
        for item in page["Items"]:
            declaration = by_type.get(item.get(TYPE, {}).get("S", ""))
            if declaration is None or not (tally := tally_of(item)):
                continue
            group = group_of_item(declaration, item)
            if group is not None:
                yield LeftTally(base_name(declaration.name), ItemLayout(declaration).values(group), tally)
