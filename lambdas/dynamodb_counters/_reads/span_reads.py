"""Counts over spans of time, as they are read: windows, active members, distributions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import localcontext
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar, overload

from dynamodb_counters import _tiers
from dynamodb_counters._declarations import BUCKET_FIELD, ActiveMembers, Aggregate, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.composites import longest_of, require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.measures import MOMENT
from dynamodb_counters._items.conversions import EXACT, Number, read_number, whole
from dynamodb_counters._items.schema import SK
from dynamodb_counters._reads import group_reads, question
from dynamodb_counters._reads.group_reads import Distribution, GroupReads, Values, distribution, query, resolve_group
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import TOTAL, Interval, Period, Span, plan_queries, read_cost, seconds_of, utc
from dynamodb_counters.errors import InvalidArgumentError

Bucket: TypeAlias = tuple[int, Mapping[str, Number]]  # The number of a bucket of its tier, and what it holds.
Part: TypeAlias = tuple[Span, Sequence[Bucket]]  # The part of an interval that a tier counts, and its buckets.


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
        The level times the seconds for which it held, added up: by 3,600, GB-hours; by all seconds, the average.
    opening, closing : int or Decimal
        The level at the start and at the end.
    start, end, complete
        As of a `WindowCount`.
    """

    value: Number
    opening: Number
    closing: Number
    start: datetime
    end: datetime
    complete: bool = True


def add_moments(span: Span, buckets: Iterable[Bucket]) -> Number:
    """Return the sum of changes of a level times the moments of these, in seconds since 1970."""
    total: Number = 0
    for bucket, numbers in buckets:
        moments = {name.removesuffix(MOMENT): number for name, number in numbers.items() if name.endswith(MOMENT)}
        total += add_up(span, [(bucket, moments)]) + span.tier.start(bucket) * add_up(span, [(bucket, numbers)])
    return total


def add_up(span: Span, buckets: Iterable[Bucket]) -> Number:
    """Return the sum of what buckets hold of a span, in their totals and slots."""
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


def queries_of(window: Window, intervals: Sequence[Interval]) -> list[Span]:
    """Return the Queries that read intervals one after the other: of a tier a single one where that costs no more."""
    spans = dict[str, list[Span]]()
    for span in chain.from_iterable(plan_queries(window._kept_tiers, interval) for interval in intervals):
        of_tier = spans.setdefault(span.tier.name, [span])
        joint = Span(span.tier, Interval(of_tier[-1].interval.start, span.interval.end))
        if read_cost([joint]) <= read_cost([of_tier[-1], span]):
            of_tier[-1] = joint
        else:
            of_tier.append(span)
    return [*chain.from_iterable(spans.values())]


