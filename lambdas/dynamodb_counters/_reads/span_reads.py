"""Counts over spans of time, as they are read: windows, active members, distributions; many at once, by few Queries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal, localcontext
from functools import partial
from math import ceil
from typing import Any, Generic, TypeAlias, TypeVar, overload

from dynamodb_counters._declarations import BUCKET_FIELD, ActiveMembers, Aggregate, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations.composites import group_fields, require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.measures import DIVISION, MOMENT
from dynamodb_counters._items.conversions import EXACT, Number, read_number, whole
from dynamodb_counters._items.derived_fields import LOG, log_bins, parts_of
from dynamodb_counters._items.table_schema import SK
from dynamodb_counters._reads.question import around, calendar_of, require_retained, trailing
from dynamodb_counters._reads.table_reads import TableReads, asked_group, numbers_by_unit, numbers_of, query, walk
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import (
    FIRST_SECOND,
    PERIODS,
    TOTAL,
    Interval,
    Period,
    Span,
    Tier,
    period_start,
    plan_queries,
    read_cost,
    require_anchor,
    seconds_of,
    steps,
    utc,
)
from dynamodb_counters.errors import InvalidArgumentError

Values: TypeAlias = Mapping[str, object]
Asked: TypeAlias = tuple[Window, Values, Interval]
Bucket: TypeAlias = tuple[int, Mapping[str, Number]]
"""The number of a bucket of its tier, and what it holds."""


@dataclass(frozen=True, slots=True)
class WindowCount:
    """A count and exactly the interval it covers.

    Parameters
    ----------
    count : int or Decimal
        The window's measure over the interval.
    start, end : datetime
        The interval in UTC, start included, end excluded.
    complete : bool, optional
        As of a `Group`: whether all there is of the interval has been counted.

    Examples
    --------
    >>> hour = WindowCount(5, datetime(2026, 11, 20, 10), datetime(2026, 11, 20, 11))
    >>> hour.end - hour.start
    datetime.timedelta(seconds=3600)
    """

    count: Number
    start: datetime
    end: datetime
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Integral:
    """A level over an interval of time.

    Parameters
    ----------
    value : int or Decimal
        The level times the seconds for which it held, added up: GB-seconds.
    opening, closing : int or Decimal
        The level at the start and at the end.
    start, end : datetime
        The interval in UTC, start included, end excluded.
    complete : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> day = Integral(86_400, 1, 1, datetime(2026, 11, 20), datetime(2026, 11, 21))
    >>> day.per(timedelta(hours=1)), day.average
    (Decimal('24'), Decimal('1'))
    """

    value: Number
    opening: Number
    closing: Number
    start: datetime
    end: datetime
    complete: bool = True

    def per(self, unit: timedelta) -> Decimal:
        """The value in units of time other than seconds, rounded to 38 digits: GB-hours, seat-days.

        Parameters
        ----------
        unit : timedelta
        """
        if not isinstance(unit, timedelta) or unit <= timedelta(0):
            raise InvalidArgumentError("unit", unit, "a timedelta above 0, such as timedelta(hours=1)")
        microseconds = unit // timedelta(microseconds=1)
        return DIVISION.divide(Decimal(self.value) * 1_000_000, Decimal(microseconds))

    @property
    def average(self) -> Decimal:
        """The level on average, weighted by time."""
        return self.per(self.end - self.start)


def add_moments(span: Span, buckets: Iterable[Bucket]) -> Number:
    """The sum of changes of a level times the moments of these, in seconds since 1970."""
    total: Number = 0
    for bucket, numbers in buckets:
        held = {name.removesuffix(MOMENT): number for name, number in numbers.items() if name.endswith(MOMENT)}
        total += add_up(span, [(bucket, held)]) + span.tier.start(bucket) * add_up(span, [(bucket, numbers)])
    return total


def add_up(span: Span, buckets: Iterable[Bucket]) -> Number:
    """The sum of what buckets hold of a span, in their totals and slots."""
    count: Number = 0
    tier, start, end = span.tier, span.interval.start, span.interval.end
    for bucket, numbers in buckets:
        begin, stop = tier.start(bucket), tier.end(bucket)
        if start <= begin and stop <= end:
            count += numbers.get(TOTAL, 0)
        else:
            first, last = max(0, start - begin), min(stop, end) - begin
            slots = tier.slots[first // tier.slot_seconds : max(0, last) // tier.slot_seconds]
            count += sum(numbers.get(slot, 0) for slot in slots)
    return count


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


def _parts(tier: Tier, intervals: Iterable[Interval], buckets: Iterable[Bucket]) -> Iterator[tuple[Span, list[Bucket]]]:
    """Yield each interval as a span of a tier, and which of all buckets, in order, it touches."""
    every = list(buckets)
    numbers = [number for number, _ in every]
    for interval in intervals:
        span = Span(tier, interval)
        first, last = span.buckets
        yield span, every[bisect_left(numbers, first) : bisect_right(numbers, last)]


def _buckets(table: Table, window: Window, pk: str, span: Span, *, consistent: bool) -> list[Bucket]:
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
        interval = trailing(self._declared, length, as_of, self._table.clock())
        return self._counted([interval], consistent=consistent)[0]

    def calendar(
        self,
        period: Period,
        tz: str | tzinfo | None = None,
        *,
        anchor: int | None = None,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> Counted:
        """Count the current local hour, day, week, month or year so far.

        Parameters
        ----------
        period : {"hour", "day", "week", "month", "year"}
            Weeks begin on Monday.
        tz : str or tzinfo, optional
            Time zone of the calendar: an IANA name such as ``"Europe/Berlin"``. Default: the window's, or ``"UTC"``.
        anchor : int, optional
            Day on which months begin, 1 to 31; the last day of a month that is shorter. Default: the window's, or 1.
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
        zone, first_day = calendar_of(self._declared, self._values, tz, anchor, period)
        require_anchor(first_day, period)
        now = self._table.clock()
        until = now if as_of is None else seconds_of("as_of", as_of)
        start, unit = period_start(period, until, zone, first_day), self._declared._unit
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
        tz: str | tzinfo | None = None,
        anchor: int | None = None,
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
        zone, first_day = calendar_of(self._declared, self._values, tz, anchor, step)
        intervals = steps(whole.start, whole.end, step, zone, unit, anchor=first_day)
        return self._counted(intervals, consistent=consistent)

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[Counted]:
        """The counts of an interval or several in order, of what lies in pages by the unit of time."""
        declared: Any = self._declared
        (values, complete), whole = self._group(), Interval(intervals[0].start, intervals[-1].end)
        units = numbers_by_unit(self._table, declared, values, whole, consistent=consistent)
        return [self._sum(*part, complete=complete) for part in _parts(declared._tier, intervals, units)]

    def _sum(self, span: Span, units: Sequence[Bucket], *, complete: bool) -> Counted:
        raise NotImplementedError

    def _group(self) -> tuple[dict[str, str], bool]:
        return asked_group(self._table, self._declared, self._values, group_fields(self._declared))

    def _around(self, start: datetime, end: datetime) -> Interval:
        return around(self._declared, start, end, self._table.clock())


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
        table, window, interval = self._table, self._declared, self._around(start, end)
        values, complete = self._group()
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

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[WindowCount]:
        # By one Query of a tier that separates the intervals, unless that costs more.
        table, window, (values, complete) = self._table, self._declared, self._group()
        spans = series_spans(window, intervals)
        if len(spans) > 1:
            return count_intervals(table, [(window, values, interval) for interval in intervals], consistent=consistent)
        buckets = _buckets(table, window, window._pk_template.render(values), spans[0], consistent=consistent)
        with localcontext(EXACT):
            parts = _parts(spans[0].tier, intervals, buckets)
            return [_count(part.interval, [add_up(part, touched)], complete=complete) for part, touched in parts]


