"""Statements: the count of a billing period, which stands once the period is closed.

An event that comes later is an adjustment of the next period that is closed. A closed period keeps what all
periods up to it were billed together, so an adjustment is the difference to what they count now: nothing is billed
twice, or never, whatever arrives between two reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta, tzinfo
from decimal import localcontext
from itertools import islice
from typing import Final, TypeAlias

from dynamodb_counters._declarations import Declaration, Window
from dynamodb_counters._items.bookkeeping import bookkeeping_item
from dynamodb_counters._items.decimals import EXACT, read_number, typed_number, whole
from dynamodb_counters._items.escaping import LAST_CHARACTER
from dynamodb_counters._items.key_templates import key_template
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, MAX_PK_BYTES, PK, SK
from dynamodb_counters._reads.bucket_queries import Asked, Values, count_intervals, require_retained
from dynamodb_counters._reads.span_reader import SpanReader
from dynamodb_counters._reads.table_reads import Item, current, query
from dynamodb_counters._reads.window_counts import Statement, WindowCount
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import Period, named_period, time_zone
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import utc
from dynamodb_counters.errors import IncompleteError, InvalidArgumentError

CLOSED: Final = "CLOSED"
"""Starts the sort keys of closed periods, which are numbered: of two that are closed at once, one comes first."""

_PREFIX: Final = f"{CHECKPOINT_PREFIX}closed~"
_PAGE: Final = 20

Check: TypeAlias = Callable[[Sequence[Asked]], None]


class BillingReader(SpanReader[Window, WindowCount]):
    """One group of a window by billing periods. Part of `WindowReader`."""

    def statement(
        self,
        period: Period,
        of: str | None = None,
        tz: str | tzinfo = "UTC",
        *,
        anchor: int = 1,
        consistent: bool = False,
    ) -> Statement:
        """Read the statement of a billing period: its numbers as they stand if it is closed, else as they are now.

        Parameters
        ----------
        period : {"day", "week", "month", "year"}
        of : str, optional
            The period: ``"2026-10-03"``, ``"2026-W40"``, ``"2026-10"`` or ``"2026"``. Default: the current one.
        tz, anchor, consistent
            As in `calendar`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").statement("month", "2026-10", "Europe/Berlin").total  # doctest: +SKIP
        31
        """
        return read_statements(self._table, [self._asked(period, of, tz, anchor)], consistent=consistent)[0]

    def close(self, period: Period, of: str, tz: str | tzinfo = "UTC", *, anchor: int = 1) -> Statement:
        """Close a billing period that has ended: from now on its numbers stand; closing it again returns them.

        Events that come later, or are taken back, are in the `adjustment` of the next period that is closed: the
        totals of closed periods add up to what they count. Periods are closed one after the other; the window must keep
        its buckets for good. Costs a write unit, and a read of all closed periods.

        Parameters
        ----------
        period, of, tz, anchor
            As in `statement`; the same `tz` and `anchor` as for the period before.

        Raises
        ------
        InvalidArgumentError
            The period has not ended, does not follow the last closed one, or the window has a retention.
        IncompleteError
            The window waits for a backfill.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").close("month", "2026-10", "Europe/Berlin").closed_at  # doctest: +SKIP
        datetime.datetime(2026, 11, 3, 9, 0, tzinfo=datetime.timezone.utc)
        """
        return close_period(self._table, self._asked(period, of, tz, anchor), (period, of))

    def closed(self) -> list[Statement]:
        """Read the statements of all closed periods, in order.

        Examples
        --------
        >>> sum(period.total for period in counters.window(JOBS, customer="c1").closed())  # doctest: +SKIP
        93
        """
        return closed_periods(self._table, self._declared, self._values)

    def _asked(self, period: str, of: str | None, tz: str | tzinfo, anchor: int) -> Asked:
        now = self._table.clock()
        interval = billing_period(self._declared, period, of, time_zone(tz), now, anchor=anchor)
        require_retained(self._declared, "of", interval.start, now)
        return self._declared, self._values, interval


def billing_period(
    declared: Declaration, period: str, of: str | None, zone: tzinfo, now: float, *, anchor: int
) -> Interval:
    """The period with a name, or the current one; refused if it does not begin and end on whole units."""
    start, end = named_period(period, of, zone, now, anchor=anchor)
    if start % declared._unit or end % declared._unit:
        unit = timedelta(seconds=declared._unit)
        allowed = f"a time zone whose {period}s begin on units of {unit}, the precision of {declared.name!r}"
        raise InvalidArgumentError("tz", str(zone), allowed)
    return Interval(start, end)


def read_statements(
    table: Table, asked: Sequence[Asked], *, consistent: bool, check: Check = lambda _: None
) -> list[Statement]:
    """The statements of windows for a period each, in two round trips; a `check` sees what the second one counts."""
    closed = table.each(lambda one: _closed_around(table, *one), asked)
    left = [(one, last) for one, (found, last) in zip(asked, closed, strict=True) if found is None]
    counted = _counted(table, left, check, consistent=consistent)
    return [next(counted) if found is None else _statement(found) for found, _ in closed]


def close_period(table: Table, asked: Asked, named: tuple[str, str]) -> Statement:
    """Close a period, or return it as it stands; a refusal has the kind and name it was `named` by."""
    window, values, interval = asked
    if {window.retention, current(table, window, values)[0].retention} != {None}:
        raise InvalidArgumentError("window", window.name, "one with retention=None: closed periods are counted again")
    found, last = _closed_around(table, *asked)
    if found is not None:
        return _statement(found)
    kind, name = named
    if interval.end > table.clock():
        raise InvalidArgumentError(kind, name, f"one that has ended; it ends at {utc(interval.end)}")
    if last is not None and _whole(last, "end") != interval.start:
        follows = f"the one that follows the last closed one, from {utc(_whole(last, 'end'))} on"
        raise InvalidArgumentError(kind, name, f"{follows}, in its time zone and from its anchor")
    [statement] = _counted(table, [(asked, last)], lambda _: None, consistent=True)
    if not statement.complete:
        raise IncompleteError(f"{window.name!r} does not count everything yet: its periods cannot be closed")
    number = 1 if last is None else _whole(last, "number") + 1
    with localcontext(EXACT):
        through = read_number(last or {}, "through") + statement.total
    item = bookkeeping_item(
        {PK: {"S": _partition(window, values)}, SK: {"S": f"{CLOSED}#{number:06d}"}},
        {
            "window": window.name,
            "number": number,
            "start": interval.start,
            "end": interval.end,
            "first": interval.start if last is None else _whole(last, "first"),
            "closed": int(table.clock()),
        },
    )
    numbers = {"count": statement.count, "adjustment": statement.adjustment, "through": through}
    item |= {name: typed_number(number) for name, number in numbers.items()}
    if not table.write("put_item", Item=item, ConditionExpression=f"attribute_not_exists({PK})"):
        # Another process has closed it first, or another period; or this one has, and the answer was lost.
        return close_period(table, asked, named)
    return _statement(item)


def closed_periods(table: Table, window: Window, values: Values, *, last: int | None = None) -> list[Statement]:
    """The last closed periods of a group, or all, in order."""
    newest = islice(_newest_closed(table, window, values, last), last)
    return [*map(_statement, newest)][::-1]


def window_of_closed(key: str) -> str:
    """The window whose closed periods lie in a partition; "" if it is another's."""
    return key.removeprefix(_PREFIX).partition("#")[0] if key.startswith(_PREFIX) else ""


