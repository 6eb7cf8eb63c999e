"""A workbench for single mechanisms: the real aggregator over a table in memory, delivered to by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamodb_counters._assumptions import FRESH, GIVEN_UP_AFTER, LONGEST_INVOCATION, SKEW
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.table_schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._table import Table
from simulation.aws.streams import older
from simulation.clock import VirtualClock
from simulation.memory.memory_stream import Record
from simulation.metered_table import MeteredTable

QUARANTINE_SECONDS = 14 * 86_400.0


class Workbench:
    def __init__(self, declarations: Sequence[Declaration], shards: int = 1) -> None:
        self.clock = VirtualClock()
        self.table = MeteredTable(self.clock, shards=shards, indexes={RANKING_INDEX: (LEADERBOARD, SCORE)})
        client: Any = self.table
        self.counters = Counters(self.table.name, client=client, clock=self.clock)
        self.store = Table(self.table.name, client, clock=self.clock, sleep=self.clock.advance)
        self._declarations = tuple(declarations)
        self.aggregator = self.process()

    def deploy(self, declarations: Sequence[Declaration]) -> None:
        """Deploy declarations, and wait until every process knows of new names."""
        self._declarations = tuple(declarations)
        self.aggregator = self.process()
        self.aggregator.handle({})
        self.clock.advance(LONGEST_INVOCATION + FRESH + SKEW + 1)

    def process(self, client: Any = None, skew: float = 0.0) -> Aggregator:
        """An aggregator with nothing read yet, perhaps with a client of its own and a clock that is wrong."""
        store = Table(
            self.table.name,
            client or self.store.client,
            clock=lambda: self.clock.now + skew,
            sleep=self.clock.advance,
        )
        return Aggregator(store, self._declarations, quarantine_retention_seconds=QUARANTINE_SECONDS)

    def records(self, shard: str | None = None) -> list[Record]:
        """All records of a shard, by default the first."""
        return self.table.stream.read(shard or self.shards()[0], None, 1_000_000).records

    def shards(self) -> list[str]:
        return [shard.id for shard in self.table.stream.shards()]

    def deliver(self, records: list[Record], shard: str | None = None, by: Aggregator | None = None) -> Report:
        return (by or self.aggregator).handle({"shardId": shard or self.shards()[0], "Records": records})

    def end_window(self, records: list[Record], shard: str | None = None, by: Aggregator | None = None) -> Report:
        """The empty last invocation of a window whose batches ended with these records."""
        state = Report(moved={"applied_through": padded(records[-1]["dynamodb"]["SequenceNumber"])}).state({})
        event = {"shardId": shard or self.shards()[0], "Records": [], "isFinalInvokeForWindow": True, "state": state}
        return (by or self.aggregator).handle(event)

    def deliver_all(self) -> None:
        """Deliver every shard from its beginning, until that changes nothing."""
        before = -1
        while before < (now := sum(len(self.records(shard)) for shard in self.shards())):
            before = now
            for shard in self.shards():
                self.deliver(self.young(self.records(shard)), shard)

    def young(self, records: list[Record]) -> list[Record]:
        """The records on which Lambda has not given up."""
        return records[len(older(records, self.clock() - GIVEN_UP_AFTER)) :]
