"""Distributions: the values of `Percentiles` as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import ceil

from dynamodb_counters._control.statuses import Standing
from dynamodb_counters._declarations import Aggregate, Percentiles
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.kinds import group_fields, require_declaration
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.derived_fields import LOG, parts_of
from dynamodb_counters._items.log_bins import log_bins
from dynamodb_counters._reads.page_reads import numbers_by_unit, numbers_of, walk
from dynamodb_counters._reads.span_reader import SpanReader
from dynamodb_counters._reads.table_reads import TableReads, current
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import utc
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values lie where: each bin stands for values that differ from it by at most the declared error.

    Parameters
    ----------
    bins : mapping of Decimal to int
        Numbers of values by what stands for them, in ascending order.
    start, end : datetime, optional
        The interval in UTC, start included, end excluded; None without a `time`.
    complete, as_declared : bool, optional
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
    as_declared: bool = True

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
    >>> latency.last(hours=24).p(0.99), latency.today("Europe/Berlin").p(0.5)  # doctest: +SKIP
    (Decimal('812.5'), Decimal('41.2'))
    """

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[Distribution]:
        kept, values, standing = current(self._table, self._declared, self._values, group_fields)
        whole, unit = Interval(intervals[0].start, intervals[-1].end), kept._tier
        held = [*numbers_by_unit(self._table, kept, values, whole, consistent=consistent)]
        return [
            _distribution(kept, [bins for at, bins in held if each.start <= unit.start(at) < each.end], standing, each)
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
        >>> counters.distributions(LATENCY, route="/").last(hours=1).p(0.99)  # doctest: +SKIP
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
    kept, values, standing = current(table, counted, values, group_fields)
    groups = [group for _, group in walk(table, kept, values, consistent=consistent)]
    return _distribution(kept, [numbers_of(kept, groups)], standing)


def _distribution(
    kept: Aggregate, parts: Sequence[Mapping[str, Number]], standing: Standing, span: Interval | None = None
) -> Distribution:
    bins = log_bins(Decimal(parts_of(kept.fields[-1])[1].removeprefix(LOG)))
    sums = dict[Decimal, Number]()
    for name, count in (pair for part in parts for pair in part.items()):
        value = bins.value_of(name)
        sums[value] = sums.get(value, 0) + count
    start, end = (None, None) if span is None else (utc(span.start), utc(span.end))
    return Distribution({value: sums[value] for value in sorted(sums)}, start, end, *standing)
