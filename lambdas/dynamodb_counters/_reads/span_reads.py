"""Active members and distributions, as they are read over spans of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import TypeAlias

from dynamodb_counters._declarations import ActiveMembers, Aggregate, Percentiles
from dynamodb_counters._declarations.composites import group_fields, require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._items.conversions import Number
from dynamodb_counters._items.derived_fields import LOG, log_bins, parts_of
from dynamodb_counters._reads.table_reads import TableReads, asked_group, numbers_by_unit, numbers_of, walk
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import SpanReader
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import Interval, utc
from dynamodb_counters.errors import InvalidArgumentError

_Gaps: TypeAlias = Mapping[int, Number]
"""Members that are active in a unit, by how many units ago they were active before."""


class ActiveReader(SpanReader[Aggregate, WindowCount]):
    """One group of `ActiveMembers`: how many different members were active. Made by `Counters.active`.

    Examples
    --------
    >>> users = counters.active(USERS, url="/")  # doctest: +SKIP
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
        declared, (values, complete) = self._declared, self._group()
        tier = declared._tier
        spans = [range(tier.locate(each.start)[0], tier.locate(each.end - 1)[0] + 1) for each in intervals]
        for span in spans:
            if len(span) > _longest(declared):
                allowed = f"a span of at most {_longest(declared)} {tier.name}s, the longest of {self._declared.name!r}"
                raise InvalidArgumentError("length", f"{len(span)} {tier.name}s", allowed)
        gaps = self._gaps(declared, values, Interval(intervals[0].start, intervals[-1].end), consistent=consistent)
        return [
            WindowCount(_active(gaps, span), utc(each.start), utc(each.end), complete)
            for span, each in zip(spans, intervals, strict=True)
        ]

    def _gaps(
        self, declared: Aggregate, values: Mapping[str, str], span: Interval, *, consistent: bool
    ) -> dict[int, _Gaps]:
        """The members of each unit of a span, by their gaps."""
        units = numbers_by_unit(self._table, declared, values, span, consistent=consistent)
        return {unit: {int(gap): count for gap, count in gaps.items()} for unit, gaps in units}


class ActiveReads(TableReads):
    def active(self, members: ActiveMembers, values: Given = None, /, **fields: object) -> ActiveReader:
        """Return a reader of one group of active members; no request.

        Parameters
        ----------
        members : ActiveMembers
        values, **fields
            The group, as in `get`.

        Examples
        --------
        >>> counters.active(USERS, url="/").last(timedelta(days=30)).count  # doctest: +SKIP
        1204
        """
        require_declaration(members, ActiveMembers, "members")
        return ActiveReader(self._table, members._active, given(values, fields))


def _longest(declared: Aggregate) -> int:
    """The longest span, in units."""
    assert isinstance(declared.source, Aggregate)
    return declared.source._longest


def _active(gaps: Mapping[int, _Gaps], units: Iterable[int]) -> Number:
    """The members of a span: each counts at the first unit of it at which it is active."""
    first, count = min(units), 0
    return sum((n for unit in units for gap, n in gaps.get(unit, {}).items() if gap > unit - first), count)


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
    """One group of `Percentiles` with a `time`, over spans of it. Made by `Counters.distributions`.

    Examples
    --------
    >>> latency = counters.distributions(LATENCY, route="/")  # doctest: +SKIP
    >>> latency.last(timedelta(hours=24)).p(0.99), latency.calendar("day", "Europe/Berlin").p(0.5)  # doctest: +SKIP
    (Decimal('812.5'), Decimal('41.2'))
    """

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[Distribution]:
        declared, (values, complete) = self._declared, self._group()
        whole, unit = Interval(intervals[0].start, intervals[-1].end), declared._tier
        units = [*numbers_by_unit(self._table, declared, values, whole, consistent=consistent)]
        return [
            _distribution(
                declared,
                [bins for at, bins in units if each.start <= unit.start(at) < each.end],
                each,
                complete=complete,
            )
            for each in intervals
        ]


class DistributionReads(TableReads):
    def distribution(
        self, percentiles: Percentiles, values: Given = None, /, *, consistent: bool = False, **fields: object
    ) -> Distribution:
        """Read how the values of a group are distributed.

        Parameters
        ----------
        percentiles : Percentiles
            One without a `time`.
        values, consistent, **fields
            As in `get`.

        Examples
        --------
        >>> counters.distribution(SIZES, url="/").p(0.95)  # doctest: +SKIP
        Decimal('8120.4')
        """
        require_declaration(percentiles, Percentiles)
        if percentiles.time is not None:
            raise InvalidArgumentError("percentiles", percentiles.name, "those without a `time`; use distributions()")
        return read_distribution(self._table, percentiles._counted, given(values, fields), consistent=consistent)

    def distributions(self, percentiles: Percentiles, values: Given = None, /, **fields: object) -> DistributionReader:
        """Return a reader of one group over spans of time; no request.

        Parameters
        ----------
        percentiles : Percentiles
            One with a `time`.
        values, **fields
            The group, as in `get`.

        Examples
        --------
        >>> counters.distributions(LATENCY, route="/").last(timedelta(hours=1)).p(0.99)  # doctest: +SKIP
        Decimal('812.5')
        """
        require_declaration(percentiles, Percentiles)
        if percentiles.time is None:
            raise InvalidArgumentError("percentiles", percentiles.name, "Percentiles with a `time`; use distribution()")
        return DistributionReader(self._table, percentiles._counted, given(values, fields))


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
