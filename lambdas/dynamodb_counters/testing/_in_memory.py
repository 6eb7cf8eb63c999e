"""`counters_in_memory`: real `Counters` on tables in moto, whose streams are counted at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declarable, Declaration, Items, TableKeys, flatten, require_consistent
from dynamodb_counters._fold.crossing_events import event_entry
from dynamodb_counters._fold.records import table_of
from dynamodb_counters._items.table_schema import CROSSING, PK, QUARANTINE, SK, TYPE
from dynamodb_counters._quarantine.quarantine import STATE, WAITING, Quarantined, read_quarantine_item
from dynamodb_counters._table import Bulk, Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import CountersError, InvalidArgumentError
from dynamodb_counters.testing import _moto

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LISTED: Final = 5


class TestClock:
    """A clock that moves only by `advance`; call it for seconds since 1970.

    `counters_in_memory` makes it: ``counters.clock``.
    """

    __test__ = False
    """It is no test, whatever pytest makes of its name."""

    def __init__(self, now: datetime, expire: Callable[[float], None]) -> None:
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidArgumentError("now", now, "a datetime with a time zone")
        self._seconds = now.timestamp()
        self._expire = expire

    def __call__(self) -> float:
        return self._seconds

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.fromtimestamp(self._seconds, UTC)

    def advance(self, duration: timedelta) -> None:
        """Let time pass; items whose TTL is over on the way expire at their time, and that is counted.

        DynamoDB itself may take days to delete an expired item. Reads never count one that is still there.

        Parameters
        ----------
        duration : timedelta
            How far; not negative.

        Raises
        ------
        InvalidArgumentError
            If time would go back.
        """
        if not isinstance(duration, timedelta) or duration < timedelta(0):
            raise InvalidArgumentError("duration", duration, "a timedelta that is not negative")
        self._expire(self._seconds + duration.total_seconds())

    def _set(self, seconds: float) -> None:
        self._seconds = max(self._seconds, seconds)


class OneByOne(Executor):
    """A thread pool without threads: everything runs in its order."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call the function at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


def one_by_one(table: Table) -> Table:
    """Let a table send its requests one after the other; return it."""
    vars(table)["pool"] = OneByOne()
    return table


class QuarantinedRecordsError(CountersError, AssertionError):
    """Records could not be counted; `entries` says which and why."""

    def __init__(self, entries: list[Quarantined]) -> None:
        lines = [f"- {entry.reason}: {entry.content}" for entry in entries[:_LISTED]]
        lines += [f"- and {len(entries) - _LISTED} more"] if len(entries) > _LISTED else []
        super().__init__("\n".join([f"{len(entries)} quarantined, so not counted:", *lines]))
        self.entries = entries