def _counted(
    table: Table, left: Sequence[tuple[Asked, Item | None]], check: Check, *, consistent: bool
) -> Iterator[Statement]:
    """Statements of open periods, each with the last closed one of its group."""
    both = list[Asked]()
    for (window, values, period), last in left:
        # The closed periods that this one comes right after; none if it does not.
        follows = last is not None and _whole(last, "end") == period.start
        first = _whole(last, "first") if last is not None and follows else period.start
        both += [(window, values, period), (window, values, Interval(first, period.start))]
    check(both)
    counts = iter(count_intervals(table, both, consistent=consistent))
    for _, last in left:
        own, again = next(counts), next(counts)
        with localcontext(EXACT):
            billed = read_number(last or {}, "through") if again.start < again.end else 0
            adjustment = whole(again.count - billed)
        yield Statement(own.count, adjustment, own.start, own.end, None, own.complete, own.as_declared)


def _closed_around(table: Table, window: Window, values: Values, interval: Interval) -> tuple[Item | None, Item | None]:
    """A period's own item if it is closed, and the last closed one of the group."""
    last = None
    for item in _newest_closed(table, window, values, _PAGE):
        last = last or item
        if _whole(item, "start") <= interval.start:
            is_own = (_whole(item, "start"), _whole(item, "end")) == (interval.start, interval.end)
            return item if is_own else None, last
    return None, last


def _newest_closed(table: Table, window: Window, values: Values, page: int | None) -> Iterator[Item]:
    current(table, window, values)
    options = {"ScanIndexForward": False, "PaginationConfig": {"PageSize": page}}
    return query(table, _partition(window, values), (CLOSED, CLOSED + LAST_CHARACTER), consistent=True, **options)


def _partition(window: Window, values: Values) -> str:
    """The partition of a group's closed periods; the group as in the window's key."""
    template = key_template(f"{_PREFIX}{window.name}#{{group}}", MAX_PK_BYTES, "name")
    return template.render({"group": window._pk_template.render(values)})


def _whole(item: Item, name: str) -> int:
    return int(item[name]["N"])


def _statement(item: Item) -> Statement:
    start, end, closed = (utc(_whole(item, name)) for name in ("start", "end", "closed"))
    return Statement(read_number(item, "count"), read_number(item, "adjustment"), start, end, closed)
