"""Which events there are; and why a number is what it is, see docs/explain.md."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import localcontext
from itertools import chain, groupby
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Direct, Event, Items, Packed, Window
from dynamodb_counters._declarations.aggregates import PARTITION_MARK
from dynamodb_counters._declarations.checks import require_attribute
from dynamodb_counters._declarations.composites import group_fields, require_declaration
from dynamodb_counters._declarations.groups import Given, given, group_key, require_values, with_below
from dynamodb_counters._declarations.sources import OURS, EventIdentity
from dynamodb_counters._fold.fold import folded_alone, sums_of
from dynamodb_counters._fold.layouts import ItemLayout, group_of_item
from dynamodb_counters._fold.plan import FOLD_ERRORS, Plan
from dynamodb_counters._items import conversions
from dynamodb_counters._items.chunks import MAX_NUMBER, chunk_bucket, chunk_key, decode_chunk
from dynamodb_counters._items.conditions import Image, reader, text_reader
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, event_seconds
from dynamodb_counters._items.keys import parts_of, tier_of
from dynamodb_counters._items.schema import CHUNK, ONCE_SUFFIX, PACK_SUFFIX, PAGE_PREFIX, SK, TTL, TYPE, is_reserved
from dynamodb_counters._reads import group_reads
from dynamodb_counters._reads.group_reads import Item, query, sort_key_range
from dynamodb_counters._reads.question import SPAN, Question, fields_of, require_order
from dynamodb_counters._reads.span_reads import WindowReads, add_up, read_spans
from dynamodb_counters._registry import Layouts, all_parts, part_of, read_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import FIRST_SECOND, LAST_SECOND, TOTAL, Span, seconds_of
from dynamodb_counters.errors import InvalidArgumentError

LINES: Final = 1000  # Most that an explanation holds, unless another number is asked for: all of them add up.
UNEXPLAINED: Final = (
    "changes meanwhile, records on their way, the quarantine, a backfill that is due, or events that expired, were "
    "erased or came too late may explain it: explain it again; `counters verify` tells which"
)

_SIGNS: Final = {"+": 1, "-": -1}
Timespan: TypeAlias = tuple[float, float]


class EventReads(WindowReads):
    def events(
        self,
        event: Event,
        values: Given = None,
        /,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        after: str = "",
        consistent: bool = False,
        **fields: object,
    ) -> Iterator[dict[str, Any]]:
        """Read accepted events back, page by page as they are asked for; retracted and replaced ones are left out.

        Each is a dict of Python values: numbers are int or Decimal, binary is bytes. Packed events come bucket by
        bucket, by one Query per part: a read unit per 8 KB of chunks. Of others, all of a partition are read in the
        order of their sort keys.

        Parameters
        ----------
        event : Event
        start, end : datetime, optional
            The times of packed events, from `start` to before `end`, both with a time zone. Default: any.
        after : str, optional
            For events that are not packed: only those whose sort keys come after this one. Default: all.
        values, **fields
            Attributes that the events have, as in `get`: at least all fields of `pk`; of a packed event, its tenant.
        """
        require_declaration(event, Event)
        group = event._canonical(given(values, fields))
        texts = {name: conversions.key_text(name, value) for name, value in group.items()}
        for name in texts:
            require_attribute("values", name)
        first = -math.inf if start is None else seconds_of("start", start)
        last = math.inf if end is None else seconds_of("end", end)
        require_order(first, last, end)
        require_values(fields_of(event, "events")[0], texts)
        listing, packed = _Listing(self._table, event, texts, consistent), event.packed
        for name, value in {"start": start, "end": end}.items() if packed is None else [("after", after)]:
            if value:
                allowed = "none: events that are not packed are listed by their sort keys, packed ones by their times"
                raise InvalidArgumentError(name, value, allowed)
        return listing.plain(after) if packed is None else listing.packed(packed, (first, last))


@dataclass(frozen=True)
class _Listing:
    table: Table
    event: Event
    texts: Mapping[str, str]
    consistent: bool

    def plain(self, after: str) -> Iterator[dict[str, Any]]:
        pk, now = self.event._pk_template.render(self.texts), self.table.clock()
        has_values, prefix = _filter(self.texts), self.event._sk_template.prefix
        if after > prefix + LAST_CHARACTER:
            return
        # No key is empty, a template's prefix may be.
        keys = max(prefix, after, " "), prefix + LAST_CHARACTER
        for item in query(self.table, pk, keys, consistent=self.consistent):
            is_live = TTL not in item or float(item[TTL]["N"]) > now
            is_event = item.get(TYPE, {}).get("S") in (self.event.name, self.event.name + ONCE_SUFFIX)
            if item[SK]["S"] > after and is_event and is_live and has_values(item):
                yield _plain(item)

    def packed(self, packed: Packed, span: Timespan) -> Iterator[dict[str, Any]]:
        retention, bucket, begin = self.event.retention, packed._bucket_seconds, span[0]
        if retention is not None:
            # An event that is refused as too late is read no more either, though it may not be deleted yet.
            begin = max(begin, (self.table.clock() - retention.total_seconds()) // bucket * bucket)
        streams, identity = self.chunks(packed, (begin, span[1])), EventIdentity(self.event)
        has_values, find_time = _filter(self.texts), reader(packed.time)
        for _, chunks in groupby(heapq.merge(*streams, key=_bucket), key=_bucket):
            live: dict[bytes, Image] = {}
            for item in chunks:
                # A row that is taken back has the values that were accepted, so rows of other events need no look.
                for row in filter(lambda row: has_values(row.values), decode_chunk(item[CHUNK]).all_rows()):
                    digest = identity.digest(row.values)
                    if row.sign == "+":
                        live[digest] = row.values
                    else:
                        live.pop(digest, None)
            times = ((event_seconds(find_time(image) or {}), image) for image in live.values())
            yield from (_plain(image) for seconds, image in times if span[0] <= seconds < span[1])

    def chunks(self, packed: Packed, span: Timespan) -> Iterator[Iterator[Item]]:
        Layouts.of_table(self.table).require(self.event)
        begin, finish, bucket = max(FIRST_SECOND, span[0]), min(LAST_SECOND, span[1]), packed._bucket_seconds
        image: Image = {name: {"S": text} for name, text in self.texts.items()}
        parts = [part_of(packed, b"", image)] if packed.partition_by in self.texts else all_parts(packed, image)
        for part in parts if begin < finish else ():
            pk, first = chunk_key(self.event.name, part, int(begin // bucket * bucket), 0)
            _, last = chunk_key(self.event.name, part, (math.ceil(finish) - 1) // bucket * bucket, MAX_NUMBER)
            yield query(self.table, pk, (first, last), consistent=self.consistent)


def _filter(texts: Mapping[str, str]) -> Callable[[Image], bool]:
    parts = [(reader(name, literal=True), text_reader(name, literal=True), text) for name, text in texts.items()]
    kinds = {"S", "N"}
    return lambda image: all(kinds & (find(image) or {}).keys() and read(image) == text for find, read, text in parts)


def _bucket(chunk: Item) -> str:
    return chunk_bucket(chunk[SK]["S"])


def _plain(image: Image) -> dict[str, Any]:
    return {name: conversions.plain_value(value) for name, value in image.items() if not is_reserved(name)}


@dataclass(frozen=True, slots=True)
class Line:
    """An event, item or group that counts.

    Parameters
    ----------
    adds : mapping of str to int or Decimal
        How much it adds to the number, by measure.
    key : mapping of str to str
        What identifies it.
    """

    adds: Mapping[str, Number]
    key: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a number is what it is: what its lines add up to, and what differs.

    Parameters
    ----------
    numbers : mapping of str to int or Decimal
        What the group counts, by measure; of a window, ``total``.
    lines : sequence of Line
        The first events, items or groups that count, by key.
    count : int
        How many there are in all.
    difference : mapping of str to int or Decimal
        The number less the sum of all lines, by measure.
    reason : str
        What may explain the difference; empty if there is none.
    """

    numbers: Mapping[str, Number]
    lines: Sequence[Line]
    count: int
    difference: Mapping[str, Number]
    reason: str = ""