class CountersInMemory(Counters):
    """`Counters` on tables in moto; `counters_in_memory` makes them.

    Every read and write of `Counters` is the real one. When a write returns, the real aggregator has counted it.
    """

    _bulk: Bulk = "put"
    """moto takes no parameters in a PartiQL INSERT."""

    def __init__(self, declarations: tuple[Declaration, ...], now: datetime) -> None:
        self._clock = TestClock(now, self._expire_until)
        self._lock = threading.RLock()
        self._expired: list[Quarantined] = []
        sources = [declared.source for declared in declarations]
        keys = next((one.keys for one in sources if isinstance(one, Items) and one.keys is not None), None)
        self._client, self._tables = self._open(keys)
        super().__init__(self._tables[0].name, client=self._client, bulk=self._bulk, clock=self._clock)
        one_by_one(self._table)
        self._start(declarations)

    @property
    def client(self) -> Any:
        """A boto3 client of the tables, for code under test; what it writes is counted at once."""
        return self._client

    @property
    def table(self) -> Any:
        """boto3's ``Table`` where your own items lie: the source table if `Items` name their ``keys``, else this one.

        What it writes is counted at once. Keys are strings here.
        """
        resource = _moto.make_resource(self._tables[-1].name)
        self._count_writes_of(resource.meta.client)
        return resource

    @property
    def table_name(self) -> str:
        """The name of the table of the counts, for the requests of `client`."""
        return self._table.name

    @property
    def clock(self) -> TestClock:
        """The time of the table, the aggregator and all reads."""
        return self._clock

    def require_all_counted(self) -> None:
        """Raise `QuarantinedRecordsError` if records wait in the quarantine, or have expired there."""
        if entries := [*self._expired, *self.quarantined()]:
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
        return sorted(details, key=_crossing_order)

    def _open(self, keys: TableKeys | None) -> tuple[Any, Sequence[Any]]:
        """Return a client, and the table of the counts with the source table if there is one."""
        client = _moto.make_client()
        tables = [_moto.MotoTable.create(client, (PK, SK), "ttl", self._clock)]
        if keys is not None:
            names = tuple(name for name in (keys.partition_key, keys.sort_key) if name is not None)
            tables.append(_moto.MotoTable.create(client, names, keys.ttl or "", self._clock))
        return client, tables

    def _start(self, declarations: tuple[Declaration, ...]) -> None:
        """Let the aggregator count what is written from now on."""
        reached = Table(self._table.name, _moto.make_client(), self._bulk, self._clock, lambda _: None)
        source = table_of(self._tables[-1].stream_arn) if len(self._tables) > 1 else None
        make = partial(Aggregator, one_by_one(reached), declarations, quarantine_retention_seconds=14 * DAY)
        make().handle({})  # Without a source table, whose items may be older, all names are complete.
        self._aggregator = make(source_table=source)
        self._aggregator.handle({})
        self._count_writes_of(self._client)

    def _count_writes_of(self, client: Any) -> None:
        call: Callable[..., Any] = client._make_api_call  # noqa: SLF001

        def counted(*arguments: Any) -> Any:
            # moto checks a condition and writes in two steps, between which another thread may write.
            with self._lock:
                try:
                    return call(*arguments)
                finally:
                    self._catch_up()

        vars(client)["_make_api_call"] = counted

    def _catch_up(self) -> None:
        """Count what the streams have."""
        while batches := [(table.shard, records) for table in self._tables if (records := table.new_records())]:
            for shard, records in batches:
                self._aggregator.handle({"shardId": shard, "Records": records})

    def _expire_until(self, until: float) -> None:
        with self._lock:
            while (due := min(table.next_expiry(self._clock()) for table in self._tables)) <= until:
                self._clock._set(due)  # noqa: SLF001
                for table in self._tables:
                    entries = (item for item in table.expire(due) if item.get(TYPE) == {"S": QUARANTINE})
                    waiting = (item for item in entries if item.get(STATE) == {"S": WAITING})
                    self._expired += map(read_quarantine_item, waiting)
                self._catch_up()
            self._clock._set(until)  # noqa: SLF001


@contextmanager
def counters_in_memory(
    declarations: Iterable[Declarable],
    *,
    now: datetime = START,
    quarantine: Literal["raise", "keep"] = "raise",
) -> Iterator[CountersInMemory]:
    """Count in memory, at once, by the code that runs in Lambda: for the tests of your code.

    No AWS account, no network, no waiting. It is one of moto's ``mock_aws``: within it, all your clients of AWS talk to
    moto.

    Parameters
    ----------
    declarations : iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles or Extremes
        Declarations to count by, and each `Threshold` to watch them by.
    now : datetime, optional
        Where the clock begins, with a time zone. Default 2026-01-01T00:00Z.
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
    >>> with counters_in_memory([views]) as counters:
    ...     outcome = counters.accept(view, {"url": "/", "time": "2026-01-01T00:00:00Z"})
    ...     counters.get(views, url="/").measures
    {'views': 1}
    """
    flat = checked(declarations, quarantine)
    with _moto.mock_aws():
        counters = CountersInMemory(flat, now)
        yield counters
        if quarantine == "raise":
            counters.require_all_counted()


def checked(declarations: Iterable[Declarable], quarantine: str) -> tuple[Declaration, ...]:
    """Return the declarations, one by one; refuse what are none, and an unknown `quarantine`."""
    if quarantine not in ("raise", "keep"):
        raise InvalidArgumentError("quarantine", quarantine, "'raise' or 'keep'")
    try:
        flat = flatten(declarations)
    except (AttributeError, TypeError):
        expected = "an iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles or Extremes"
        raise InvalidArgumentError("declarations", declarations, expected) from None
    require_consistent(flat)
    return flat


def _crossing_order(detail: dict[str, Any]) -> Any:
    """Return the order in which a number has passed levels, several of them in one change, too."""
    level = detail["level"]
    return detail["at"], detail["sequence"], level if detail["direction"] == "up" else -level
