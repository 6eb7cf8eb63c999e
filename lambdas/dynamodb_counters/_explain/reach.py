"""Which groups are asked for, and the reads that reach what they count: Queries by key, or else a Scan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from dynamodb_counters._backfill.feeds import Source
from dynamodb_counters._control.run_items import Held
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Window
from dynamodb_counters._declarations.aggregates import WRITE_SHARD_FIELD
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.foreign_items import typed
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_items, group_of_item
from dynamodb_counters._items.bookkeeping import READ_UNIT_BYTES
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, event_seconds
from dynamodb_counters._items.derived_fields import parts_of, tier_of
from dynamodb_counters._items.key_templates import KeyTemplate
from dynamodb_counters._items.table_schema import CHUNK, PACK_SUFFIX, PAGE_PREFIX, PK, SK, TYPE
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._reads.event_reads import chunk_range, parts_of_wanted
from dynamodb_counters._reads.group_reads import sort_key_range
from dynamodb_counters._reads.table_reads import query, read_items
from dynamodb_counters._reads.window_counts import add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import (
    BY_LETTER,
    FIRST_SECOND,
    LAST_SECOND,
    TOTAL,
    Interval,
    Span,
    plan_queries,
    utc,
)
from dynamodb_counters.errors import InvalidArgumentError

_Range: TypeAlias = tuple[str, tuple[str, str]]
"""A partition key, the first and the last sort key."""

_MOST_BUCKETS: Final = 100_000
_MOST_SURE: Final = 200
"""Characters of a sort key that no hash has replaced, however long the key was."""
_SIGNS: Final = {"+": 1, "-": -1}


@dataclass(frozen=True)
class Question:
    """Groups of a declaration whose fields have these texts; of an interval, if it is a window."""

    declaration: Declaration
    texts: Mapping[str, str]
    interval: Interval | None = None
    spans: Mapping[tuple[str, int], Span] = field(init=False)
    """For a window, which part of which bucket counts."""

    def __post_init__(self) -> None:
        declared, spans = self.declaration, list[Span]()
        if isinstance(declared, Window):
            if self.interval is None:
                allowed = f"a start and an end, as {declared.name!r} counts over time"
                raise InvalidArgumentError("start", None, allowed)
            spans = plan_queries(declared._kept_tiers, self.interval)
            if sum(last + 1 - first for first, last in (span.buckets for span in spans)) > _MOST_BUCKETS:
                allowed = f"a span of at most {_MOST_BUCKETS:,} buckets of {declared.name!r}"
                raise InvalidArgumentError("end", utc(self.interval.end), allowed)
        if missing := sorted({*declared._pk_template.fields} & {*declared.fields} - self.texts.keys()):
            raise InvalidArgumentError("values", dict(self.texts), f"values for {', '.join(missing)}")
        buckets = [(span, at) for span in spans for at in range(span.buckets[0], span.buckets[1] + 1)]
        object.__setattr__(self, "spans", {(span.tier.letter, at): span for span, at in buckets})

    def holds(self, group: GroupKey) -> bool:
        texts = zip(self.declaration.fields, group, strict=False)
        is_asked = all(self.texts.get(name, text) == text for name, text in texts)
        return is_asked and (not self.spans or group[-2:] in self.spans)

    def part(self, group: GroupKey, numbers: Mapping[str, Number]) -> dict[str, Number]:
        """Return the part of a group's numbers that is asked for."""
        if self.spans:
            numbers = {TOTAL: add_up(self.spans[group[-2:]], [(group[-1], numbers)])}
        return {name: number for name, number in numbers.items() if number}

    def read(self, table: Table) -> dict[GroupKey, list[Image]]:
        """Read the groups, each with its items; of those that are not named, the ones that are there."""
        declared, groups = self.declaration, dict[GroupKey, list[Image]]()
        if self.spans or self.texts.keys() >= {*declared.fields}:
            fixed = tuple(self.texts[name] for name in declared.fields)
            keys: list[GroupKey] = [(*fixed, *bucket) for bucket in self.spans] or [fixed]
            layout = ItemLayout(declared)
            return dict(zip(keys, read_items(table, [(layout, key) for key in keys], consistent=True), strict=True))
        ranges = _group_ranges(declared, self.texts)
        for item in chain.from_iterable(query(table, *one, consistent=True) for one in ranges):
            for one in group_items(declared, item) if item.get(TYPE, {}).get("S") == declared.name else ():
                if (group := group_of_item(declared, one)) is not None and self.holds(group):
                    groups.setdefault(group, []).append(one)
        return groups

    def name(self, group: GroupKey) -> dict[str, str]:
        """Return what tells a group from others that are asked for, as a reader calls it."""
        return {name: text for name, text in shown(self.declaration, group).items() if name not in self.texts}

    def times(self, attribute: str) -> tuple[float, float]:
        """Return in which times of an attribute all lies that counts in the groups."""
        begin, end = FIRST_SECOND, LAST_SECOND
        if attribute in self.texts:
            begin = event_seconds(typed(self.texts[attribute]))
            return begin, begin + 1
        if isinstance(self.declaration, Window) and attribute == self.declaration.time and self.interval is not None:
            begin, end = self.interval.start, self.interval.end
        for name, text in self.texts.items():
            tier = tier_of(name)
            if tier is not None and parts_of(name)[0] == attribute:
                begin, end = max(begin, tier.start(tier.parse(text))), min(end, tier.end(tier.parse(text)))
        return begin, end


