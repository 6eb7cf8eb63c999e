"""Which reads reach the sources of some groups, and their price: Queries where keys determine them, else a Scan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.scan import Source
from dynamodb_counters._declarations import Aggregate, Event, Items
from dynamodb_counters._erase.matching import scanned
from dynamodb_counters._explain.asked import Asked, group_images
from dynamodb_counters._items.chunks import LAST_PATH, MAX_NUMBER, chunk_key
from dynamodb_counters._items.escaping import LAST_CHARACTER, escape
from dynamodb_counters._items.key_templates import KeyTemplate
from dynamodb_counters._items.table_schema import ONCE_SUFFIX, PACK_SUFFIX, PK, SK
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._reads.event_reads import parts_of_wanted
from dynamodb_counters._reads.table_reads import Item, query
from dynamodb_counters._reads.time_ranges import Range, time_ranges
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import FIRST_SECOND, LAST_SECOND
from dynamodb_counters.errors import InvalidArgumentError

UNIT_BYTES: Final = 4096
"""Bytes of a strongly consistent read unit."""

_MOST_SURE: Final = 200
"""Characters of a sort key that no hash has replaced, however long the key was."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The reads of some groups' sources.

    Parameters
    ----------
    queries : int
        Queries, each at a read unit per 4 KB of what it finds; 0 if the table is scanned.
    units : int
        Read units of the Scan, by the size that DynamoDB last told.
    """

    queries: int
    units: int
    ranges: tuple[tuple[str, Range], ...]
    groups_of: tuple[Aggregate, Mapping[str, str]] | None
    scans: Source | None
    types: tuple[str, ...]

    @property
    def is_foreign(self) -> bool:
        return self.scans is not None and bool(self.scans.is_foreign)

    @property
    def key_names(self) -> tuple[str, ...]:
        return (PK, SK) if self.scans is None else self.scans.key_names

    def items(self, table: Table) -> Iterator[Item]:
        if self.groups_of is not None:
            yield from group_images(table, *self.groups_of)
        for pk, sort_keys in self.ranges:
            yield from query(table, pk, sort_keys, consistent=True)
        if self.scans is not None and self.types:
            yield from scanned(self.scans.table, *self.types)
        elif self.scans is not None:
            pages = self.scans.table.client.get_paginator("scan")
            for page in pages.paginate(TableName=self.scans.table.name, ConsistentRead=True):
                yield from page["Items"]


def reach_of(asked: Asked, table: Table, foreign: Source | None) -> Reach:
    source, texts = asked.declaration.source, asked.plain
    types: tuple[str, ...] = ()
    ranges: list[tuple[str, Range]] | None = None
    if isinstance(source, Aggregate):
        types = (source.name,)
        if texts.keys() >= set(source._pk_template.fields):
            return Reach(16 if source.pages else 1, 0, (), (source, texts), None, ())
    elif isinstance(source, Event):
        types = (source.name, source.name + ONCE_SUFFIX, source.name + PACK_SUFFIX)
        ranges = (
            _chunks(source, asked, table) if source.packed else _plain(asked, source._pk_template, source._sk_template)
        )
    elif foreign is None and source.pk is not None:
        templates = dict(source._templates)
        ranges = _plain(asked, templates["pk"], templates.get("sk"))
    if ranges is not None:
        return Reach(len(ranges), 0, tuple(ranges), None, None, ())
    scans = foreign if isinstance(source, Items) and foreign is not None else Source(table, (PK, SK))
    described: Any = scans.table.client.describe_table(TableName=scans.table.name)["Table"]
    return Reach(0, math.ceil(described.get("TableSizeBytes", 0) / UNIT_BYTES), (), None, scans, types)


def _plain(asked: Asked, pk: KeyTemplate, sk: KeyTemplate | None) -> list[tuple[str, Range]] | None:
    """The ranges of items of their own in one partition; None if it is unknown."""
    if not asked.plain.keys() >= set(pk.fields):
        return None
    ranges = [(" ", LAST_CHARACTER)] if sk is None else _sort_keys(asked, sk)
    return [(pk.render(asked.plain), (max(first, " "), last)) for first, last in ranges]


def _sort_keys(asked: Asked, sk: KeyTemplate) -> list[Range]:
    prefix = ""
    for literal, field in zip(sk._literals, sk.fields, strict=False):
        prefix += literal
        if len(prefix) > _MOST_SURE:
            return [(prefix[:_MOST_SURE], prefix[:_MOST_SURE] + LAST_CHARACTER)]
        if field not in asked.plain:
            span = asked.span() if field == asked.time() else None
            return time_ranges(prefix, *span) if span else [(prefix, prefix + LAST_CHARACTER)]
        prefix += escape(asked.plain[field])
    key = sk.render(asked.plain)
    return [(key, key)]


def _chunks(event: Event, asked: Asked, table: Table) -> list[tuple[str, Range]] | None:
    """The ranges of chunks, and of items from before the event was packed."""
    layouts = Layouts.of_table(table).held(event)
    ranges: list[tuple[str, Range]] = []
    if layouts[-1].since > -math.inf:
        before = _plain(asked, event._pk_template, event._sk_template)
        if before is None:
            return None
        ranges += before
    for layout in layouts:
        span = (asked.span() if asked.time() == layout.time else None) or (FIRST_SECOND, LAST_SECOND)
        begin, end = max(FIRST_SECOND, span[0]), min(LAST_SECOND, span[1])
        try:
            parts = list(parts_of_wanted(event, layout, asked.plain))
        except InvalidArgumentError:
            return None  # The chunks of each tenant have keys of their own.
        for part in parts:
            pk, first = chunk_key(event.name, part, int(begin // layout.bucket * layout.bucket), 0)
            _, last = chunk_key(
                event.name, part, int((end - 1) // layout.bucket * layout.bucket), MAX_NUMBER, LAST_PATH
            )
            ranges.append((pk, (first, last)))
    return ranges
