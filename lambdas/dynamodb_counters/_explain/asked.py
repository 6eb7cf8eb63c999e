"""Which groups are asked for, and which reads reach what they count: Queries where keys determine it, else a Scan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from dynamodb_counters._backfill.feeds import Source
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Packed, Window
from dynamodb_counters._declarations.aggregates import WRITE_SHARD_FIELD
from dynamodb_counters._fold.expiry import begin_of
from dynamodb_counters._fold.foreign_items import typed
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_items, group_of_item
from dynamodb_counters._items.bookkeeping import READ_UNIT_BYTES
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, event_seconds
from dynamodb_counters._items.derived_fields import parts_of, tier_of
from dynamodb_counters._items.key_templates import KeyTemplate
from dynamodb_counters._items.table_schema import PAGE_PREFIX, TYPE
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._reads.event_reads import chunk_range, parts_of_wanted
from dynamodb_counters._reads.group_reads import sort_key_range
from dynamodb_counters._reads.table_reads import query, read_items
from dynamodb_counters._reads.window_counts import add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import FIRST_SECOND, LAST_SECOND, TOTAL, Interval, Span, plan_queries, utc
from dynamodb_counters.errors import InvalidArgumentError

_Range: TypeAlias = tuple[str, tuple[str, str]]
"""A partition key, the first and the last sort key."""

_MOST_BUCKETS: Final = 100_000
_MOST_SURE: Final = 200
"""Characters of a sort key that no hash has replaced, however long the key was."""


@dataclass(frozen=True)
class Asked:
    """Groups of a declaration whose fields have these texts; of an interval, if there is one."""

    declaration: Declaration
    texts: Mapping[str, str]
    interval: Interval | None = None
    layout: ItemLayout = field(init=False)
    spans: Mapping[tuple[str, int], Span] = field(init=False)
    """For a window, which part of which bucket counts a moment."""

    def __post_init__(self) -> None:
        declared, spans = self.declaration, list[Span]()
        if isinstance(declared, Window):
            if self.interval is None:
                allowed = f"a start and an end, as {declared.name!r} counts over time"
                raise InvalidArgumentError("start", None, allowed)
            spans = plan_queries(declared._kept_tiers, self.interval)
        if sum(last + 1 - first for first, last in (one.buckets for one in spans)) > _MOST_BUCKETS:
            allowed = f"a span of at most {_MOST_BUCKETS:,} buckets of {declared.name!r}"
            raise InvalidArgumentError("end", None if self.interval is None else utc(self.interval.end), allowed)
        if missing := sorted({*declared._pk_template.fields} & {*declared.fields} - self.texts.keys()):
            raise InvalidArgumentError("values", dict(self.texts), f"values for {', '.join(missing)}")
        each = {(one.tier.letter, at): one for one in spans for at in range(one.buckets[0], one.buckets[1] + 1)}
        object.__setattr__(self, "spans", each)
        object.__setattr__(self, "layout", ItemLayout(declared))

    def holds(self, group: GroupKey) -> bool:
        texts = zip(self.declaration.fields, group, strict=False)
        if any(self.texts.get(name, text) != text for name, text in texts):
            return False
        if self.spans or self.interval is None:
            return not self.spans or group[-2:] in self.spans
        begin = begin_of(self.declaration, group)
        return begin is None or self.interval.start <= begin < self.interval.end

    def counted(self, group: GroupKey, numbers: Mapping[str, Number]) -> dict[str, Number]:
        """The part of a group's numbers that is asked for."""
        if self.spans:
            numbers = {TOTAL: add_up(self.spans[group[-2:]], [(group[-1], numbers)])}
        return {name: number for name, number in numbers.items() if number}

    def read(self, table: Table) -> dict[GroupKey, list[Image]]:
        """The groups, each with its items; of those that are not named, the ones that are there."""
        declared, found = self.declaration, dict[GroupKey, list[Image]]()
        if self.spans or self.texts.keys() >= {*declared.fields}:
            fixed = tuple(self.texts[name] for name in declared.fields)
            groups: list[GroupKey] = [(*fixed, *place) for place in self.spans] or [fixed]
            items = read_items(table, [(self.layout, group) for group in groups], consistent=True)
            return dict(zip(groups, items, strict=True))
        ranges = group_ranges(declared, self.texts)
        for item in chain.from_iterable(query(table, *one, consistent=True) for one in ranges):
            for one in group_items(declared, item) if item.get(TYPE, {}).get("S") == declared.name else ():
                if (group := group_of_item(declared, one)) is not None and self.holds(group):
                    found.setdefault(group, []).append(one)
        return found

    @property
    def time(self) -> str | None:
        """The attribute of the source whose time the groups are of."""
        if isinstance(self.declaration, Window):
            return self.declaration.time
        return next((parts_of(name)[0] for name in self.declaration.fields if tier_of(name)), None)

    def span(self, time: str) -> tuple[float, float]:
        """In which times of an attribute all lies that counts in the groups."""
        begin, end = FIRST_SECOND, LAST_SECOND
        if time in self.texts:
            moment = event_seconds(typed(self.texts[time]))
            return moment, moment + 1
        if time == self.time and self.interval is not None:
            begin, end = self.interval.start, self.interval.end
        for name in self.declaration.fields:
            tier = tier_of(name)
            if tier is not None and parts_of(name)[0] == time:
                text = self.texts.get(name)
                # Groups that begin before the end go on beyond it.
                last = tier.locate(end - 1)[0] if text is None else tier.parse(text)
                begin, end = begin if text is None else max(begin, tier.start(last)), tier.end(last)
        return begin, min(LAST_SECOND, end)


