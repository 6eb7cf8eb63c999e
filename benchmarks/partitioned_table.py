"""A table with many partitions, what it counts, and the function's processes: the real handler on an injected clock."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.metering import Label, Meter
from benchmarks.shards import Partitions
from dynamodb_counters import Aggregate, Count, Event, Ranking, Sum, Window
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many
from dynamodb_counters.testing._counting import OneByOne
from simulation.clock import VirtualClock
from simulation.metered_table import MeteredTable

TIMEOUT: Final = 60.0
"""The function's, by default."""

_VIEW: Final = Event("view", pk="PAGE#{page}", sk="VIEW#{id}")
_SCORE: Final = Event("score", pk="PLAYER#{player}", sk="SCORE#{id}")

TOTAL: Final = Aggregate("total", _VIEW, pk="TOTAL", sk="STATISTICS", measures={"views": Count()})
PAGES: Final = Aggregate("pages", _VIEW, pk="PAGE#{page}", sk="STATISTICS", measures={"views": Count()})
TRAFFIC: Final = Window("traffic", _VIEW, pk="TRAFFIC", time="at", tiers=("hour", "day", "month"))
HOURS: Final = Window("traffic", _VIEW, pk="TRAFFIC", time="at", tiers=("hour",))
PLAYERS: Final = Aggregate(
    "players",
    _SCORE,
    pk="PLAYER#{player}",
    sk="STATISTICS",
    measures={"points": Sum("points")},
    ranking=Ranking(measure="points", leaderboard="PLAYERS"),
)
EVERYTHING: Final = (TOTAL, PAGES, TRAFFIC, PLAYERS)


class PartitionedTable:
    """A table whose events come on so many shards, each of which a process of its own serves.

    Events are only stream records: what accepting them costs does not depend on the partitions. `delivered` has what
    the processes were invoked with, `views` the truth about each page.
    """

    def __init__(
        self,
        partitions: int,
        *,
        label: Label = lambda _pk, _sk: None,
        staggered: bool = True,
        declared: tuple[Declaration, ...] = EVERYTHING,
        keeps_events: bool = False,
        only_events: bool = False,
    ) -> None:
        self.clock = VirtualClock()
        self.memory = MeteredTable(self.clock)
        self.stream = Partitions(self.clock, partitions, staggered=staggered, only_events=only_events)
        self.memory.tables[self.memory.name].stream = self.stream
        self.meter = Meter(self.memory, label)
        client: Any = self.meter
        jitter = random.Random(partitions).random
        self._table = Table("counters", client, clock=self.clock, sleep=lambda _: None, jitter=jitter)
        self._table.__dict__["pool"] = OneByOne()
        self._partitions, self._declared, self._keeps_events = partitions, declared, keeps_events
        self._swept = self.clock()
        self.views = Counter[str]()
        self.delivered: list[tuple[int, Mapping[str, Any]]] = []
        self.restart()

    def restart(self) -> None:
        """Replace all processes: the new ones know nothing."""
        self._processes = [
            Aggregator(self._table, self._declared, quarantine_retention_seconds=86_400)
            for _ in range(self._partitions)
        ]

    def view(self, partition: int, page: str, at: float | None = None) -> None:
        """A view of a page, by default of now."""
        self.views[page] += 1
        time = {"N": str(int(self.clock() if at is None else at))}
        self._put(partition, {"_type": {"S": "view"}, "page": {"S": page}, "at": time})

    def accept(self, event: Event, values: Mapping[str, Any]) -> None:
        """Accept an event, whose record comes to the partition that its key belongs to."""
        assert accept(self._table, event, values).status == "accepted"

    def accept_all(self, event: Event, events: Sequence[Mapping[str, Any]]) -> None:
        """Accept events in one call."""
        assert {outcome.status for outcome in accept_many(self._table, event, events)} == {"accepted"}

    def score(self, partition: int, player: str, points: int) -> None:
        values = {"player": {"S": player}, "points": {"N": str(points)}}
        self._put(partition, {"_type": {"S": "score"}, **values})

    def deliver(self) -> None:
        if self.clock() >= self._swept + 86_400:
            self._sweep()
        self.stream.deliver(self.invoke)

    def invoke(self, partition: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the function as its handler does, and return the state it asks Lambda to keep."""
        if self._keeps_events and event["Records"]:
            self.delivered.append((partition, event))
        return self._processes[partition].handle(event, lambda: TIMEOUT).state(event)

    def process(self, partition: int) -> Aggregator:
        """The process that serves a partition."""
        return self._processes[partition]

    def item(self, pk: str, sk: str = "STATISTICS") -> Mapping[str, Any]:
        return self.memory.tables["counters"].find("GetItem", {"pk": {"S": pk}, "sk": {"S": sk}}) or {}

    def _sweep(self) -> None:
        """Delete what has expired, which costs nothing, and leaves no records in the stream."""
        now = self._swept = self.clock()
        for items in self.memory.tables["counters"].partitions.values():
            for sk in [sk for sk, item in items.items() if "ttl" in item and float(item["ttl"]["N"]) <= now]:
                del items[sk]

    def _put(self, partition: int, image: dict[str, Any]) -> None:
        keys = {"pk": {"S": f"EVENT#{partition}"}, "sk": {"S": "-"}}
        self.stream.put(partition, keys, None, {**keys, **image})