def shown(declared: Declaration, group: GroupKey) -> dict[str, str]:
    """Return the fields of a group that a reader knows; for a window, the bucket by its unit."""
    texts = dict(zip(declared.fields, group, strict=False))
    if isinstance(declared, Window):
        tier = BY_LETTER[group[-2]]
        return {**texts, tier.name: tier.text(group[-1])}
    return {name: texts[name] for name in group_fields(declared) if name in texts}


@dataclass(frozen=True, slots=True)
class Reach:
    """The Queries that reach what groups count, at a read unit per 4 KB; or a Scan, and how many units it takes."""

    source: Source
    ranges: Sequence[_Range]
    units: int = 0

    @classmethod
    def of(cls, question: Question, table: Table, source_arn: str = "") -> Reach:
        source = question.declaration.source
        plain = {name: text for name, text in question.texts.items() if parts_of(name) == (name, "", None)}
        scanned = Source(table, (PK, SK), is_foreign=False if source_arn else None)
        ranges: list[_Range] | None = None
        if isinstance(source, Aggregate):
            ranges = _group_ranges(source, plain) if plain.keys() >= {*source._pk_template.fields} else None
        elif isinstance(source, Event) and source.packed is not None:
            Layouts.of_table(table).require(source)
            if source.packed.tenant in (None, *plain):
                times = question.times(source.packed.time)
                parts = parts_of_wanted(source, source.packed, plain)
                ranges = [chunk_range(source.name, part, source.packed._bucket_seconds, times) for part in parts]
        elif isinstance(source, Event):
            ranges = _in_partition(plain, source._pk_template, source._sk_template)
        elif source_arn:
            described = table.client.describe_table(TableName=source_arn)["Table"]
            keys = tuple(key["AttributeName"] for key in described["KeySchema"])
            scanned = Source(Table(source_arn, table.client), keys, is_foreign=True)
        elif isinstance(source, Items) and source.pk is not None:
            ranges = _in_partition(plain, *(template for _, template in source._templates))
        if ranges is not None:
            return cls(scanned, ranges)
        size = scanned.table.client.describe_table(TableName=scanned.table.name)["Table"].get("TableSizeBytes", 0)
        return cls(scanned, (), math.ceil(size / READ_UNIT_BYTES))

    def rows(self, declared: Declaration) -> Iterator[tuple[Image, int, Held]]:
        """Yield the events, items or groups, each with its sign: a row of a chunk may take one back."""
        source: Any = declared.source
        is_whole = not isinstance(source, Aggregate) or source._longest
        pages = None if is_whole else ItemLayout(source).pages
        for item in self._items():
            held = Held({name: item[name] for name in self.source.key_names}, self.source.is_foreign, "")
            # What cannot be read, the fold leaves to the quarantine.
            with suppress(*UNFOLDABLE):
                if isinstance(source, Event) and item.get(TYPE, {}).get("S") == source.name + PACK_SUFFIX:
                    for row in decode_chunk(item[CHUNK]).all_rows():
                        if row.sign in _SIGNS:
                            yield {**row.values, TYPE: {"S": source.name}}, _SIGNS[row.sign], held
                elif pages is None:
                    yield item, 1, held
                elif item.get(TYPE, {}).get("S") == source.name:
                    for one in pages.groups(item):
                        yield one, 1, replace(held, keys={PK: one[PK], SK: one[SK]})

    def _items(self) -> Iterator[Image]:
        table = self.source.table
        for pk, sort_keys in self.ranges:
            yield from query(table, pk, sort_keys, consistent=True)
        if not self.ranges:
            for page in table.client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True):
                yield from page["Items"]


def _group_ranges(declared: Declaration, texts: Mapping[str, str]) -> list[_Range]:
    """Return where the groups of a partition lie, or their pages."""
    template = declared._pk_template
    if isinstance(declared, Aggregate) and not declared.pages:
        shards = [{**texts, WRITE_SHARD_FIELD: str(shard)} for shard in range(declared.write_shards)]
        return [(template.render(one), sort_key_range([declared])) for one in shards]
    prefix = f"{PAGE_PREFIX}{declared.name}#"
    return [(f"{template.render(texts)}#~{digit:x}", (prefix, prefix + LAST_CHARACTER)) for digit in range(16)]


def _in_partition(plain: Mapping[str, str], pk: KeyTemplate, *sk: KeyTemplate) -> list[_Range] | None:
    """Return where items of their own lie, if their partition is known."""
    if not plain.keys() >= {*pk.fields}:
        return None
    first = "".join(template.begin(plain) for template in sk)[:_MOST_SURE]
    return [(pk.render(plain), (first or " ", first + LAST_CHARACTER))]
