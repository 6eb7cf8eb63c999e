"""Tests of your own code: counters in memory, counted at once, with a clock that you move.

`counters_in_memory` makes real `Counters` on tables in moto, whose streams are counted at once and whose items expire.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, Final, Literal, cast

import boto3
from botocore.config import Config

from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.crossings import crossing_details
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declarable, Declaration, Items, TableKeys, flatten, require_consistent
from dynamodb_counters._fold.records import MAX_TTL_AGE, Record, table_of
from dynamodb_counters._items.schema import CROSSING, LEADERBOARD, PK, RANKING_INDEX, SCORE, SK, TYPE
from dynamodb_counters._quarantine import WAITING_ITEM, Quarantined, read_quarantine_item
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CountersError, InvalidArgumentError

try:
    from moto import mock_aws
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.dynamodb.models import dynamodb_backends
except ImportError as missing:
    message = 'counters in memory need moto: pip install "dynamodb-counters[testing]"'
    raise ImportError(message) from missing

__all__ = ["CountersInMemory", "QuarantinedRecordsError", "TestClock", "counters_in_memory"]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LISTED: Final = 5
_REGION: Final = "us-east-1"
_INDEX: Final = {
    "IndexName": RANKING_INDEX,
    "Projection": {"ProjectionType": "KEYS_ONLY"},
    "KeySchema": [{"AttributeName": LEADERBOARD, "KeyType": "HASH"}, {"AttributeName": SCORE, "KeyType": "RANGE"}],
}
# moto does not know addresses that carry an account id.
_CONFIG: Final = Config(account_id_endpoint_mode="disabled", retries={"total_max_attempts": 1})


class TestClock:
    """A clock that moves only by `advance`, such as ``counters.clock``; call it for seconds since 1970."""

    __test__ = False  # Whatever pytest makes of its name.

    def __init__(self, now: datetime, expire: Callable[[float], None]) -> None:
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidArgumentError("now", now, "a datetime with a time zone")
        self._seconds, self._expire = now.timestamp(), expire

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        return self._seconds

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.fromtimestamp(self._seconds, UTC)

    def advance(self, duration: timedelta) -> None:
        """Let time pass; items whose TTL is over on the way expire at their time, and that is counted.

        DynamoDB itself may take days to delete an expired item. Reads never count one that is still there.
        """
        if not isinstance(duration, timedelta) or duration < timedelta(0):
            raise InvalidArgumentError("duration", duration, "a timedelta that is not negative")
        self._expire(self._seconds + duration.total_seconds())


class QuarantinedRecordsError(CountersError, AssertionError):
    """Records could not be counted; `entries` says which and why."""

    def __init__(self, entries: list[Quarantined]) -> None:
        lines = [f"- {entry.reason}: {entry.content}" for entry in entries[:_LISTED]]
        super().__init__("\n".join([f"{len(entries)} quarantined, so not counted:", *lines]))
        self.entries = entries


class CountersInMemory(Counters):
    """`Counters` on tables in moto; `counters_in_memory` makes them.

    Every read and write of `Counters` is the real one. When a write returns, the real aggregator has counted it.
    """

    client: Any
    """A boto3 client of the tables, for code under test; what it writes is counted at once."""
    clock: TestClock
    """The time of the tables, the aggregator and all reads."""
    table_name: str
    """The name of the table of the counts, for the requests of `client`."""

    def __init__(self, declarations: tuple[Declaration, ...], now: datetime) -> None:
        self.clock = TestClock(now, self._expire_until)
        self._lock, self._expired = threading.RLock(), list[Quarantined]()
        sources = [declaration.source for declaration in declarations]
        keys = [source.keys for source in sources if isinstance(source, Items) and source.keys is not None]
        self.client, self._tables = self._open(keys[0] if keys else None)
        self.table_name = self._tables[0].name
        super().__init__(self.table_name, client=self.client, clock=self.clock)
        vars(self._table)["threads"] = 1
        self._start(declarations)

    @property
    def table(self) -> Any:
        """boto3's ``Table`` where your own items lie: the source table if `Items` name their ``keys``, else this one.

        What it writes is counted at once. Keys are strings here.
        """
        resource = _session().resource("dynamodb", config=_CONFIG).Table(self._tables[-1].name)
        self._count_writes_of(resource.meta.client)
        return resource

    def require_all_counted(self) -> None:
        """Raise `QuarantinedRecordsError` if records wait in the quarantine, or have expired there."""
        if entries := [*self._expired, *self.quarantined()]:
            raise QuarantinedRecordsError(entries)

    def crossings(self) -> list[dict[str, Any]]:
        """Return the crossings of thresholds, in order: of each the detail of its event on EventBridge.

        That is a dict with ``threshold``, ``group``, ``level``, ``direction``, ``old``, ``new`` and the event's other
        members; numbers are `int` or `Decimal`.
        """
        return crossing_details(item for item in self._tables[0].items() if item.get(TYPE) == {"S": CROSSING})

    def _open(self, keys: TableKeys | None) -> tuple[Any, Sequence[Any]]:
        client = _session().client("dynamodb", config=_CONFIG)
        tables = [MotoTable(client, (PK, SK), "ttl", self.clock)]
        if keys is not None:
            names = tuple(name for name in (keys.partition_key, keys.sort_key) if name is not None)
            tables.append(MotoTable(client, names, keys.ttl or "", self.clock))
        return client, tables

    def _start(self, declarations: tuple[Declaration, ...]) -> None:
        client = _session().client("dynamodb", config=_CONFIG)
        table = Table(self.table_name, client, self.clock, lambda _: None, threads=1)
        source = table_of(self._tables[-1].stream_arn) if len(self._tables) > 1 else None
        make = partial(Aggregator, table, declarations, quarantine_retention_seconds=14 * DAY, single_shard=True)
        make().handle({})  # Without a source table, whose items may be older, all names are complete.
        self._aggregator = make(source_table=source)
        self._aggregator.handle({})
        self._count_writes_of(self.client)

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
        while batches := [(table.shard, records) for table in self._tables if (records := table.new_records())]:
            for shard, records in batches:
                self._aggregator.handle({"shardId": shard, "Records": records})

    def _expire_until(self, until: float) -> None:
        with self._lock:
            while (due := min(table.next_expiry(self.clock()) for table in self._tables)) <= until:
                self.clock._seconds = due  # noqa: SLF001
                items = [item for table in self._tables for item in table.expire(due)]
                self._expired += [read_quarantine_item(item) for item in items if item.items() >= WAITING_ITEM.items()]
                self._catch_up()
            self.clock._seconds = until  # noqa: SLF001


@contextmanager
def counters_in_memory(
    declarations: Iterable[Declarable], *, now: datetime = START, quarantine: Literal["raise", "keep"] = "raise"
) -> Iterator[CountersInMemory]:
    """Count in memory, at once, by the code that runs in Lambda: for the tests of your code.

    No AWS account, no network, no waiting. It is one of moto's ``mock_aws``: within it, all your clients of AWS talk to
    moto.

    Parameters
    ----------
    declarations : iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles, Extremes or Ranks
        Declarations to count by, and each `Threshold` to watch them by.
    now : datetime, optional
        Where the clock begins, with a time zone. Default 2026-01-01T00:00Z.
    quarantine : {"raise", "keep"}, optional
        Reaction at the end to records that could not be counted, such as events without an attribute that is summed.
        Default ``"raise"``: `QuarantinedRecordsError`. ``"keep"``: nothing; ``counters.quarantined()`` lists them.

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
    with mock_aws():
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
        expected = "an iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles, Extremes or Ranks"
        raise InvalidArgumentError("declarations", declarations, expected) from None
    require_consistent(flat)
    return flat


