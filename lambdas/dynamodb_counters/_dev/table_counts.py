"""The counts of a small table as they change: what its groups count, and how much its windows hold."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, TypeAlias

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._declarations.composites import MEMBERS
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.item_layout import group_items
from dynamodb_counters._items.conversions import parse_number, whole
from dynamodb_counters._items.table_schema import PK, SK, TYPE
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.errors import UnparsableKeyError

MOST_ITEMS: Final = 5_000

Counts: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], Mapping[str, Any]]
"""Measures by the name of what counts and its group."""


class TableCounts:
    """The counts of a table that an emulator holds; it is scanned, so beyond some thousand items it is left alone."""

    def __init__(self, table: str, client: Any, declarations: tuple[Declaration, ...]) -> None:
        self.table = table
        self.is_too_large = False
        self._client = client
        self._known: Counts = {}
        self.declared(declarations)

    def changed(self) -> Counts:
        pages = self._client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        scanned = (item for page in pages for item in page["Items"])
        items = [] if self.is_too_large else list(islice(scanned, MOST_ITEMS + 1))
        self.is_too_large |= len(items) > MOST_ITEMS
        if self.is_too_large:
            return {}
        now = {**self._groups(items), **self._windows(items)}
        found = {group: measures for group, measures in now.items() if self._known.get(group) != measures}
        self._known = now
        return found

    def declared(self, declarations: tuple[Declaration, ...]) -> None:
        """Count by other declarations from now on."""
        self._declared = {one.name: one for one in declarations if not one.name.endswith(MEMBERS)}

    def _groups(self, items: list[Mapping[str, Any]]) -> Counts:
        wanted: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Aggregate, Mapping[str, str]]] = {}
        for item in items:
            declared = self._declaration(item)
            if not isinstance(declared, Aggregate):
                continue
            for one in group_items(declared, item):
                with suppress(UnparsableKeyError):
                    if (values := values_of(declared, one)) is not None:
                        wanted[declared.name, tuple(values.items())] = declared, values
        # Through the library: what readers see, write shards added up.
        counters = Counters(self.table, client=self._client)
        found = counters.get_many(wanted.values(), consistent=True) if wanted else []
        return {group: read.measures for group, read in zip(wanted, found, strict=True)}

    def _windows(self, items: list[Mapping[str, Any]]) -> Counts:
        totals: Counts = {}
        for item in items:
            declared = self._declaration(item)
            if not isinstance(declared, Window) or TOTAL not in item:
                continue
            # Each event is in a bucket of every tier: the coarsest ones hold it once.
            if f"WINDOW#{item[TYPE]['S']}#{declared._kept_tiers[-1].letter}#" in item[SK]["S"]:
                with suppress(UnparsableKeyError):
                    group = declared.name, tuple(declared._pk_template.parse(item[PK]["S"]).items())
                    before = totals.get(group, {TOTAL: 0})[TOTAL]
                    totals[group] = {TOTAL: whole(before + parse_number(item[TOTAL]["N"]))}
        return totals

    def _declaration(self, item: Mapping[str, Any]) -> Declaration | None:
        return self._declared.get(item.get(TYPE, {}).get("S", ""))