def _read(
    table: Table, window: Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> tuple[list[list[Part]], bool]:
    """Read a group in one round trip: the parts of intervals one after the other, and whether it is complete."""
    texts, is_complete = resolve_group(table, window, values)
    queries, pk = queries_of(window, intervals), window._pk_template.render(texts)
    buckets = defaultdict[str, list[Bucket]](list)
    results = table.each(lambda span: _buckets(table, window, pk, span, consistent=consistent), queries)
    for span, result in zip(queries, results, strict=True):
        buckets[span.tier.name] += result
    plans = [plan_queries(window._kept_tiers, interval) for interval in intervals]
    return [[(span, _touched(span, buckets[span.tier.name])) for span in plan] for plan in plans], is_complete


def _buckets(table: Table, window: Window, pk: str, span: Span, *, consistent: bool) -> list[Bucket]:
    template, slots = window._sk_template, (TOTAL, *span.tier.slots)
    names = [attribute for slot in slots for attribute in window.measure._attributes(slot)]
    first, last = (template.render_texts([span.tier.letter, span.tier.text(bucket)]) for bucket in span.buckets)
    items = query(table, pk, (first, last), consistent=consistent)
    buckets = ((span.tier.parse(template.parse(item[SK]["S"])[BUCKET_FIELD]), item) for item in items)
    return [(bucket, {name: read_number(item, name) for name in names if name in item}) for bucket, item in buckets]


def _touched(span: Span, buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    (first, last), number = span.buckets, itemgetter(0)
    return buckets[bisect_left(buckets, first, key=number) : bisect_right(buckets, last, key=number)]


def read_spans(
    table: Table, declared: Aggregate | Window, values: Values, intervals: Sequence[Interval], *, consistent: bool
) -> list[Any]:
    """Read a group of what counts by time over each of some intervals; of what lies in pages, by the unit of time."""
    if isinstance(declared, Window):
        spans, complete = _read(table, declared, values, intervals, consistent=consistent)
        with localcontext(EXACT):
            sums = [[add_up(*part) for part in parts] for parts in spans]
            return [_count(*pair, complete) for pair in zip(intervals, sums, strict=True)]
    longest = max(timedelta(seconds=interval.end - interval.start) for interval in intervals)
    question.require_length(declared, longest)
    texts, complete = resolve_group(table, declared, values)
    whole_span = Interval(intervals[0].start, intervals[-1].end)
    units = [*group_reads.numbers_by_unit(table, declared, texts, whole_span, consistent=consistent)]
    parts = [(span, _touched(span, units)) for span in (Span(declared._tier, interval) for interval in intervals)]
    if longest_of(declared) is not None:
        return [_active(*part, complete) for part in parts]
    return [distribution(declared, [bins for _, bins in units], complete, span.interval) for span, units in parts]


def _count(interval: Interval, numbers: Iterable[Number], complete: bool) -> WindowCount:
    return WindowCount(whole(sum(numbers)), utc(interval.start), utc(interval.end), complete)


def _active(span: Span, units: Sequence[Bucket], complete: bool) -> WindowCount:
    first, _ = span.buckets
    # Each member of a span counts at the first unit of it at which it is active.
    counts = [count for unit, gaps in units for gap, count in gaps.items() if int(gap) > unit - first]
    return _count(span.interval, counts, complete)


Counted = TypeVar("Counted")


class WindowReader(Generic[Counted]):
    """One group of what counts by time, to be counted over spans of time. Made by `Counters.window`.

    Each call reads the table; all its Queries run at once, strongly consistent if `consistent`. Every result is a
    `WindowCount`, of `Percentiles` a `Distribution`. It states the interval it covers, which differs from the requested
    one by less than a unit of the declared precision at either end. All moments have a time zone, such as
    ``datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))``; an interval that is no longer retained is refused.

    Examples
    --------
    >>> jobs = counters.window(JOBS, customer="c1")  # doctest: +SKIP
    >>> jobs.last(timedelta(hours=24)).count, jobs.calendar("day", "Europe/Berlin").count  # doctest: +SKIP
    (7, 3)
    >>> counters.window(LATENCY, route="/").last(timedelta(hours=24)).p(0.99)  # doctest: +SKIP
    Decimal('812.5')
    """

    def __init__(self, table: Table, declared: Aggregate | Window, values: Values) -> None:
        self._table, self._declared, self._values = table, declared, values

    def last(self, length: timedelta, /, *, as_of: datetime | None = None, consistent: bool = False) -> Counted:
        """Count events in a trailing span of time.

        Parameters
        ----------
        length : timedelta
            Length of the span, two or more units of the precision. The unit that holds the end counts as the last one,
            so far.
        as_of : datetime, optional
            End of the span. Default: now.
        """
        return self._spans([question.trailing(self._declared, length, as_of, self._table.clock())], consistent)[0]

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
            A moment in the period, up to whose unit of precision to count. Default: now.
        """
        require_choice("period", period, _tiers.PERIODS)
        zone, first_day = question.calendar_of(self._declared, self._values, tz, anchor, period)
        now = self._table.clock()
        until = now if as_of is None else seconds_of("as_of", as_of)
        start, unit = _tiers.period_start(period, until, zone, first_day), self._declared._unit
        question.require_retained(self._declared, "period", start, now)
        end = Interval.ending_at(until, timedelta(seconds=unit), unit).end
        return self._spans([Interval(start // unit * unit, end)], consistent)[0]

    def between(self, start: datetime, end: datetime, *, consistent: bool = False) -> Counted:
        """Count events between two moments: in all units of precision that these touch."""
        return self._spans([self._around(start, end)], consistent)[0]

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
        step : timedelta or {"hour", "day", "week", "month", "year"}
            Steps of a length from `start` on, in whole units of the precision; or periods of a local calendar, the
            first and last of which are cut off at `start` and `end`.
        tz, anchor
            As in `calendar`.
        """
        calendar = question.calendar_of(self._declared, self._values, tz, anchor, step)
        steps = _tiers.steps(self._around(start, end), step, *calendar, self._declared._unit)
        return self._spans(steps, consistent)

    def rolling(
        self, start: datetime, end: datetime, length: timedelta | None = None, /, *, consistent: bool = False
    ) -> list[Counted]:
        """Count the `ActiveMembers` of a trailing span for each unit of time, as for a plot: all by one Query.

        Parameters
        ----------
        start, end : datetime
            The units that the spans end with: all that the interval touches.
        length : timedelta, optional
            Length of each span. Default: the longest that is declared.
        """
        if isinstance(self._declared, Window) or (longest := longest_of(self._declared)) is None:
            raise InvalidArgumentError("declaration", self._declared.name, "ActiveMembers")
        unit, ends = self._declared._unit, self._around(start, end)
        length = longest if length is None else length
        intervals = [Interval.ending_at(moment, length, unit) for moment in range(ends.start, ends.end, unit)]
        return self._spans(intervals, consistent)

    def integral(self, start: datetime, end: datetime, *, consistent: bool = False) -> Integral:
        """Add up a level over time between two moments, of a window whose measure is `TimeWeighted`.

        The result has the level at both of them, too. Reads the buckets of all that was before, too: a month each.
        """
        window = self._declared
        if not isinstance(window, Window) or not isinstance(window.measure, TimeWeighted):
            raise InvalidArgumentError("window", window.name, "one whose measure is TimeWeighted")
        interval = self._around(start, end)
        intervals = [Interval(_tiers.FIRST_SECOND, interval.start), interval]
        [earlier, within], complete = _read(self._table, window, self._values, intervals, consistent=consistent)
        with localcontext(EXACT):
            opening, change = (sum(add_up(*part) for part in parts) for parts in (earlier, within))
            moments = sum(add_moments(*part) for part in within)
            value = opening * (interval.end - interval.start) + interval.end * change - moments
            ends = utc(interval.start), utc(interval.end)
            return Integral(whole(value), whole(opening), whole(opening + change), *ends, complete)

    def _spans(self, intervals: Sequence[Interval], consistent: bool) -> list[Counted]:
        return read_spans(self._table, self._declared, self._values, intervals, consistent=consistent)

    def _around(self, start: datetime, end: datetime) -> Interval:
        return question.around(self._declared, start, end, self._table.clock())


class WindowReads(GroupReads):
    @overload
    def window(
        self, declaration: Window | ActiveMembers, values: Given = None, /, **fields: object
    ) -> WindowReader[WindowCount]: ...
    @overload
    def window(
        self, declaration: Percentiles, values: Given = None, /, **fields: object
    ) -> WindowReader[Distribution]: ...
    def window(
        self, declaration: Window | ActiveMembers | Percentiles, values: Given = None, /, **fields: object
    ) -> WindowReader[Any]:
        """Return a reader of one group of what counts by time, over spans of it; no request.

        Parameters
        ----------
        declaration : Window, ActiveMembers or Percentiles
            Percentiles with a `time`.
        """
        group = given(values, fields)
        if isinstance(declaration, ActiveMembers) or (isinstance(declaration, Percentiles) and declaration.time):
            return WindowReader(self._table, declaration._parts[-1], group)
        return WindowReader(self._table, require_declaration(declaration, Window), group)