@cache
def _session() -> boto3.Session:
    return boto3.Session("testing", "testing", region_name=_REGION)


class MotoTable:
    """A table with a stream of one shard, under a new name; that of the counts has its index."""

    def __init__(self, client: Any, keys: tuple[str, ...], ttl: str, clock: Callable[[], float]) -> None:
        self.name = f"counters-{uuid.uuid4().hex[:8]}"
        self._client, self._keys, self._ttl, self._clock, self._read = client, keys, ttl, clock, 0
        types, indexes = dict.fromkeys(keys, "S"), dict[str, Any]()
        if keys == (PK, SK):
            types |= {LEADERBOARD: "S", SCORE: "N"}
            indexes["GlobalSecondaryIndexes"] = [_INDEX]
        schema = zip(keys, ("HASH", "RANGE"), strict=False)
        created = client.create_table(
            TableName=self.name,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in schema],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            **indexes,
        )
        self.stream_arn: str = created["TableDescription"]["LatestStreamArn"]
        self.shard: str = self._moto.stream_shard.id

    @property
    def _moto(self) -> Any:
        """Look up the table: after a failed transaction, moto has another object in its place."""
        return cast("Any", dynamodb_backends[DEFAULT_ACCOUNT_ID][_REGION]).tables[self.name]

    def items(self) -> list[dict[str, Any]]:
        return [item.to_json()["Attributes"] for item in self._moto.all_items()]

    def new_records(self) -> list[Record]:
        # What a failed transaction has written is gone with its records: moto puts back the table as it was.
        stored, fresh = self._moto.stream_shard.items, list[Record]()
        created = {"ApproximateCreationDateTime": float(int(self._clock()))}
        for record in (item.record for item in stored[self._read :]):
            change, kind = {**record["dynamodb"], **created}, record["eventName"]
            # moto inserts an item that an update creates in two records: the second one has all of it.
            if fresh and kind == fresh[-1]["eventName"] == "INSERT" and change["Keys"] == fresh[-1]["dynamodb"]["Keys"]:
                fresh.pop()
            fresh.append({**record, "eventSourceARN": self.stream_arn, "dynamodb": change})
        self._read = len(stored)
        return fresh

    def next_expiry(self, now: float) -> float:
        """Return when the next item expires: now, if its TTL is over; infinity if none does."""
        return min((ttl for ttl, _ in self._expiring(now)), default=math.inf)

    def expire(self, now: float) -> list[dict[str, Any]]:
        """Delete items whose TTL is over, as DynamoDB does in the background; return them."""
        due = [item for ttl, item in self._expiring(now) if ttl <= now]
        for item in due:
            self._client.delete_item(TableName=self.name, Key={name: item[name] for name in self._keys})
        return due

    def _expiring(self, now: float) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield items with their TTL; DynamoDB leaves alone what is no number, or lies five years back."""
        for item in self.items():
            ttl = float(item.get(self._ttl, {}).get("N", math.inf))
            if ttl > now - MAX_TTL_AGE:
                yield max(ttl, now), item
