"""`Counters`: one table's events and counts, for the code that writes and reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynamodb_counters._declarations import Aggregate, Declaration, Event
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._reads.group_reads import GroupReads
from dynamodb_counters._reads.rankings import RankingReads
from dynamodb_counters._reads.window_reads import WindowReads
from dynamodb_counters._stream import quarantine
from dynamodb_counters._stream.quarantine import Quarantined
from dynamodb_counters._table import Bulk, Table, make_client
from dynamodb_counters._writes import accept
from dynamodb_counters._writes import record_once as record
from dynamodb_counters._writes.accept import Outcome

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class Counters(GroupReads, RankingReads, WindowReads):
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