class ActiveReader(SpanReader[Aggregate, WindowCount]):
    """One group of `ActiveMembers`: how many different members were active. Made by `Counters.window`.

    Examples
    --------
    >>> users = counters.window(USERS, url="/")  # doctest: +SKIP
    >>> users.last(timedelta(days=30)).count, users.calendar("day").count  # doctest: +SKIP
    (1204, 97)
    """

    def rolling(
        self, start: datetime, end: datetime, length: timedelta | None = None, /, *, consistent: bool = False
    ) -> list[WindowCount]:
        """Count the members of a trailing span for each unit of time, as for a plot: all by one Query.

        Parameters
        ----------
        start, end : datetime
            The units that the spans end with: all that the interval touches, with a time zone.
        length : timedelta, optional
            Length of each span. Default: the longest that is declared.
        consistent
            As in `last`.

        Examples
        --------
        >>> [day.count for day in users.rolling(january, december, timedelta(days=30))]  # doctest: +SKIP
        """
        unit, around = self._declared._unit, self._around(start, end)
        wanted = timedelta(seconds=unit * _longest(self._declared)) if length is None else length
        ends = range(around.start, around.end, unit)
        return self._counted([Interval.ending_at(each, wanted, unit) for each in ends], consistent=consistent)

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[WindowCount]:
        declared, most, tier = self._declared, _longest(self._declared), self._declared._tier
        for each in intervals:
            if (length := (each.end - each.start) // tier.seconds) > most:
                allowed = f"a span of at most {most} {tier.name}s, the longest of {declared.name!r}"
                raise InvalidArgumentError("length", f"{length} {tier.name}s", allowed)
        return super()._counted(intervals, consistent=consistent)

    def _sum(self, span: Span, units: Sequence[Bucket], *, complete: bool) -> WindowCount:
        first, _ = span.buckets
        # Each member of a span counts at the first unit of it at which it is active.
        counts = [n for unit, gaps in units for gap, n in gaps.items() if int(gap) > unit - first]
        return _count(span.interval, counts, complete=complete)


def _longest(declared: Aggregate) -> int:
    assert isinstance(declared.source, Aggregate)
    return declared.source._longest


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values lie where: each bin stands for values that differ from it by at most the declared error.

    Parameters
    ----------
    bins : mapping of Decimal to int
        Numbers of values by what stands for them, in ascending order.
    start, end : datetime, optional
        The interval in UTC, start included, end excluded; None without a `time`.
    complete : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> sizes = Distribution({Decimal(10): 98, Decimal(500): 2})
    >>> sizes.count, sizes.p(0.98), sizes.p(0.99)
    (100, Decimal('10'), Decimal('500'))
    """

    bins: Mapping[Decimal, Number]
    start: datetime | None = None
    end: datetime | None = None
    complete: bool = True

    @property
    def count(self) -> Number:
        """The number of values."""
        return sum(self.bins.values())

    def p(self, share: float) -> Decimal | None:
        """The least value that so large a share of all values does not exceed; None if there are no values.

        Parameters
        ----------
        share : float
            From 0 to 1: ``p(0.99)`` is the 99th percentile, by the nearest rank.
        """
        if isinstance(share, bool) or not isinstance(share, float | int | Decimal) or not 0 <= share <= 1:
            raise InvalidArgumentError("share", share, "a number from 0 to 1, such as 0.99")
        rank, passed = max(1, ceil(Decimal(str(share)) * self.count)), Decimal(0)
        for value, count in self.bins.items():
            passed += count
            if passed >= rank:
                return value
        return None


class DistributionReader(SpanReader[Aggregate, Distribution]):
    """One group of `Percentiles` with a `time`, over spans of it. Made by `Counters.window`.

    Examples
    --------
    >>> latency = counters.window(LATENCY, route="/")  # doctest: +SKIP
    >>> latency.last(timedelta(hours=24)).p(0.99), latency.calendar("day", "Europe/Berlin").p(0.5)  # doctest: +SKIP
    (Decimal('812.5'), Decimal('41.2'))
    """

    def _sum(self, span: Span, units: Sequence[Bucket], *, complete: bool) -> Distribution:
        return _distribution(self._declared, [bins for _, bins in units], span.interval, complete=complete)


def read_distribution(
    table: Table, counted: Aggregate, values: Mapping[str, object], *, consistent: bool
) -> Distribution:
    """The distribution of a group, by the aggregate that counts its bins."""
    values, complete = asked_group(table, counted, values, group_fields(counted))
    groups = [group for _, group in walk(table, counted, values, consistent=consistent)]
    return _distribution(counted, [numbers_of(counted, groups)], complete=complete)


def _distribution(
    declared: Aggregate, parts: Sequence[Mapping[str, Number]], span: Interval | None = None, *, complete: bool
) -> Distribution:
    bins = log_bins(Decimal(parts_of(declared.fields[-1])[1].removeprefix(LOG)))
    sums = dict[Decimal, Number]()
    for name, count in (pair for part in parts for pair in part.items()):
        value = bins.value_of(name)
        sums[value] = sums.get(value, 0) + count
    start, end = (None, None) if span is None else (utc(span.start), utc(span.end))
    return Distribution({value: sums[value] for value in sorted(sums)}, start, end, complete)


class WindowReads(TableReads):
    @overload
    def window(self, declaration: Window, values: Given = None, /, **fields: object) -> WindowReader: ...
    @overload
    def window(self, declaration: ActiveMembers, values: Given = None, /, **fields: object) -> ActiveReader: ...
    @overload
    def window(self, declaration: Percentiles, values: Given = None, /, **fields: object) -> DistributionReader: ...
    def window(
        self, declaration: Window | ActiveMembers | Percentiles, values: Given = None, /, **fields: object
    ) -> SpanReader[Any, Any]:
        """Return a reader of one group of what counts by time, over spans of it; no request.

        Parameters
        ----------
        declaration : Window, ActiveMembers or Percentiles
            Percentiles with a `time`.
        values, **fields
            The group, as in `get`.

        Returns
        -------
        WindowReader, ActiveReader or DistributionReader

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").last(timedelta(hours=24)).count  # doctest: +SKIP
        7
        """
        group = given(values, fields)
        if isinstance(declaration, ActiveMembers):
            return ActiveReader(self._table, declaration._parts[-1], group)
        if isinstance(declaration, Percentiles) and declaration.time is not None:
            return DistributionReader(self._table, declaration._parts[-1], group)
        return WindowReader(self._table, require_declaration(declaration, Window), group)

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
        now = self._table.clock()
        requested = [
            (window, values, trailing(require_declaration(window, Window), length, as_of, now))
            for window, values in wanted
        ]
        return count_intervals(self._table, requested, consistent=consistent)
