"""`Counters`: one table's events and counts, for the code that writes and reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynamodb_counters.decimals import Number
from dynamodb_counters.declarations import Aggregate, Declaration, Distinct, Event, Histogram
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.groups import Group
from dynamodb_counters.store import accept, groups, quarantine, rankings, record
from dynamodb_counters.store.accept import Outcome
from dynamodb_counters.store.quarantine import Quarantined
from dynamodb_counters.store.rankings import Ranked
from dynamodb_counters.store.table import Bulk, Table, make_client
from dynamodb_counters.window_reads import WindowReads

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class Counters(WindowReads):
    """Events and counts of one table.

    Parameters
    ----------
    table_name : str
        Name or ARN of the table.
    client : DynamoDBClient, optional
        Default: one made for concurrent use.
    bulk : {"partiql", "put"}, optional
        How `accept_many` inserts: by PartiQL statements, 25 a call, or by a PutItem each, at the same write units but
        25 times the calls: for engines and policies without PartiQL. Default ``"partiql"``.
    clock : callable, optional
        Gives seconds since 1970. Default ``time.time``.

    Examples
    --------
    >>> counters = Counters("my-table")  # doctest: +SKIP
    >>> counters.accept(VIEW, {"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": "c1"})  # doctest: +SKIP
    Outcome(status='accepted', reason=None)
    """

    def __init__(
        self,
        table_name: str,
        *,
        client: DynamoDBClient | None = None,
        bulk: Bulk = "partiql",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = Table(table_name, client or make_client(), bulk, clock)

    def accept(self, event: Event, values: Mapping[str, Any]) -> Outcome:
        """Insert an event unless it is there; the stream counts it.

        Parameters
        ----------
        event : Event
            What kind of event.
        values : mapping of str to object
            Its attributes: anything DynamoDB can store; no floats, which are not exact.

        Returns
        -------
        Outcome
            Accepted, duplicate, rejected or failed.
        """
        return accept.accept(self._table, event, values)

    def accept_many(self, event: Event, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        """Insert many events, each unless it is there, 25 a call and many calls at once.

        Parameters
        ----------
        event : Event
            What kind of events.
        events : iterable of mapping
            Their attributes.

        Returns
        -------
        list of Outcome
            One an event, in their order.
        """
        return accept.accept_many(self._table, event, events)

    def record_once(self, event: Event, values: Mapping[str, Any], declarations: Iterable[Declaration]) -> Outcome:
        """Insert an event and count it in one transaction; the counts are current when the call returns.

        Costs twice the write units of `accept` and its counting, and a hot counter conflicts: use it where the caller
        must read its own count at once.

        Parameters
        ----------
        event : Event
            What kind of event.
        values : mapping of str to object
            Its attributes.
        declarations : iterable of Aggregate and Window
            What to count it in, at most 99 items.

        Returns
        -------
        Outcome
            Accepted, duplicate, rejected or failed.
        """
        return record.record_once(self._table, event, values, declarations)

    def increment(
        self, aggregate: Aggregate, values: Mapping[str, object], by: Mapping[str, Number] | Number = 1
    ) -> dict[str, Any]:
        """Add to a group at once. Not idempotent: a retried call counts twice.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            Its group.
        by : int, Decimal or mapping, optional
            What to add, by measure; a number alone for an aggregate of one measure. Default 1.

        Returns
        -------
        dict of str to int, Decimal, mapping or None
            All measures after it; of a spread group, those of the one item that was written.
        """
        return record.increment(self._table, aggregate, values, by)

    def retract(self, event: Event, values: Mapping[str, Any]) -> bool:
        """Delete an event; the stream takes back what it had counted.

        Parameters
        ----------
        event : Event
            What kind of event.
        values : mapping of str to object
            At least the attributes of its key.

        Returns
        -------
        bool
            Whether there was such an event.
        """
        return accept.retract(self._table, event, values)

    def reset(self, aggregate: Aggregate, values: Mapping[str, object]) -> dict[str, Any]:
        """Set a group's measures to 0; a redelivery of what was counted before counts nothing.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            Its group.

        Returns
        -------
        dict of str to int, Decimal, mapping or None
            All measures before it.
        """
        return record.reset(self._table, aggregate, values)

    def quarantined(self, *, released: bool = False) -> Iterator[Quarantined]:
        """List the records that could not be counted.

        Parameters
        ----------
        released : bool, optional
            Whether to include what was released already. Default False.

        Yields
        ------
        Quarantined
            By shard, in the order of the stream.
        """
        return quarantine.listed(self._table, released=released)

    def redrive(self, record: Quarantined) -> bool:
        """Release a record from quarantine, to be counted after all.

        Safe to repeat: a record is counted once, however often it is released. One that still cannot be counted comes
        back to quarantine as a new entry.

        Parameters
        ----------
        record : Quarantined
            From `quarantined`.

        Returns
        -------
        bool
            False if it was released before or has expired.
        """
        return quarantine.redrive(self._table, record)

    def get(self, aggregate: Aggregate, values: Mapping[str, object], *, consistent: bool = False) -> Group:
        """Read one group.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            Its group.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        Group
            With measures of 0 where nothing was counted.
        """
        return groups.get(self._table, aggregate, values, consistent=consistent)

    def get_many(
        self, wanted: Iterable[tuple[Aggregate, Mapping[str, object]]], *, consistent: bool = False
    ) -> list[Group]:
        """Read many groups, 100 a call and many calls at once.

        Parameters
        ----------
        wanted : iterable of (Aggregate, mapping)
            Aggregate and group, any number.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        list of Group
            In the order asked.
        """
        return groups.get_many(self._table, wanted, consistent=consistent)

    def group(
        self, aggregates: Sequence[Aggregate], values: Mapping[str, object], *, consistent: bool = False
    ) -> dict[str, list[Group]]:
        """Read all groups of some aggregates that share a partition key, by one Query.

        Parameters
        ----------
        aggregates : sequence of Aggregate
            Aggregates with one ``pk`` template, none spread; the ``parts`` of a `Hierarchy`, for one.
        values : mapping of str to str or number
            The fields of that template.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        dict of str to list of Group
            Groups by the aggregate's name.
        """
        return groups.group(self._table, aggregates, values, consistent=consistent)

    def distinct(self, declared: Distinct, values: Mapping[str, object], *, consistent: bool = False) -> int:
        """Read how many different members a group has.

        Parameters
        ----------
        declared : Distinct
            Which declaration.
        values : mapping of str to str or number
            The group.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        int
            Different members.
        """
        return int(self.get(declared.total, values, consistent=consistent).measures["distinct"])

    def histogram(
        self, aggregate: Aggregate, values: Mapping[str, object], measure: str, *, consistent: bool = False
    ) -> Mapping[Number, Number]:
        """Read a histogram.

        Parameters
        ----------
        aggregate : Aggregate
            Which aggregate.
        values : mapping of str to str or number
            The group.
        measure : str
            Name of the `Histogram`.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        mapping of number to number
            How many in each bin.

        Raises
        ------
        InvalidArgumentError
            The measure is no histogram.
        """
        if not isinstance(aggregate.measures.get(measure), Histogram):
            raise InvalidArgumentError("measure", measure, f"a Histogram of {aggregate.name!r}")
        bins: Mapping[Number, Number] = self.get(aggregate, values, consistent=consistent).measures[measure]
        return bins

    def top(self, aggregate: Aggregate, values: Mapping[str, object] | None = None, *, count: int = 10) -> list[Ranked]:
        """Read the first groups of a board.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        values : mapping of str to str or number, optional
            The fields of the board. Default: it has none.
        count : int, optional
            How many at most. Default 10.

        Returns
        -------
        list of Ranked
            Highest score first.
        """
        return rankings.top(self._table, aggregate, values or {}, count)

    def around(self, aggregate: Aggregate, values: Mapping[str, object], *, count: int = 5) -> list[Ranked]:
        """Read a group with its neighbours on the board.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        values : mapping of str to str or number
            The group.
        count : int, optional
            How many above it and how many below it at most. Default 5.

        Returns
        -------
        list of Ranked
            Highest score first, the group among them; empty if it was never counted.
        """
        return rankings.around(self._table, aggregate, values, count)
