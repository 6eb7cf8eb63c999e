"""Active members as they are read: over any span, as a rolling series, and how they grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from dynamodb_counters._declarations import ActiveMembers, Aggregate
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.kinds import group_fields, require_declaration
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._reads.page_reads import numbers_by_unit
from dynamodb_counters._reads.span_reader import SpanReader
from dynamodb_counters._reads.table_reads import TableReads, current
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import utc
from dynamodb_counters.errors import InvalidArgumentError

_Gaps: TypeAlias = Mapping[int, Number]
"""Members that are active in a unit, by how many units ago they were active before."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The members that are active in a unit of time, by when they were active before.

    Parameters
    ----------
    start, end : datetime
        The unit in UTC, start included, end excluded.
    retained : int
        Active in the unit before, too.
    returning : int
        Not active in the unit before, but less than the longest span ago.
    arrived : int
        New, or not active for the longest span.

    Examples
    --------
    >>> Growth(datetime(2026, 11, 20), datetime(2026, 11, 21), retained=60, returning=30, arrived=10).active
    100
    """

    start: datetime
    end: datetime
    retained: Number
    returning: Number
    arrived: Number

    @property
    def active(self) -> Number:
        """All members that are active in the unit."""
        return self.retained + self.returning + self.arrived


class ActiveReader(SpanReader[Aggregate, WindowCount]):
    """One group of `ActiveMembers`: how many different members were active. Made by `Counters.active`.

    Examples
    --------
    >>> users = counters.active(USERS, url="/")  # doctest: +SKIP
    >>> users.last(days=30).count, users.today().count  # doctest: +SKIP
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

    def growth(self, start: datetime, end: datetime, *, consistent: bool = False) -> list[Growth]:
        """Divide the members of each unit of time by when they were active before, by one Query.

        Parameters
        ----------
        start, end, consistent
            As in `rolling`.

        Examples
        --------
        >>> [day.arrived for day in users.growth(monday, sunday)]  # doctest: +SKIP
        [12, 9, 7, 11, 5, 3, 8]
        """
        kept, values, _ = current(self._table, self._declared, self._values, group_fields)
        tier, around, longest = kept._tier, self._around(start, end), _longest(kept)
        held, found = self._gaps(kept, values, around, consistent=consistent), []
        for unit in range(tier.locate(around.start)[0], tier.locate(around.end - 1)[0] + 1):
            gaps = held.get(unit, {})
            arrived = gaps.get(longest, 0)
            retained = gaps.get(1, 0) if longest > 1 else 0
            ends = utc(tier.start(unit)), utc(tier.end(unit))
            found.append(Growth(*ends, retained, sum(gaps.values()) - retained - arrived, arrived))
        return found

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[WindowCount]:
        kept, values, standing = current(self._table, self._declared, self._values, group_fields)
        tier = kept._tier
        spans = [range(tier.locate(each.start)[0], tier.locate(each.end - 1)[0] + 1) for each in intervals]
        for span in spans:
            if len(span) > _longest(kept):
                allowed = f"a span of at most {_longest(kept)} {tier.name}s, the longest of {self._declared.name!r}"
                raise InvalidArgumentError("length", f"{len(span)} {tier.name}s", allowed)
        held = self._gaps(kept, values, Interval(intervals[0].start, intervals[-1].end), consistent=consistent)
        return [
            WindowCount(_active(held, span), utc(each.start), utc(each.end), *standing)
            for span, each in zip(spans, intervals, strict=True)
        ]

    def _gaps(
        self, kept: Aggregate, values: Mapping[str, str], span: Interval, *, consistent: bool
    ) -> dict[int, _Gaps]:
        """The members of each unit of a span, by their gaps."""
        units = numbers_by_unit(self._table, kept, values, span, consistent=consistent)
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
        >>> counters.active(USERS, url="/").last(days=30).count  # doctest: +SKIP
        1204
        """
        require_declaration(members, ActiveMembers, "members")
        return ActiveReader(self._table, members._active, given(values, fields))


def _longest(kept: Aggregate) -> int:
    """The longest span of a generation, in units."""
    assert isinstance(kept.source, Aggregate)
    return kept.source._longest


def _active(gaps: Mapping[int, _Gaps], units: Iterable[int]) -> Number:
    """The members of a span: each counts at the first unit of it at which it is active."""
    first, count = min(units), 0
    return sum((n for unit in units for gap, n in gaps.get(unit, {}).items() if gap > unit - first), count)
