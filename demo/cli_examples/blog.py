"""A blog's table with a day and a half of views: what the examples look at. Always the same, at a fixed time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.config import Config
from moto import mock_aws

from demo.cli_examples.shards import OPEN, Shards
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
from dynamodb_counters._declarations import flatten
from dynamodb_counters._stream.batch import Aggregator
from dynamodb_counters._table import Table
from simulation.delivery.stream_api import lambda_record

NOW = datetime(2026, 11, 20, 17, 30, tzinfo=UTC).timestamp()
HOURS = 36

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}", retention=timedelta(days=7))
PAGES = Aggregate(
    "pages",
    VIEW,
    pk="URL#{url}",
    sk="STATISTICS",
    measures={"views": Count(), "bytes": Sum("bytes"), "ms": Average("ms")},
    ranking=Ranking(by="views", leaderboard="PAGES"),
)
SPEED = Aggregate(
    "speed", VIEW, pk="SITE", sk="SPEED", measures={"ms": Histogram("ms", bounds=[0, 50, 100, 200, 400, 800])}
)
PHONES = Aggregate(
    "phones", VIEW, pk="DAY#{time:day}", sk="PHONES#{url}", measures={"views": Count()}, where=Attr("device").eq("phone")
)
VISITORS = Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS#{time:day}", member="client")
PACE = Window("pace", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=61), longest=timedelta(days=7))
SITE = Window("site", VIEW, pk="SITE", time="time", retention=timedelta(days=61))
DECLARED = flatten([PAGES, SPEED, PHONES, VISITORS, PACE, SITE])

URLS = {"/": 30, "/pricing": 18, "/blog/exactly-once": 14, "/docs": 12, "/blog/rolling-windows": 8, "/about": 4}
BY_HOUR = [4, 3, 2, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 12, 12, 13, 14, 15, 15, 14, 12, 10, 8, 6]
PER_HOUR = 5
"""Views for each in `BY_HOUR`."""


_SERVICES: Final = ("dynamodb", "dynamodbstreams", "sqs", "s3")


@dataclass
class Blog:
    """The table `blog`, its clients, and its time."""

    now: float = NOW - HOURS * 3600
    random: random.Random = field(default_factory=lambda: random.Random(7))
    clients: dict[str, Any] = field(default_factory=dict)
    stream: Shards = field(init=False)

    def __post_init__(self) -> None:
        # moto does not know addresses that carry an account id.
        config = Config(account_id_endpoint_mode="disabled")
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        for service in _SERVICES:
            self.clients[service] = session.client(service, config=config)
        self.stream = Shards(self.clock, until=self.now + 10 * 3600)
        arn = _create_table(self.clients["dynamodb"])
        self._moto = self.clients["dynamodbstreams"]
        [shard] = self._moto.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        self._arn = arn
        self._iterator = self._moto.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        self.clients["dynamodbstreams"] = self.stream
        self.counters = Counters("blog", client=self.clients["dynamodb"], bulk="put", clock=self.clock)
        self._delivered = dict.fromkeys(self.stream.records, 0)
        self.deploy(*flatten([PAGES, PACE]))

    def clock(self) -> float:
        return self.now

    def deploy(self, *declared: Any) -> None:
        """Deploy an aggregator; its declarations hold a little later."""
        table = Table("blog", self.clients["dynamodb"], "put", self.clock, sleep=lambda _: None, jitter=lambda: 0.5)
        self._aggregator = Aggregator(table, declared, quarantine_retention_seconds=90 * 86_400.0, name="Blog/Counting")
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
        self.counters.accept(VIEW, {name: value for name, value in event.items() if value is not None})

    def deliver(self, *, but: str = "") -> None:
        """Count what is new, of all shards but one, until nothing is."""
        while self._read():
            for shard, records in self.stream.records.items():
                if shard != but and (batch := records[self._delivered[shard] :]):
                    self._aggregator.handle({"shardId": shard, "Records": batch})
                    self._delivered[shard] = len(records)

    def live(self, seconds: float) -> None:
        """Let time pass, with views at the rate of a busy hour."""
        for _ in range(round(seconds * 3)):
            self.now += seconds / round(seconds * 3)
            self.view(self.now)
        self.deliver()

    def _read(self) -> int:
        page = self._moto.get_records(ShardIterator=self._iterator)
        self._iterator = page["NextShardIterator"]
        for record in page["Records"]:
            self.stream.add(lambda_record(record, self._arn))
        return len(page["Records"])


@contextmanager
def seeded() -> Iterator[Blog]:
    """The table at `NOW`: two deployments, a day and a half of views, some that nothing could count."""
    with mock_aws():
        blog = Blog()
        begin = blog.now
        for hour in range(HOURS):
            start = begin + hour * 3600
            if hour == 11:
                blog.deploy(*DECLARED)
            many = BY_HOUR[datetime.fromtimestamp(start, UTC).hour] * PER_HOUR
            for when in sorted(start + blog.random.random() * 3600 for _ in range(many)):
                blog.now = when
                blog.view(when)
            if hour in (15, 20, 28):
                blog.view(blog.now, "/docs", bytes=None)
            if hour == 30:
                blog.view(blog.now, "/pricing", ms="fast")
            blog.now = start + 3600 - 5
            blog.deliver(but=OPEN[2] if hour == HOURS - 1 else "")
        queue = blog.clients["sqs"].create_queue(QueueName="blog-dead-letters")["QueueUrl"]
        for body in ("{", '{"url": 7}'):
            blog.clients["sqs"].send_message(QueueUrl=queue, MessageBody=body)
        blog.now = NOW
        yield blog


def _create_table(client: Any) -> str:
    names = {"pk": "S", "sk": "S", "_board": "S", "_score": "N"}
    client.create_table(
        TableName="blog",
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
    client.update_time_to_live(TableName="blog", TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    return str(client.describe_table(TableName="blog")["Table"]["LatestStreamArn"])
