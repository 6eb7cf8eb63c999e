"""A blog's table with a day and a half of views: what commands are tried on. Always the same, at a fixed time."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final
from unittest.mock import MagicMock

import boto3
from botocore.config import Config
from moto import mock_aws

from dynamodb_counters import (
    Aggregate,
    Attr,
    Average,
    Count,
    Counters,
    Distinct,
    Event,
    Histogram,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration, flatten
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters._items.table_schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._table import Table
from simulation.memory_table import MemoryTable
from simulation.metered_table import MeteredTable

OPEN: Final = [
    f"shardId-0000000{1_795_157_600_000 + start}-{name}"
    for start, name in ((0, "3f6a1c9e"), (118_204, "b27d40f5"), (240_777, "70e9c2a8"))
]
CLOSED: Final = "shardId-00000001795050000000-f00dbabe"


@dataclass
class Shards:
    """Records by shard, as Lambda would deliver them."""

    until: float
    """The closed shard takes what is created before."""
    records: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in (CLOSED, *OPEN)})

    def add(self, change: Mapping[str, Any], created: float) -> None:
        """Append a change of the table to the shard of its partition key."""
        pk = change["dynamodb"]["Keys"]["pk"]["S"]
        name = CLOSED if created < self.until else OPEN[(zlib.adler32(pk.encode()) >> 4) % len(OPEN)]
        known = self.records[name]
        number = 10**20 * (1 + [CLOSED, *OPEN].index(name)) + len(known)
        dynamodb = {**change["dynamodb"], "SequenceNumber": str(number), "ApproximateCreationDateTime": created}
        known.append({**change, "dynamodb": dynamodb})

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        return {"StreamDescription": {"Shards": [self._described(name) for name in self.records]}}

    def get_shard_iterator(self, **_: Any) -> dict[str, Any]:
        """All is counted: no shard has more."""
        return {}

    def _described(self, name: str) -> dict[str, Any]:
        first = str(10**20 * (1 + [CLOSED, *OPEN].index(name)))
        end = {"EndingSequenceNumber": str(int(first) + len(self.records[name]))} if name == CLOSED else {}
        return {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": first, **end}}


NOW = datetime(2026, 11, 20, 17, 30, tzinfo=UTC).timestamp()
HOURS = 36

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}", retention=timedelta(days=7))
PAGES = Aggregate(
    "pages",
    VIEW,
    pk="URL#{url}",
    sk="STATISTICS",
    views=Count(),
    bytes=Sum("bytes"),
    ms=Average("ms"),
    ranking=Ranking(measure="views", leaderboard="PAGES"),
)
SPEED = Aggregate("speed", VIEW, pk="SITE", sk="SPEED", ms=Histogram("ms", bounds=[0, 50, 100, 200, 400, 800]))
PHONES = Aggregate(
    "phones",
    VIEW,
    pk="DAY#{time:day}",
    sk="PHONES#{url}",
    views=Count(),
    where=Attr("device").eq("phone"),
)
VISITORS = Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS#{time:day}", member="client")
PACE = Window("pace", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=61), longest=timedelta(days=7))
SITE = Window("site", VIEW, pk="SITE", time="time", retention=timedelta(days=61))
DECLARED = flatten([PAGES, SPEED, PHONES, VISITORS, PACE, SITE])

URLS = {"/": 30, "/pricing": 18, "/blog/exactly-once": 14, "/docs": 12, "/blog/rolling-windows": 8, "/about": 4}
BY_HOUR = [4, 3, 2, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 12, 12, 13, 14, 15, 15, 14, 12, 10, 8, 6]
PER_HOUR = 5
"""Views for each in `BY_HOUR`."""


LAGGING: Final = OPEN[0]
"""The shard of which the last hour is not counted."""

_WITHOUT_BYTES: Final = (15, 20, 28)
_WITHOUT_MS: Final = 30
_SIZES: Final = ("ItemCount", "TableSizeBytes")


@dataclass
class Blog:
    """The table `blog`, its clients, and its time.

    Its past happens in memory, which is fast; what is there then lies in moto, which has all of DynamoDB's calls.
    """

    name: str = "blog"
    declared: Sequence[Declaration] = DECLARED
    now: float = NOW - HOURS * 3600
    random: random.Random = field(default_factory=lambda: random.Random(7))
    clients: dict[str, Any] = field(default_factory=dict)
    stream: Shards = field(init=False)

    def __post_init__(self) -> None:
        self._past = MeteredTable(self.clock, name="blog")
        self.clients["dynamodb"] = self._past
        self._use(self._past)
        self.stream = Shards(until=self.now + 10 * 3600)
        self._seen = 0
        self._delivered = dict.fromkeys(self.stream.records, 0)
        self.deploy()

    def clock(self) -> float:
        return self.now

    def deploy(self) -> None:
        """Deploy an aggregator, which registers its names."""
        self._aggregator = Aggregator(self._table, tuple(self.declared), quarantine_retention_seconds=90 * 86_400.0)
        self._aggregator.handle({})

    def view(self, when: float, url: str | None = None, **more: Any) -> None:
        """Accept a view; `more` replaces what it has."""
        rng = self.random
        event = {
            "url": url or rng.choices([*URLS], [*URLS.values()])[0],
            "time": datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "client": f"c{rng.randrange(60)}",
            "device": rng.choice(["phone", "phone", "laptop"]),
            "bytes": rng.randrange(2_000, 60_000),
            "ms": int(rng.lognormvariate(4.6, 0.7)),
        }
        event |= more
        self._counters.accept(VIEW, {name: value for name, value in event.items() if value is not None})

    def deliver(self, *, but: str = "") -> None:
        """Count what is new, of all shards but one, until nothing is; then the tumbling windows end."""
        states: dict[str, dict[str, Any]] = {}
        while self._read():
            for shard, records in self.stream.records.items():
                if shard != but and (batch := records[self._delivered[shard] :]):
                    event = {"shardId": shard, "Records": batch, "state": states.get(shard)}
                    states[shard] = self._aggregator.handle(event).state(event)
                    self._delivered[shard] = len(records)
        for shard, state in states.items():
            self._aggregator.handle({"shardId": shard, "Records": [], "state": state, "isFinalInvokeForWindow": True})

    def live(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def arrive(self) -> None:
        """Go on with a table that can be described, and with services of moto."""
        # moto does not know addresses that carry an account id.
        config = Config(account_id_endpoint_mode="disabled")
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        client = session.client("dynamodb", config=config)
        create_table(client, "blog")
        self.clients["dynamodb"] = Described(client, self.clock, self._past.items())
        self.clients |= {"dynamodbstreams": self.stream, "lambda": mappings("TRIM_HORIZON")}
        self._use(self.clients["dynamodb"])
        self.deploy()

    def _use(self, client: Any) -> None:
        self._table = Table("blog", client, "put", self.clock, sleep=lambda _: None, jitter=lambda: 0.5)
        self._counters = Counters("blog", client=client, bulk="put", clock=self.clock)

    def _read(self) -> int:
        new = list(islice(self._past.stream.history(), self._seen, None))
        self._seen += len(new)
        for _, record in new:
            self.stream.add(record, record["dynamodb"]["ApproximateCreationDateTime"])
        return len(new)


class Described(MemoryTable):
    """A table in memory, which moto describes."""

    def __init__(self, described: Any, clock: Callable[[], float], items: Iterable[Any]) -> None:
        super().__init__(clock, name="blog", indexes={RANKING_INDEX: (LEADERBOARD, SCORE)})
        self._described = described
        for item in items:
            self.put_item(TableName="blog", Item=item)

    def describe_table(self, **request: Any) -> dict[str, Any]:
        """Describe the table as moto does, which does not say how large one is."""
        known = {name: super(Described, self).describe_table(**request)["Table"][name] for name in _SIZES}
        return {"Table": self._described.describe_table(**request)["Table"] | known}

    def describe_time_to_live(self, **request: Any) -> Any:
        return self._described.describe_time_to_live(**request)


def mappings(*starts: str) -> Any:
    """A client of Lambda: mappings of one stream by where they start; anywhere else, those of another function."""
    listed = [{"FunctionArn": start, "StartingPosition": start} for start in starts]
    lambdas = MagicMock(**{"get_paginator.return_value.paginate.return_value": [{"EventSourceMappings": listed}]})
    handlers = dict.fromkeys(("LATEST", "TRIM_HORIZON"), AGGREGATOR_HANDLER)
    lambdas.get_function_configuration = lambda **of: {"Handler": handlers.get(of["FunctionName"])}
    return lambdas


@contextmanager
def seeded() -> Iterator[Blog]:
    """The table at `NOW`, with services of moto."""
    with mock_aws():
        blog = in_memory()
        blog.arrive()
        yield blog


def in_memory() -> Blog:
    """The table at `NOW`: a day and a half of views, some that nothing could count."""
    blog = Blog()
    begin = blog.now
    for hour in range(HOURS):
        start = begin + hour * 3600
        many = BY_HOUR[datetime.fromtimestamp(start, UTC).hour] * PER_HOUR
        for when in sorted(start + blog.random.random() * 3600 for _ in range(many)):
            blog.now = when
            blog.view(when)
        if hour in _WITHOUT_BYTES:
            blog.view(blog.now, "/docs", bytes=None)
        if hour == _WITHOUT_MS:
            blog.view(blog.now, "/pricing", ms="fast")
        blog.now = start + 3600 - 5
        blog.deliver(but=LAGGING if hour == HOURS - 1 else "")
    blog.now = NOW
    return blog


def create_table(client: Any, name: str) -> None:
    names = {"pk": "S", "sk": "S", "_board": "S", "_score": "N"}
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in names.items()],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "ranking",
                "KeySchema": [
                    {"AttributeName": "_board", "KeyType": "HASH"},
                    {"AttributeName": "_score", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