def explain(table: Table, question: Question, *, scan: bool, limit: int = LINES) -> Explanation:
    """Explain the group that a question names as it is now; `scan` is whether the whole table may be read."""
    declared = question.declared
    if not isinstance(declared, Aggregate | Window) or isinstance(declared.source, Direct):
        allowed = "an Aggregate of events or items, Window, Distinct, Percentiles, Extremes, ActiveMembers or Ranks"
        raise InvalidArgumentError("declaration", getattr(declared, "name", declared), allowed)
    span = [name for name in SPAN if getattr(question, name) is not None]
    if span and not isinstance(declared, Window):
        raise InvalidArgumentError(span[0], str(getattr(question, span[0])), f"None: {declared.name!r} is no Window")
    texts, _ = group_reads.resolve_group(table, declared, question.values)
    question = replace(question, values=texts)
    source_table = read_registry(table).source
    is_foreign = isinstance(declared.source, Items) if source_table else None
    items = _selected(table, question)
    if items is None:
        source = Table(source_table, table.client) if source_table and is_foreign else table
        group_reads.require_scan(source, scan=scan)
        pages = source.client.get_paginator("scan").paginate(TableName=source.name, ConsistentRead=True)
        items = (item for page in pages for item in page["Items"])
    rest: Any = Counter()
    count = 0

    def lines() -> Iterator[Line]:
        nonlocal count
        for line in _lines(question, items, is_foreign):
            count += 1
            rest.subtract(line.adds)
            yield line

    with localcontext(conversions.EXACT):
        # Of none, it would read none.
        first = heapq.nsmallest(max(limit, 1), lines(), key=lambda line: [*line.key.values()])[:limit]
        numbers = _numbers(table, question)
        rest.update(numbers)
    difference = {name: number for name, number in rest.items() if number}
    return Explanation(numbers, first, count, difference, UNEXPLAINED if difference else "")


