"""Windows as they are read: one group of a window, and many groups at once, by Queries over neighboring keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import localcontext
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from dynamodb_counters._declarations import BUCKET_FIELD, Aggregate, TimeWeighted, Window
from dynamodb_counters._declarations.composites import group_fields, require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._items.conversions import EXACT, Number, read_number, whole
from dynamodb_counters._items.table_schema import SK
from dynamodb_counters._reads.question import around, require_retained, trailing
from dynamodb_counters._reads.table_reads import TableReads, asked_group, query
from dynamodb_counters._reads.window_counts import Integral, WindowCount, add_moments, add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import (
    FIRST_SECOND,
    PERIODS,
    TOTAL,
    Interval,
    Period,
    Span,
    period_start,
    plan_queries,
    read_cost,
    require_anchor,
    seconds_of,
    steps,
    time_zone,
    utc,
)
from dynamodb_counters.errors import InvalidArgumentError

Values: TypeAlias = Mapping[str, object]
Asked: TypeAlias = tuple[Window, Values, Interval]
Buckets: TypeAlias = list[tuple[int, Mapping[str, Number]]]


def integrate(table: Table, window: Window, values: Values, interval: Interval, *, consistent: bool) -> Integral:
    """A level over an interval: its value at the beginning, and its sum over time."""
    values, complete = asked_group(table, window, values)
    pk, before = window._pk_template.render(values), Interval(FIRST_SECOND, interval.start)
    earlier, within = (plan_queries(window._kept_tiers, part) for part in (before, interval))
    read = partial(_buckets, table, window, pk, consistent=consistent)
    found = iter(table.each(read, [*earlier, *within]))
    with localcontext(EXACT):
        opening = sum(add_up(span, next(found)) for span in earlier)
        held = list(zip(within, found, strict=True))
        change, moments = sum(add_up(*each) for each in held), sum(add_moments(*each) for each in held)
        value = opening * (interval.end - interval.start) + interval.end * change - moments
        ends = utc(interval.start), utc(interval.end)
        return Integral(whole(value), whole(opening), whole(opening + change), *ends, complete)


def count_intervals(table: Table, asked: Sequence[Asked], *, consistent: bool) -> list[WindowCount]:
    """Count windows over an interval each, in one round trip."""
    planned = [
        (window, window._pk_template.render(texts), plan_queries(window._kept_tiers, interval), complete)
        for (texts, complete), (window, _, interval) in [(asked_group(table, one[0], one[1]), one) for one in asked]
    ]
    queries = [(window, pk, span) for window, pk, spans, _ in planned for span in spans]
    found = iter(table.each(lambda one: _buckets(table, *one, consistent=consistent), queries))
    with localcontext(EXACT):
        return [
            _count(interval, [add_up(span, next(found)) for span in spans], complete=complete)
            for (_, _, interval), (_, _, spans, complete) in zip(asked, planned, strict=True)
        ]


def count_series(
    table: Table, window: Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> list[WindowCount]:
    """Count adjoining intervals, in order, by one Query of a tier that separates them unless that costs more."""
    values, complete = asked_group(table, window, values)
    spans = series_spans(window, intervals)
    if len(spans) > 1:
        return count_intervals(table, [(window, values, interval) for interval in intervals], consistent=consistent)
    pk = window._pk_template.render(values)
    held, counts = dict(_buckets(table, window, pk, spans[0], consistent=consistent)), []
    with localcontext(EXACT):
        for interval in intervals:
            part = Span(spans[0].tier, interval)
            first, last = part.buckets
            touched = [(bucket, held[bucket]) for bucket in range(first, last + 1) if bucket in held]
            counts.append(_count(interval, [add_up(part, touched)], complete=complete))
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


def _count(interval: Interval, numbers: Iterable[Number], *, complete: bool) -> WindowCount:
    return WindowCount(whole(sum(numbers)), utc(interval.start), utc(interval.end), complete)


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


Declared = TypeVar("Declared", bound=Aggregate | Window)
Counted = TypeVar("Counted")


class SpanReader(Generic[Declared, Counted]):
    """One group of a declaration that counts by time, over spans of it."""

    def __init__(self, table: Table, declared: Declared, values: Mapping[str, object]) -> None:
        self._table, self._declared, self._values = table, declared, values

    def last(self, length: timedelta, /, *, as_of: datetime | None = None, consistent: bool = False) -> Counted:
        """Count events in a trailing span of time.

        Parameters
        ----------
        length : timedelta
            Length of the span, two or more units of the window's precision. The unit that holds the end counts as the
            last one, so far.
        as_of : datetime, optional
            End of the span, with a time zone. Default: now.
        consistent : bool, optional
            Whether to read strongly consistently, at twice the read units. Default False.

        Returns
        -------
        WindowCount
            The count and the interval it covers; of `Percentiles`, a `Distribution`.

        Raises
        ------
        InvalidArgumentError
            An argument is not allowed, or the window no longer retains all of the interval.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").last(timedelta(hours=24)).count  # doctest: +SKIP
        7
        """
        now, until = now_and_until(self._table, as_of)
        interval = trailing(self._declared, length, until, now)
        return self._counted([interval], consistent=consistent)[0]

    def calendar(
        self,
        period: Period,
        tz: str | tzinfo = "UTC",
        *,
        anchor: int = 1,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> Counted:
        """Count the current local hour, day, week, month or year so far.

        Parameters
        ----------
        period : {"hour", "day", "week", "month", "year"}
            Weeks begin on Monday.
        tz : str or tzinfo, optional
            Time zone of the calendar: an IANA name such as ``"Europe/Berlin"``. Default ``"UTC"``.
        anchor : int, optional
            Day on which months begin, 1 to 31; the last day of a month that is shorter. Default 1.
        as_of : datetime, optional
            A moment in the period, up to which to count, with a time zone. Default: now.
        consistent
            As in `last`.

        Returns
        -------
        WindowCount
            The count and the interval it covers, which ends with the unit of precision that holds `as_of`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").calendar("month", "Europe/Berlin").count  # doctest: +SKIP
        31
        """
        if period not in PERIODS:
            raise InvalidArgumentError("period", period, "one of " + ", ".join(map(repr, PERIODS)))
        require_anchor(anchor, period)
        now, until = now_and_until(self._table, as_of)
        start, unit = period_start(period, until, time_zone(tz), anchor), self._declared._unit
        require_retained(self._declared, "period", start, now)
        end = Interval.ending_at(until, timedelta(seconds=unit), unit).end
        return self._counted([Interval(start // unit * unit, end)], consistent=consistent)[0]

    def between(self, start: datetime, end: datetime, *, consistent: bool = False) -> Counted:
        """Count events between two moments.

        Parameters
        ----------
        start, end : datetime
            With a time zone, such as ``datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))``.
        consistent
            As in `last`.

        Returns
        -------
        WindowCount
            The count and the interval it covers: all units of precision that the requested one touches.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").between(monday, tuesday).count  # doctest: +SKIP
        5
        """
        return self._counted([self._around(start, end)], consistent=consistent)[0]

    def series(
        self,
        start: datetime,
        end: datetime,
        *,
        step: timedelta | Period,
        tz: str | tzinfo = "UTC",
        anchor: int = 1,
        consistent: bool = False,
    ) -> list[Counted]:
        """Count step by step, as for a plot: in order, without gaps or overlaps, 0 where nothing was counted.

        Parameters
        ----------
        start, end : datetime
            With a time zone.
        step : timedelta or {"hour", "day", "week", "month", "year"}
            Steps of a length from `start` on, in whole units of the window's precision; or periods of a local calendar,
            the first and last of which are cut off at `start` and `end`.
        tz, anchor, consistent
            As in `calendar`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").series(monday, sunday, step="day")  # doctest: +SKIP
        """
        whole, unit = self._around(start, end), self._declared._unit
        intervals = steps(whole.start, whole.end, step, time_zone(tz), unit, anchor=anchor)
        return self._counted(intervals, consistent=consistent)

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[Counted]:
        """The counts of an interval, or of several that adjoin."""
        raise NotImplementedError

    def _group(self) -> tuple[dict[str, str], bool]:
        return asked_group(self._table, self._declared, self._values, group_fields(self._declared))

    def _around(self, start: datetime, end: datetime) -> Interval:
        return around(self._declared, start, end, self._table.clock())


def now_and_until(table: Table, as_of: datetime | None) -> tuple[float, float]:
    now = table.clock()
    return now, now if as_of is None else seconds_of("as_of", as_of)


class WindowReader(SpanReader[Window, WindowCount]):
    """One group of a window, to be counted over spans of time. Made by `Counters.window`.

    Each call reads the table; all its Queries run at once. Every result states the interval it covers, which differs
    from the requested one by less than a unit of the window's precision at either end.

    Examples
    --------
    >>> jobs = counters.window(JOBS, customer="c1")  # doctest: +SKIP
    >>> jobs.last(timedelta(hours=24)).count, jobs.calendar("day", "Europe/Berlin").count  # doctest: +SKIP
    (7, 3)
    """

    def integral(self, start: datetime, end: datetime, *, consistent: bool = False) -> Integral:
        """Add up a level over time between two moments, of a window whose measure is `TimeWeighted`.

        The result has the level at both of them, too. Reads the buckets of all that was before, too: a month each.

        Parameters
        ----------
        start, end, consistent
            As in `between`.

        Examples
        --------
        >>> counters.window(STORAGE, customer="c1").integral(monday, tuesday).per(timedelta(hours=1))  # doctest: +SKIP
        Decimal('1220.5')
        """
        if not isinstance(self._declared.measure, TimeWeighted):
            raise InvalidArgumentError("window", self._declared.name, "one whose measure is TimeWeighted")
        return integrate(self._table, self._declared, self._values, self._around(start, end), consistent=consistent)

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[WindowCount]:
        return count_series(self._table, self._declared, self._values, intervals, consistent=consistent)


class WindowReads(TableReads):
    def window(self, window: Window, values: Given = None, /, **fields: object) -> WindowReader:
        """Return a reader of one group of a window; no request.

        Parameters
        ----------
        window : Window
        values, **fields
            The group, as in `get`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").last(timedelta(hours=24)).count  # doctest: +SKIP
        7
        """
        require_declaration(window, Window)
        return WindowReader(self._table, window, given(values, fields))

    def window_many(
        self,
        wanted: Iterable[tuple[Window, Mapping[str, object]]],
        length: timedelta,
        /,
        *,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> list[WindowCount]:
        """Count events in a trailing span of time for several groups or windows at once, in their order.

        Parameters
        ----------
        wanted : iterable of (Window, mapping)
            Windows with the values of their groups.
        length, as_of, consistent
            As in `WindowReader.last`.

        Examples
        --------
        >>> counters.window_many([(JOBS, c1), (JOBS, c2)], timedelta(hours=24))  # doctest: +SKIP
        """
        now, until = now_and_until(self._table, as_of)
        requested = []
        for window, values in wanted:
            require_declaration(window, Window)
            requested.append((window, values, trailing(window, length, until, now)))
        return count_intervals(self._table, requested, consistent=consistent)
