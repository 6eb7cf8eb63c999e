"""Why a number is what it is: the events, items or groups that it counts, each with what it adds.

The group is read, then what it counts, then the group again. A line is the fold of one item by the registered
definition. What the lines do not come to is a difference, of which verification is the judge.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import localcontext
from typing import Any, Final, TypeAlias

from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._control.run_items import Held, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Direct, Event, Items, Window
from dynamodb_counters._declarations.aggregates import PARTITION_MARK
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._declarations.groups import group_key, with_below
from dynamodb_counters._declarations.sources import OURS
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.item_layout import ItemLayout, group_items, group_of_item
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.bookkeeping import READ_UNIT_BYTES
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.conditions import Image, TypedValue, reader, text_reader
from dynamodb_counters._items.conversions import EXACT, LAST_CHARACTER, Number, event_seconds, read_number
from dynamodb_counters._items.derived_fields import parts_of, tier_of
from dynamodb_counters._items.table_schema import CHUNK, PACK_SUFFIX, PAGE_PREFIX, TYPE
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._reads.event_reads import Range, chunk_range, parts_of_wanted
from dynamodb_counters._reads.group_reads import sort_key_range
from dynamodb_counters._reads.question import SPAN, Question
from dynamodb_counters._reads.span_reads import count_intervals
from dynamodb_counters._reads.table_reads import Item, asked_group, query, read_items
from dynamodb_counters._reads.window_counts import add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import FIRST_SECOND, LAST_SECOND, TOTAL, Interval, Span, utc
from dynamodb_counters.errors import InvalidArgumentError

LINES: Final = 1000
"""Most lines that an explanation holds, unless another number is asked for: all of them add up."""

CHANGED: Final = "it changed while it was explained: explain it again"
UNEXPLAINED: Final = (
    "records on their way, the quarantine, a backfill that is due, or events that expired, were erased or came too "
    "late may explain it: `counters verify` tells which"
)

_SIGNS: Final = {"+": 1, "-": -1}
_Queries: TypeAlias = Sequence[tuple[str, Range]]
"""Queries: partition keys, each with its first and last sort key."""


@dataclass(frozen=True, slots=True)
class Line:
    """An event, item or group that counts.

    Parameters
    ----------
    adds : mapping of str to int or Decimal
        How much it adds to the number, by measure.
    key : mapping of str to str
        What identifies it.
    time : str
        When it happened; empty if the declaration does not say.
    """

    adds: Mapping[str, Number]
    key: Mapping[str, str]
    time: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a number is what it is: what its lines add up to, and what differs.

    Parameters
    ----------
    numbers : mapping of str to int or Decimal
        What the group counts, by measure; of a window, ``total``.
    lines : sequence of Line
        The first events, items or groups that count, by time and key.
    count : int
        How many there are in all.
    difference : mapping of str to int or Decimal
        The number less the sum of all lines, by measure.
    reason : str
        What may explain the difference; empty if there is none.

    Examples
    --------
    >>> explained = counters.explain(VIEWS, {"url": "/"})  # doctest: +SKIP
    >>> explained.numbers, explained.count, explained.difference  # doctest: +SKIP
    ({'views': 17}, 17, {})
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
        allowed = "an Aggregate of events or items, Window, Distinct, Percentiles, Extremes or ActiveMembers"
        raise InvalidArgumentError("declaration", getattr(declared, "name", declared), allowed)
    span = [name for name in SPAN if getattr(question, name) is not None]
    if span and not isinstance(declared, Window):
        raise InvalidArgumentError(span[0], str(getattr(question, span[0])), f"None: {declared.name!r} is no Window")
    question = replace(question, values=asked_group(table, declared, question.values, group_fields(declared))[0])
    with localcontext(EXACT):
        before = _numbers(table, question)
    source_table = read_registry(table).source
    is_foreign = isinstance(declared.source, Items) if source_table else None
    source = Table(source_table, table.client) if is_foreign else table
    queries = None if is_foreign else _queries(table, question)
    if queries is None and not scan:
        size = table.client.describe_table(TableName=source.name)["Table"].get("TableSizeBytes", 0)
        units = math.ceil(size / READ_UNIT_BYTES)
        raise InvalidArgumentError("scan", scan, f"True, for a Scan that takes {units:,} read units")
    sums, count = dict[str, Number](), 0

    def added() -> Iterator[Line]:
        nonlocal count
        pages = source.client.get_paginator("scan").paginate(TableName=source.name, ConsistentRead=True)
        scanned = (item for page in pages for item in page["Items"])
        for line in _lines(question, scanned if queries is None else _queried(table, queries), is_foreign):
            count += 1
            sums.update({name: sums.get(name, 0) + number for name, number in line.adds.items()})
            yield line

    with localcontext(EXACT):
        # Of none, it would read none.
        first = heapq.nsmallest(max(limit, 1), added(), key=lambda line: (line.time, *line.key.values()))[:limit]
        after = _numbers(table, question)
        differences = {name: after.get(name, 0) - sums.get(name, 0) for name in {**after, **sums}}
    difference = {name: number for name, number in differences.items() if number}
    reason = "" if not difference else CHANGED if before != after else UNEXPLAINED
    return Explanation(after, first, count, difference, reason)


def _numbers(table: Table, question: Question) -> dict[str, Number]:
    """Return what a group counts now; of what only a read of its own understands, all items of the group together."""
    declared, texts = question.declared, question.values
    if isinstance(declared, Window):
        [window] = count_intervals(table, [(declared, texts, question.interval)], consistent=True)
        return {TOTAL: window.count} if window.count else {}
    if group_fields(declared) == declared.fields:
        [items] = read_items(table, [(ItemLayout(declared), group_key(declared, texts))], consistent=True)
    else:
        stored = _queried(table, _group_queries(declared, texts))
        own = (item for item in stored if item.get(TYPE, {}).get("S") == declared.name)
        items = [group for item in own for group in group_items(declared, item)]
    sums = {name: sum(read_number(item, name) for item in items) for name in declared._attributes}
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
    derived = (parts_of(name)[0] for name in declared.fields if tier_of(name))
    find_time = reader(declared.time if isinstance(declared, Window) else next(derived, ""))
    for image, sign in _images(declared.source, items):
        folded = folded_alone(plan, names, image, question.now, Held({}, is_foreign, ""))
        for (_, group), numbers in sums_of(folded).items():
            if any(texts.get(name, text) != text for name, text in zip(declared.fields, group, strict=False)):
                continue
            if span is not None:
                is_finest = group[-2] == span.tier.letter
                numbers = {TOTAL: add_up(span, [(group[-1], numbers)])} if is_finest else {}  # noqa: PLW2901
            if adds := {name: sign * number for name, number in numbers.items() if number}:
                yield Line(adds, _key(declared.source, image), _time_text(find_time(image)))


def _images(source: Any, items: Iterable[Item]) -> Iterator[tuple[Image, int]]:
    """Yield events, items or groups, each with its sign: a row of a chunk may take one back."""
    is_apart = isinstance(source, Aggregate) and not source._longest
    for item in items:
        # What cannot be read, the fold leaves to the quarantine.
        with suppress(*UNFOLDABLE):
            if isinstance(source, Event) and item.get(TYPE, {}).get("S") == source.name + PACK_SUFFIX:
                rows = (row for row in decode_chunk(item[CHUNK]).all_rows() if row.sign in _SIGNS)
                yield from (({**row.values, TYPE: {"S": source.name}}, _SIGNS[row.sign]) for row in rows)
            else:
                yield from ((image, 1) for image in (group_items(source, item) if is_apart else [item]))


def _key(source: Any, image: Image) -> dict[str, str]:
    if isinstance(source, Aggregate) and (group := group_of_item(source, image)) is not None:
        return dict(zip(source.fields, group, strict=True))
    if isinstance(source, Event) and image.keys() >= {*source.fields}:
        return {name: text_reader(name, literal=True)(image) for name in source.fields}
    keys = source._table_keys if isinstance(source, Items) else OURS
    names = filter(None, (keys.partition_key, keys.sort_key))
    return {name: str(next(iter(image[name].values()))) for name in names if name in image}


def _time_text(value: TypedValue | None) -> str:
    with suppress(*UNFOLDABLE):
        return f"{utc(event_seconds(value or {})):%Y-%m-%dT%H:%M:%SZ}"
    return ""


def _queried(table: Table, queries: _Queries) -> Iterator[Item]:
    for pk, sort_keys in queries:
        yield from query(table, pk, sort_keys, consistent=True)


def _queries(table: Table, question: Question) -> _Queries | None:
    """Return the Queries that reach what a group counts; None if its fields do not give the partition."""
    source: Any = question.declared.source
    texts = {name: text for name, text in question.values.items() if parts_of(name) == (name, "", None)}
    if isinstance(source, Event) and source.packed is not None:
        packed, times = source.packed, _times(question, source.packed.time)
        Layouts.of_table(table).require(source)
        if packed.tenant not in (None, *texts):
            return None
        parts = parts_of_wanted(source, packed, texts) if times[0] < times[1] else ()
        return [chunk_range(source.name, part, packed._bucket_seconds, times) for part in parts]
    if isinstance(source, Items):
        templates = [template for _, template in source._templates] if source.pk is not None else []
    else:
        templates = [source._pk_template, source._sk_template]
    if not templates or not texts.keys() >= {*templates[0].fields}:
        return None
    if isinstance(source, Aggregate):
        return _group_queries(source, texts)
    pk, prefix = templates[0].render(texts), templates[1].prefix if templates[1:] else ""
    # A key of other code is not escaped.
    if isinstance(source, Items) and templates[0].match(pk) != {name: texts[name] for name in templates[0].fields}:
        return None
    return [(pk, (prefix or " ", prefix + LAST_CHARACTER))]


def _times(question: Question, attribute: str) -> tuple[float, float]:
    """Return in which times of an attribute all lies that counts in a group."""
    declared, texts = question.declared, question.values
    tiers = [(tier, text) for name, text in texts.items() if (tier := tier_of(name)) and parts_of(name)[0] == attribute]
    spans = [Interval(tier.start(tier.parse(text)), tier.end(tier.parse(text))) for tier, text in tiers]
    spans += [question.interval] if isinstance(declared, Window) and declared.time == attribute else []
    return max([FIRST_SECOND, *(span.start for span in spans)]), min([LAST_SECOND, *(span.end for span in spans)])


def _group_queries(aggregate: Aggregate, texts: Mapping[str, str]) -> _Queries:
    """Return where the groups of a partition lie, or their pages."""
    pk = aggregate._pk_template.render(texts)
    if not aggregate.pages:
        return [(pk, sort_key_range([aggregate]))]
    prefix = f"{PAGE_PREFIX}{aggregate.name}#"
    return [(f"{pk}{PARTITION_MARK}{digit:x}", (prefix, prefix + LAST_CHARACTER)) for digit in range(16)]
