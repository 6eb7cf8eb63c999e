"""`counters_in_memory`: real `Counters` on a table in memory, whose stream is counted at once."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final, Literal, cast

from dynamodb_counters._backfill.feeds import Feeds, SourceTable
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declarable, Declaration, Items, flatten
from dynamodb_counters._fold.crossing_events import event_entry
from dynamodb_counters._fold.origins import table_of
from dynamodb_counters._items.table_schema import CROSSING, LEADERBOARD, PK, QUARANTINE, RANKING_INDEX, SCORE, SK, TYPE
from dynamodb_counters._quarantine.quarantine_items import STATE, WAITING, Quarantined, read_quarantine_item
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY
from dynamodb_counters.errors import CountersError, InvalidArgumentError
from dynamodb_counters.testing._counting import Counting, one_by_one
from dynamodb_counters.testing._dynamodb import request_checks
from dynamodb_counters.testing._dynamodb.memory_client import MemoryDynamoDB, paginator
from dynamodb_counters.testing._faults import Faults
from dynamodb_counters.testing._own_items import OwnItems
from dynamodb_counters.testing._test_clock import TestClock

START: Final = datetime(2026, 1, 1, tzinfo=UTC)

_SHARDS: Final = 3
"""Shards of a stream with faults; one without has a single shard."""

_LATEST_EXPIRY: Final = 2 * DAY
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html"""

_COUNTERS: Final = "counters"
_SOURCE: Final = "source"
_WRITES: Final = {"put_item", "update_item", "delete_item", "transact_write_items", "batch_execute_statement"}
_TOLD: Final = 5


class QuarantinedRecordsError(CountersError, AssertionError):
    """Records could not be counted; `entries` says which and why."""

    def __init__(self, entries: list[Quarantined]) -> None:
        told = [f"- {entry.reason}: {entry.content}" for entry in entries[:_TOLD]]
        told += [f"- and {len(entries) - _TOLD} more"] if len(entries) > _TOLD else []
        super().__init__("\n".join([f"{len(entries)} quarantined, so not counted:", *told]))
        self.entries = entries


class CountersInMemory(Counters):
    """`Counters` on a table in memory; `counters_in_memory` makes them.

    Every read and write of `Counters` is the real one. When a write returns, the real aggregator has counted it.
    """

    def __init__(self, declarations: tuple[Declaration, ...], now: datetime, seed: int, faults: Faults) -> None:
        rng = random.Random(seed)
        shards = _SHARDS if faults else 1
        self._clock = TestClock(now, self._expire_until)
        self._memory = MemoryDynamoDB(self._clock)
        counted = self._memory.create(_COUNTERS, PK, SK, seed=rng.getrandbits(32), shards=shards)
        counted.indexes[RANKING_INDEX] = (LEADERBOARD, SCORE)
        sources = [declared.source for declared in declarations]
        keys = next((one.keys for one in sources if isinstance(one, Items) and one.keys is not None), None)
        if keys is not None:
            names = [name for name in (keys.partition_key, keys.sort_key) if name is not None]
            self._memory.create(_SOURCE, *names, seed=rng.getrandbits(32), shards=shards, ttl=keys.ttl or "")
        self._tables = list(self._memory.tables.values())
        if faults.late_expiry:
            for table in self._tables:
                table.late = partial(_lateness, rng.getrandbits(32), faults.late_expiry)
        self._lock = threading.RLock()
        self._lost: list[Quarantined] = []
        self._client = _CountedClient(self._memory, self)
        super().__init__(_COUNTERS, client=self.client, clock=self._clock)
        one_by_one(self._table)
        self._counting = Counting(self._memory, declarations, self._clock, rng, faults)

    @property
    def client(self) -> Any:
        """A boto3 client of the tables in memory, for code under test; what it writes is counted at once.

        It has the calls this package makes: single items, transactions, ``query``, ``scan``, and PartiQL inserts.
        """
        return self._client

    @property
    def table(self) -> OwnItems:
        """Where your own items lie, with plain values: the source table if `Items` name their ``keys``, else this one.

        Keys are strings here.
        """
        return OwnItems(self._client, self._tables[-1].name)

    @property
    def table_name(self) -> str:
        """The name of the table of the counts, for the requests of `client`."""
        return _COUNTERS

    @property
    def clock(self) -> TestClock:
        """The time of the table, the aggregator and all reads."""
        return self._clock

    def require_all_counted(self) -> None:
        """Raise `QuarantinedRecordsError` if records wait in the quarantine, or have expired there."""
        if entries := [*self._lost, *self.quarantined()]:
            raise QuarantinedRecordsError(entries)

    def crossings(self) -> list[dict[str, Any]]:
        """Return the crossings of thresholds, in order: of each the detail of its event on EventBridge.

        Returns
        -------
        list of dict
            With ``threshold``, ``group``, ``level``, ``direction``, ``old``, ``new`` and the event's other members;
            numbers are `int` or `Decimal`.

        Examples
        --------
        >>> [each["level"] for each in counters.crossings()]  # doctest: +SKIP
        [Decimal('0.8'), 1]
        """
        items = [item for item in self._tables[0].items() if item.get(TYPE) == {"S": CROSSING}]
        details = [json.loads(event_entry(item, "", "")["Detail"], parse_float=Decimal) for item in items]
        # Several of one change stay in the order in which they were put.
        return sorted(details, key=itemgetter("at", "sequence"))

    def _feeds(self, streams: Any) -> Any:
        del streams  # They are in memory, too.
        own, *others = self._tables
        sources = [
            SourceTable(Table(each.name, self.client), table_of(each.stream.arn), each.keys, cast("Any", each.stream))
            for each in others
        ]
        return Feeds(cast("Any", own.stream), sources[0] if sources else None, 0.0)

    def _expire_until(self, until: float) -> None:
        with self._lock:
            while (due := min(table.next_expiry(self._clock()) for table in self._tables)) <= until:
                self._clock._set(due)  # noqa: SLF001
                for table in self._tables:
                    gone = (item for item in table.expire(due, None) if item.get(TYPE) == {"S": QUARANTINE})
                    self._lost += [read_quarantine_item(item) for item in gone if item.get(STATE) == {"S": WAITING}]
                self._counting.catch_up()
            self._clock._set(until)  # noqa: SLF001


