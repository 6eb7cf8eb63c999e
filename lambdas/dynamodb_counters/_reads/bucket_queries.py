"""The Queries of window reads: one over neighboring keys per span, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import localcontext
from functools import partial
from typing import TypeAlias

from dynamodb_counters._control.statuses import Standing
from dynamodb_counters._declarations import BUCKET_FIELD, Declaration, Window
from dynamodb_counters._items.decimals import EXACT, Number, read_number, whole
from dynamodb_counters._items.table_schema import SK
from dynamodb_counters._reads.table_reads import current, query
from dynamodb_counters._reads.window_counts import Integral, WindowCount, add_moments, add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval, Span, plan_queries, read_cost
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters._timeline.times import FIRST_SECOND, utc
from dynamodb_counters.errors import InvalidArgumentError

Values: TypeAlias = Mapping[str, object]
Asked: TypeAlias = tuple[Window, Values, Interval]
Buckets: TypeAlias = list[tuple[int, Mapping[str, Number]]]


def integrate(table: Table, window: Window, values: Values, interval: Interval, *, consistent: bool) -> Integral:
    """A level over an interval: its value at the beginning, and its sum over time."""
    kept, values, standing = current(table, window, values)
    pk, before = kept._pk_template.render(values), Interval(FIRST_SECOND, interval.start)
    earlier, within = (plan_queries(kept._kept_tiers, part) for part in (before, interval))
    read = partial(_buckets, table, kept, pk, consistent=consistent)
    found = iter(table.each(read, [*earlier, *within]))
    with localcontext(EXACT):
        opening = sum(add_up(span, next(found)) for span in earlier)
        held = list(zip(within, found, strict=True))
        change, moments = sum(add_up(*each) for each in held), sum(add_moments(*each) for each in held)
        value = opening * (interval.end - interval.start) + interval.end * change - moments
        ends = utc(interval.start), utc(interval.end)
        return Integral(whole(value), whole(opening), whole(opening + change), *ends, *standing)


def count_intervals(table: Table, asked: Sequence[Asked], *, consistent: bool) -> list[WindowCount]:
    """Count windows over an interval each, in one round trip."""
    planned = [
        (kept, kept._pk_template.render(texts), plan_queries(kept._kept_tiers, interval), standing)
        for (kept, texts, standing), (*_, interval) in [(current(table, one[0], one[1]), one) for one in asked]
    ]
    queries = [(kept, pk, span) for kept, pk, spans, _ in planned for span in spans]
    found = iter(table.each(lambda one: _buckets(table, *one, consistent=consistent), queries))
    with localcontext(EXACT):
        return [
            _count(interval, [add_up(span, next(found)) for span in spans], standing)
            for (_, _, interval), (_, _, spans, standing) in zip(asked, planned, strict=True)
        ]


def count_series(
    table: Table, window: Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> list[WindowCount]:
    """Count adjoining intervals, in order, by one Query of a tier that separates them unless that costs more."""
    kept, values, standing = current(table, window, values)
    spans = series_spans(kept, intervals)
    if len(spans) > 1:
        return count_intervals(table, [(window, values, interval) for interval in intervals], consistent=consistent)
    held, counts = dict(_buckets(table, kept, kept._pk_template.render(values), spans[0], consistent=consistent)), []
    with localcontext(EXACT):
        for interval in intervals:
            part = Span(spans[0].tier, interval)
            first, last = part.buckets
            touched = [(bucket, held[bucket]) for bucket in range(first, last + 1) if bucket in held]
            counts.append(_count(interval, [add_up(part, touched)], standing))
    return counts


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


def require_retained(timed: Declaration, argument: str, start: float, now: float) -> None:
    """Refuse an interval of which part may be deleted already, or uncounted because it came late."""
    if timed.retention is None:
        return
    # An expired bucket may not be deleted yet, or a late redelivery may have written it again; it lies before this.
    oldest = now - timed.retention.total_seconds()
    if start < oldest:
        allowed = f"an interval that starts at {utc(oldest).isoformat()} or later; {timed.name!r} retains no more"
        raise InvalidArgumentError(argument, f"from {utc(start).isoformat()}", allowed)


def _count(interval: Interval, numbers: Iterable[Number], standing: Standing) -> WindowCount:
    return WindowCount(whole(sum(numbers)), utc(interval.start), utc(interval.end), *standing)


def _buckets(table: Table, window: Window, pk: str, span: Span, *, consistent: bool) -> Buckets:
    """The buckets that a span touches, in order."""
    template, slots = window._sk_template, (TOTAL, *span.tier.slots)
    names = [attribute for slot in slots for attribute in window.measure._attributes(slot)]
    first, last = (template.render_texts([span.tier.letter, span.tier.text(bucket)]) for bucket in span.buckets)
    return [
        (
            span.tier.parse(template.parse(item[SK]["S"])[BUCKET_FIELD]),
            {name: read_number(item, name) for name in names if name in item},
        )
        for item in query(table, pk, (first, last), consistent=consistent)
    ]
