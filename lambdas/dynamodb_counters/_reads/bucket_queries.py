"""Reading windows: a Query over neighbouring keys for each span of each window, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import localcontext
from typing import TypeAlias

from dynamodb_counters._declarations import BUCKET_FIELD, Window
from dynamodb_counters._items.decimals import EXACT, Number, read_number, whole
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._reads.window_counts import WindowCount, add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval, Span, plan, price
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters._timeline.times import utc
from dynamodb_counters.errors import InvalidArgumentError

Values: TypeAlias = Mapping[str, object]
Buckets: TypeAlias = list[tuple[int, Mapping[str, Number]]]


@dataclass(frozen=True, slots=True)
class _Read:
    """One Query to make."""

    window: Window
    pk: str
    span: Span


def count(table: Table, asked: Sequence[tuple[Window, Values, Interval]], *, consistent: bool) -> list[WindowCount]:
    """Count several windows in one round trip.

    Parameters
    ----------
    table : Table
        Where from.
    asked : sequence of (Window, mapping, Interval)
        Window, group and what to cover.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    list of WindowCount
        In the order asked.
    """
    planned = [_reads(window, values, plan(window.kept_tiers, interval)) for window, values, interval in asked]
    found = iter(_query_all(table, [read for reads in planned for read in reads], consistent=consistent))
    with localcontext(EXACT):
        return [
            _count(interval, (add_up(read.span, next(found)) for read in reads))
            for (_, _, interval), reads in zip(asked, planned, strict=True)
        ]


def series(
    table: Table, window: Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> list[WindowCount]:
    """Count neighbouring intervals, reading no bucket twice where one tier tells them apart.

    Parameters
    ----------
    table : Table
        Where from.
    window : Window
        Which window.
    values : mapping of str to str or number
        Its group.
    intervals : sequence of Interval
        Without gap, in order.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    list of WindowCount
        In the order asked; 0 where nothing was counted.
    """
    if not intervals:
        return []
    over = Interval(intervals[0].start, intervals[-1].end)
    aligned = [
        tier
        for tier in window.kept_tiers
        if all(edge % tier.slot_seconds == 0 for each in intervals for edge in (each.start, each.end))
    ]
    spans = [Span(tier, over) for tier in aligned]
    apart = [span for interval in intervals for span in plan(window.kept_tiers, interval)]
    best = min(spans, key=lambda span: price([span]))
    if price(apart) < price([best]):
        return count(table, [(window, values, interval) for interval in intervals], consistent=consistent)
    [buckets] = _query_all(table, _reads(window, values, [best]), consistent=consistent)
    with localcontext(EXACT):
        return _cut(best, intervals, buckets)


def require_retained(window: Window, argument: str, start: float, now: float) -> None:
    """Refuse an interval of which a part may be deleted already, or not be counted because it came late.

    Parameters
    ----------
    window : Window
        Which window.
    argument : str
        Name used in the error.
    start : float
        When the interval begins, in seconds since 1970.
    now : float
        What time it is.

    Raises
    ------
    InvalidArgumentError
        The interval begins before what the window retains.
    """
    if window.retention is None:
        return
    # An expired bucket may still be there, or be there again through a late redelivery. It lies before this.
    oldest = now - window.retention.total_seconds()
    if start < oldest:
        allowed = f"an interval that begins at {utc(oldest).isoformat()} or later, as {window.name!r} retains no more"
        raise InvalidArgumentError(argument, f"from {utc(start).isoformat()}", allowed)


def _count(interval: Interval, numbers: Iterable[Number]) -> WindowCount:
    return WindowCount(whole(sum(numbers)), utc(interval.start), utc(interval.end))


def _reads(window: Window, values: Values, spans: Iterable[Span]) -> list[_Read]:
    pk = window.pk_template.render(values)
    return [_Read(window, pk, span) for span in spans]


def _cut(span: Span, intervals: Sequence[Interval], buckets: Buckets) -> list[WindowCount]:
    """Add up each interval from the buckets of one Query, looking at each bucket about once."""
    by_bucket = dict(buckets)
    places = sorted(by_bucket)
    counts, place = [], 0
    for interval in intervals:
        part = Span(span.tier, interval)
        first, last = part.buckets
        while place < len(places) and places[place] < first:
            place += 1
        stop = place
        while stop < len(places) and places[stop] <= last:
            stop += 1
        counts.append(_count(interval, [add_up(part, ((bucket, by_bucket[bucket]) for bucket in places[place:stop]))]))
    return counts


def _query_all(table: Table, reads: Sequence[_Read], *, consistent: bool) -> list[Buckets]:
    if len(reads) == 1:
        return [_query(table, reads[0], consistent=consistent)]
    return list(table.pool.map(lambda read: _query(table, read, consistent=consistent), reads))


def _query(table: Table, read: _Read, *, consistent: bool) -> Buckets:
    tier, template = read.span.tier, read.window.sk_template
    first, last = (template.render_texts([tier.letter, tier.text(bucket)]) for bucket in read.span.buckets)
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
        ExpressionAttributeValues={":pk": {"S": read.pk}, ":first": {"S": first}, ":last": {"S": last}},
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