class _CountedClient:
    """A client; what it writes is counted before the call returns, also if it fails."""

    def __init__(self, memory: MemoryDynamoDB, counters: CountersInMemory) -> None:
        self._memory, self._counters = memory, counters
        self.exceptions, self.meta = memory.exceptions, memory.meta

    def __getattr__(self, name: str) -> Any:
        if name not in request_checks.operations():
            raise AttributeError(f"a client of DynamoDB has no {name!r}")

        def checked(**request: Any) -> Any:
            request_checks.check(request_checks.operations()[name], request)
            call = getattr(self._memory, name)
            if name not in _WRITES:
                return call(**request)
            with self._counters._lock:  # noqa: SLF001
                answer = call(**request)
                self._counters._counting.catch_up()  # noqa: SLF001
                return answer

        return checked

    def get_paginator(self, operation: str) -> Any:
        if operation not in ("query", "scan"):
            raise NotImplementedError(f"a paginator of {operation} is not known in memory")
        return paginator(getattr(self, operation))


@contextmanager
def counters_in_memory(
    declarations: Iterable[Declarable],
    *,
    now: datetime = START,
    seed: int = 0,
    faults: Faults | None = None,
    quarantine: Literal["raise", "keep"] = "raise",
) -> Iterator[CountersInMemory]:
    """Count in memory, at once, by the code that runs in Lambda: for the tests of your code.

    No AWS account, no network, no threads, no waiting. The same `seed` gives the same run.

    Parameters
    ----------
    declarations : iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles or Extremes
        Declarations to count by, and each `Threshold` to watch them by.
    now : datetime, optional
        Where the clock begins, with a time zone. Default 2026-01-01T00:00Z.
    seed : int, optional
        Decides shards, sequence numbers and faults. Default 0.
    faults : Faults, optional
        Faults between a write and its count. Default: none.
    quarantine : {"raise", "keep"}, optional
        Reaction at the end to records that could not be counted. Default ``"raise"``: `QuarantinedRecordsError`.
        ``"keep"``: nothing; ``counters.quarantined()`` lists them.

    Yields
    ------
    CountersInMemory
        `Counters` with a ``clock``, a ``client`` and a ``table``.

    Raises
    ------
    InvalidArgumentError
        An argument is refused, or the declarations contradict each other.
    QuarantinedRecordsError
        At the end: records could not be counted, such as events without an attribute that is summed.

    Examples
    --------
    >>> from dynamodb_counters import Aggregate, Count, Event
    >>> view = Event("view", pk="URL#{url}", sk="T#{time}")
    >>> views = Aggregate("views", view, pk="URL#{url}", sk="STATISTICS", views=Count())
    >>> with counters_in_memory([views], faults=Faults(redeliver=0.5)) as counters:
    ...     outcome = counters.accept(view, {"url": "/", "time": "2026-01-01T00:00:00Z"})
    ...     counters.get(views, url="/").measures
    {'views': 1}
    """
    if not isinstance(seed, int):
        raise InvalidArgumentError("seed", seed, "an int")
    if not isinstance(faults, Faults | None):
        raise InvalidArgumentError("faults", faults, "a Faults, or None")
    if quarantine not in ("raise", "keep"):
        raise InvalidArgumentError("quarantine", quarantine, "'raise' or 'keep'")
    try:
        flat = flatten(declarations)
    except (AttributeError, TypeError):
        expected = "an iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles or Extremes"
        raise InvalidArgumentError("declarations", declarations, expected) from None
    counters = CountersInMemory(flat, now, seed, faults or Faults())
    yield counters
    if quarantine == "raise":
        counters.require_all_counted()


def _lateness(seed: int, probability: float, item: dict[str, Any]) -> float:
    """How long after it has expired an item is deleted: the same each time it is asked."""
    rng = random.Random(f"{seed} {sorted(item.items(), key=str)}")
    return rng.uniform(0, _LATEST_EXPIRY) if rng.random() < probability else 0.0