@dataclass(frozen=True, slots=True)
class Reach:
    """The Queries that reach what groups count, at a read unit per 4 KB; or a Scan, and how many units it takes."""

    source: Source
    ranges: Sequence[_Range]
    units: int = 0

    def items(self) -> Iterator[Image]:
        table = self.source.table
        for pk, sort_keys in self.ranges:
            yield from query(table, pk, sort_keys, consistent=True)
        if not self.ranges:
            for page in table.client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True):
                yield from page["Items"]


def reach_of(asked: Asked, scanned: Source, *others: Source) -> Reach:
    source = asked.declaration.source
    plain = {name: text for name, text in asked.texts.items() if parts_of(name) == (name, "", None)}
    ranges: list[_Range] | None = None
    if isinstance(source, Aggregate):
        ranges = group_ranges(source, plain) if plain.keys() >= {*source._pk_template.fields} else None
    elif isinstance(source, Event):
        if source.packed is None:
            ranges = _in_partition(plain, source._pk_template, source._sk_template)
        else:
            ranges = _in_chunks(source, source.packed, asked, scanned.table, plain)
    elif others:
        [scanned] = others
    elif isinstance(source, Items) and source.pk is not None:
        ranges = _in_partition(plain, *(template for _, template in source._templates))
    if ranges is not None:
        return Reach(scanned, ranges)
    described: Any = scanned.table.client.describe_table(TableName=scanned.table.name)["Table"]
    return Reach(scanned, (), math.ceil(described.get("TableSizeBytes", 0) / READ_UNIT_BYTES))


def group_ranges(declared: Declaration, texts: Mapping[str, str]) -> list[_Range]:
    """Where the groups of a partition lie, or their pages."""
    template = declared._pk_template
    if isinstance(declared, Aggregate) and not declared.pages:
        shards = [{**texts, WRITE_SHARD_FIELD: str(shard)} for shard in range(declared.write_shards)]
        return [(template.render(one), sort_key_range([declared])) for one in shards]
    pk = template.render(texts)
    prefix = f"{PAGE_PREFIX}{declared.name}#"
    return [(f"{pk}#~{digit:x}", (prefix, prefix + LAST_CHARACTER)) for digit in range(16)]


def _in_partition(plain: Mapping[str, str], pk: KeyTemplate, *sk: KeyTemplate) -> list[_Range] | None:
    """Where items of their own lie, if their partition is known."""
    if not plain.keys() >= {*pk.fields}:
        return None
    first = "".join(each.begin(plain) for each in sk)[:_MOST_SURE]
    return [(pk.render(plain), (first or " ", first + LAST_CHARACTER))]


def _in_chunks(
    event: Event, packed: Packed, asked: Asked, table: Table, plain: Mapping[str, str]
) -> list[_Range] | None:
    """Where chunks lie; None where a tenant is unknown."""
    Layouts.of_table(table).require(event)
    if packed.tenant not in (None, *plain):
        return None
    parts = parts_of_wanted(event, packed, plain)
    return [chunk_range(event.name, part, packed._bucket_seconds, asked.span(packed.time)) for part in parts]
