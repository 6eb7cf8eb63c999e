"""The Queries of window reads: one over neighboring keys per span, all at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import localcontext
from typing import TypeAlias

from dynamodb_counters._control.statuses import Standing, Statuses
from dynamodb_counters._declarations import BUCKET_FIELD, Window
from dynamodb_counters._declarations.groups import require_fields
from dynamodb_counters._items.decimals import EXACT, Number, read_number, whole
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._reads.window_counts import WindowCount, add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval, Span, plan_queries, read_cost
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters._timeline.times import utc
from dynamodb_counters.errors import InvalidArgumentError

Values: TypeAlias = Mapping[str, object]
Buckets: TypeAlias = list[tuple[int, Mapping[str, Number]]]


@dataclass(frozen=True, slots=True)
class _Query:
    window: Window
    pk: str
    span: Span


def counted_by(table: Table, window: Window, values: Values) -> Window:
    """The generation that readers use; a declaration that nothing counts, or a group that is none, is refused."""
    current = Statuses.of_table(table).current(window)
    require_fields(window.name, [(one, one.fields) for one in (window, current)], values)
    return current


def count_intervals(
    table: Table, asked: Sequence[tuple[Window, Values, Interval]], *, consistent: bool
) -> list[WindowCount]:
    """Count windows over an interval each, in one round trip."""
    statuses = Statuses.of_table(table)
    planned = [
        _queries(current, values, plan_queries(current._kept_tiers, interval))
        for current, (_, values, interval) in [(counted_by(table, one[0], one[1]), one) for one in asked]
    ]
    found = iter(_query_all(table, [query for queries in planned for query in queries], consistent=consistent))
    with localcontext(EXACT):
        return [
            _count(
                interval,
                (add_up(query.span, next(found)) for query in queries),
                statuses.standing(window),
            )
            for (window, _, interval), queries in zip(asked, planned, strict=True)
        ]


def count_series(
    table: Table, window: Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> list[WindowCount]:
    """Count adjoining intervals, in order, by one Query of a tier that separates them unless that costs more."""
    current = counted_by(table, window, values)
    if not intervals:
        return []
    spans = series_spans(current, intervals)
    if len(spans) > 1:
        return count_intervals(table, [(window, values, interval) for interval in intervals], consistent=consistent)
    [buckets] = _query_all(table, _queries(current, values, spans), consistent=consistent)
    with localcontext(EXACT):
        return _cut(spans[0], intervals, buckets, Statuses.of_table(table).standing(window))


def series_spans(window: Window, intervals: Sequence[Interval]) -> list[Span]:
    """Spans of the Queries of adjoining intervals: one, or if that costs less each interval on its own."""
    whole = Interval(intervals[0].start, intervals[-1].end)
    aligned = [
        tier
        for tier in window._kept_tiers
        if all(edge % tier.slot_seconds == 0 for each in intervals for edge in (each.start, each.end))
    ]
    best = min((Span(tier, whole) for tier in aligned), key=lambda span: read_cost([span]))
    separate = [span for interval in intervals for span in plan_queries(window._kept_tiers, interval)]
    return separate if read_cost(separate) < read_cost([best]) else [best]


def require_retained(window: Window, argument: str, start: float, now: float) -> None:
    """Refuse an interval of which part may be deleted already, or uncounted because it came late."""
    if window.retention is None:
        return
    # An expired bucket may not be deleted yet, or a late redelivery may have written it again; it lies before this.
    oldest = now - window.retention.total_seconds()
    if start < oldest:
        allowed = f"an interval that starts at {utc(oldest).isoformat()} or later; {window.name!r} retains no more"
        raise InvalidArgumentError(argument, f"from {utc(start).isoformat()}", allowed)


def _count(interval: Interval, numbers: Iterable[Number], standing: Standing) -> WindowCount:
    return WindowCount(whole(sum(numbers)), utc(interval.start), utc(interval.end), *standing)


def _queries(window: Window, values: Values, spans: Iterable[Span]) -> list[_Query]:
    pk = window._pk_template.render(values)
    return [_Query(window, pk, span) for span in spans]


def _cut(span: Span, intervals: Sequence[Interval], buckets: Buckets, standing: Standing) -> list[WindowCount]:
    """Add up each interval from the buckets of one Query."""
    by_bucket = dict(buckets)
    ordered = sorted(by_bucket)
    counts = []
    for interval in intervals:
        part = Span(span.tier, interval)
        first, last = part.buckets
        touched = ordered[bisect_left(ordered, first) : bisect_right(ordered, last)]
        numbers = [add_up(part, ((bucket, by_bucket[bucket]) for bucket in touched))]
        counts.append(_count(interval, numbers, standing))
    return counts


def _query_all(table: Table, queries: Sequence[_Query], *, consistent: bool) -> list[Buckets]:
    if len(queries) == 1:
        return [_query(table, queries[0], consistent=consistent)]
    return list(table.pool.map(lambda query: _query(table, query, consistent=consistent), queries))


def _query(table: Table, query: _Query, *, consistent: bool) -> Buckets:
    tier, template = query.span.tier, query.window._sk_template
    first, last = (template.render_texts([tier.letter, tier.text(bucket)]) for bucket in query.span.buckets)
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
        ExpressionAttributeValues={":pk": {"S": query.pk}, ":first": {"S": first}, ":last": {"S": last}},
        ConsistentRead=consistent,
    )
    names = (TOTAL, *tier.slots)
    return [
        (
            tier.parse(template.parse(item[SK]["S"])[BUCKET_FIELD]),
            {name: read_number(item, name) for name in names if name in item},
        )
        for page in pages
        for item in page["Items"]
    ]