def _numbers(table: Table, question: Question) -> dict[str, Number]:
    """Return what a group counts now; of what only a read of its own understands, all items of the group together."""
    declared, texts = question.declared, question.values
    if isinstance(declared, Window):
        [window] = read_spans(table, declared, texts, [question.interval], consistent=True)
        return {TOTAL: window.count} if window.count else {}
    if group_fields(declared) == declared.fields:
        [items] = group_reads.read_items(table, [(ItemLayout(declared), group_key(declared, texts))], consistent=True)
    else:
        own = (item for item in _groups(table, declared, texts) if item.get(TYPE, {}).get("S") == declared.name)
        items = [group for item in own for group in ItemLayout(declared).images(item)]
    sums = {name: sum(conversions.read_number(item, name) for item in items) for name in declared._attributes}
    return {name: number for name, number in sums.items() if number}


def _lines(question: Question, items: Iterable[Item], is_foreign: bool | None) -> Iterator[Line]:
    declared, texts = question.declared, question.values
    # When an item came is unknown: what it counted before its group was over, it counts; and what is early, it will.
    free: dict[str, Any] = {"retention": None}
    if isinstance(declared, Window):
        free |= {"future_tolerance": None, "longest": declared._longest_window}
    timeless: Any = replace(declared, **free)
    plan, names = Plan(tuple(with_below(timeless))), frozenset((declared.name,))
    span = Span(declared._kept_tiers[0], question.interval) if isinstance(declared, Window) else None
    for image, sign in _images(declared.source, items):
        folded = folded_alone(plan, names, image, question.now, is_foreign=is_foreign, keys={}, origin="")
        for (_, group), numbers in sums_of(folded).items():
            if any(texts.get(name, text) != text for name, text in zip(declared.fields, group, strict=False)):
                continue
            if span is not None:
                is_finest = group[-2] == span.tier.letter
                numbers = {TOTAL: add_up(span, [(group[-1], numbers)])} if is_finest else {}  # noqa: PLW2901
            if adds := {name: sign * number for name, number in numbers.items() if number}:
                yield Line(adds, _key(declared.source, image))


def _images(source: Any, items: Iterable[Item]) -> Iterator[tuple[Image, int]]:
    """Yield events, items or groups, each with its sign: a row of a chunk may take one back."""
    is_apart = isinstance(source, Aggregate) and not source._longest
    for item in items:
        # What cannot be read, the fold leaves to the quarantine.
        with suppress(*FOLD_ERRORS):
            if isinstance(source, Event) and item.get(TYPE, {}).get("S") == source.name + PACK_SUFFIX:
                rows = (row for row in decode_chunk(item[CHUNK]).all_rows() if row.sign in _SIGNS)
                yield from (({**row.values, TYPE: {"S": source.name}}, _SIGNS[row.sign]) for row in rows)
            else:
                yield from ((image, 1) for image in (ItemLayout(source).images(item) if is_apart else [item]))


def _key(source: Any, image: Image) -> dict[str, str]:
    if isinstance(source, Aggregate) and (group := group_of_item(source, image)) is not None:
        return dict(zip(source.fields, group, strict=True))
    if isinstance(source, Event) and image.keys() >= {*source.fields}:
        return {name: text_reader(name, literal=True)(image) for name in source.fields}
    keys = source._table_keys if isinstance(source, Items) else OURS
    names = filter(None, (keys.partition_key, keys.sort_key))
    return {name: str(next(iter(image[name].values()))) for name in names if name in image}


def _selected(table: Table, question: Question) -> Iterator[Item] | None:
    """Return what a group may count, by Queries; None if its fields do not give the partition."""
    source = question.declared.source
    texts = {name: text for name, text in question.values.items() if parts_of(name) == (name, "", None)}
    if isinstance(source, Event) and source.packed is not None:
        if not texts.keys() >= {*source.packed._tenants}:
            return None
        listing, times = _Listing(table, source, texts, consistent=True), _times(question, source.packed.time)
        return chain.from_iterable(listing.chunks(source.packed, times))
    if isinstance(source, Items) or not texts.keys() >= {*source._pk_template.fields}:
        return None
    if isinstance(source, Aggregate):
        return _groups(table, source, texts)
    return table.partition(source._pk_template.render(texts), source._sk_template.prefix)


def _times(question: Question, attribute: str) -> Timespan:
    """Return in which times of an attribute all lies that counts in a group."""
    declared, spans = question.declared, [(-math.inf, math.inf)]
    for name, text in question.values.items():
        if (tier := tier_of(name)) and parts_of(name)[0] == attribute:
            spans.append((tier.start(tier.parse(text)), tier.end(tier.parse(text))))
    if isinstance(declared, Window) and declared.time == attribute:
        spans.append((question.interval.start, question.interval.end))
    return max(start for start, _ in spans), min(end for _, end in spans)


def _groups(table: Table, aggregate: Aggregate, texts: Mapping[str, str]) -> Iterator[Item]:
    pk = aggregate._pk_template.render(texts)
    if not aggregate.pages:
        return query(table, pk, sort_key_range(aggregate), consistent=True)
    prefix = f"{PAGE_PREFIX}{aggregate.name}#"
    return chain.from_iterable(table.partition(f"{pk}{PARTITION_MARK}{digit:x}", prefix) for digit in range(16))
