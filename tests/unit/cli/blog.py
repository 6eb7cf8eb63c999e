"""A blog's table with a day and a half of views: what commands are tried on. Always the same, at a fixed time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock, patch

from counters_cli.describe import AGGREGATOR_HANDLER
from counters_lambda.counting.batch import Aggregator
from dynamodb_counters import Aggregate, Attr, Counters, Distinct, Event, Window
from dynamodb_counters._declarations import Average, Count, Declaration, Histogram, Ranking, Sum, flatten
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import HOUR
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

NOW = datetime(2026, 11, 20, 17, 30, tzinfo=UTC).timestamp()
HOURS = 36

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}", retention=timedelta(days=7))
_MEASURES: Any = {"views": Count(), "bytes": Sum("bytes"), "ms": Average("ms")}
_RANKING = Ranking(measure="views", leaderboard="PAGES")
PAGES = Aggregate("pages", VIEW, pk="URL#{url}", sk="STATISTICS", measures=_MEASURES, ranking=_RANKING)
SPEED = Aggregate("speed", VIEW, pk="SITE", sk="SPEED", ms=Histogram("ms", bounds=[0, 50, 100, 200, 400, 800]))
PHONES = Aggregate(
    "phones", VIEW, pk="DAY#{time:day}", sk="PHONES#{url}", views=Count(), where=Attr("device").eq("phone")
)
VISITORS = Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS#{time:day}", member="client")
PACE = Window("pace", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=61), longest=timedelta(days=7))
SITE = Window("site", VIEW, pk="SITE", time="time", retention=timedelta(days=61))
DECLARED = flatten([PAGES, SPEED, PHONES, VISITORS, PACE, SITE])

URLS = {"/": 30, "/pricing": 18, "/blog/exactly-once": 14, "/docs": 12, "/blog/rolling-windows": 8, "/about": 4}
BY_HOUR = [4, 3, 2, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 12, 12, 13, 14, 15, 15, 14, 12, 10, 8, 6]
PER_HOUR = 5
"""Views for each in `BY_HOUR`."""


_LAGGING: Final = 2
"""The shard of which the last hour is not counted."""

_WITHOUT_BYTES: Final = (15, 20, 28)
_WITHOUT_MS: Final = 30


class Described(MemoryTable):
    """A table in memory that says all of itself."""

    def describe_table(self, **request: Any) -> dict[str, Any]:
        stream = {"StreamSpecification": {"StreamEnabled": True}, "TableStatus": "ACTIVE", "TableName": self.name}
        return {"Table": super().describe_table(**request)["Table"] | stream}

    def describe_time_to_live(self, **_: Any) -> dict[str, Any]:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}}


class Blog:
    """The table `blog`, its clients, and its time."""

    def __init__(self, declared: Sequence[Declaration] = DECLARED) -> None:
        self.name, self.clock, self.random = "blog", VirtualClock(NOW - HOURS * HOUR), random.Random(7)
        self.live = self.clock.advance
        indexes = {RANKING_INDEX: (LEADERBOARD, SCORE)}
        client: Any = Described(self.clock, name=self.name, shards=3, indexes=indexes)
        self._stream, self._delivered = client.stream, Counter[str]()
        self.shards = [shard.id for shard in self._stream.shards()]
        # All is counted, as far as readers of the stream see: no shard has more.
        streams = SimpleNamespace(describe_stream=self._stream.describe_stream, get_shard_iterator=lambda **_: {})
        self.clients = {"dynamodb": client, "dynamodbstreams": streams, "lambda": mappings("TRIM_HORIZON")}
        self.counters = Counters(self.name, client=client, clock=self.clock)
        table = Table(self.name, client, self.clock, sleep=lambda _: None, jitter=lambda: 0.5)
        self._aggregator = Aggregator(table, tuple(declared), quarantine_retention_seconds=90 * 86_400.0)
        self._aggregator.handle({})

    def view(self, url: str | None = None, **more: Any) -> None:
        """Accept a view now; `more` replaces what it has."""
        rng = self.random
        event = {
            "url": url or rng.choices([*URLS], [*URLS.values()])[0],
            "time": datetime.fromtimestamp(self.clock.now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "client": f"c{rng.randrange(60)}",
            "device": rng.choice(["phone", "phone", "laptop"]),
            "bytes": rng.randrange(2_000, 60_000),
            "ms": int(rng.lognormvariate(4.6, 0.7)),
        }
        event |= more
        self.counters.accept(VIEW, {name: value for name, value in event.items() if value is not None})

    def deliver(self, *, but: str = "") -> None:
        """Count what is new, of all shards but one, until nothing is; then the tumbling windows end."""
        states: dict[str, Any] = {}
        while new := {shard: records for shard in self.shards if shard != but and (records := self._new(shard))}:
            for shard, records in new.items():
                event = {"shardId": shard, "Records": records, "state": states.get(shard)}
                states[shard] = self._aggregator.handle(event).state(event)
                self._delivered[shard] += len(records)
        for shard, state in states.items():
            self._aggregator.handle({"shardId": shard, "Records": [], "state": state, "isFinalInvokeForWindow": True})

    def _new(self, shard: str) -> list[Any]:
        return list(self._stream.read(shard, None, 1_000_000).records[self._delivered[shard] :])


def mappings(*starts: str) -> Any:
    """Return a client of Lambda: mappings of one stream by where they start; else those of another function."""
    listed = [{"FunctionArn": start, "StartingPosition": start} for start in starts]
    lambdas = MagicMock(**{"get_paginator.return_value.paginate.return_value": [{"EventSourceMappings": listed}]})
    handlers = dict.fromkeys(("LATEST", "TRIM_HORIZON"), AGGREGATOR_HANDLER)
    lambdas.get_function_configuration = lambda **of: {"Handler": handlers.get(of["FunctionName"])}
    return lambdas


@patch("dynamodb_counters._table.CONCURRENCY", 1)  # Threads would race for sequence numbers.
def seeded() -> Blog:
    """Return the table at `NOW`: a day and a half of views, some that nothing could count."""
    blog = Blog()
    begin = blog.clock.now
    for hour in range(HOURS):
        start = begin + hour * HOUR
        many = BY_HOUR[datetime.fromtimestamp(start, UTC).hour] * PER_HOUR
        for when in sorted(start + blog.random.random() * HOUR for _ in range(many)):
            blog.clock.now = when
            blog.view()
        if hour in _WITHOUT_BYTES:
            blog.view("/docs", bytes=None)
        if hour == _WITHOUT_MS:
            blog.view("/pricing", ms="fast")
        blog.clock.now = start + HOUR - 5
        blog.deliver(but=blog.shards[_LAGGING] if hour == HOURS - 1 else "")
    blog.clock.now = NOW
    return blog
