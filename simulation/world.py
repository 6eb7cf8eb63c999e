"""A world: a table in memory, the aggregator that counts it, and all that may happen to the two.

Items are written, delivered, and delivered again; invocations die, freeze and land late; items expire; declarations
are deployed; runs and commands work beside all that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from boto3.dynamodb.types import TypeSerializer

from counters_cli.backfill import Backfill, Dropping
from counters_lambda.counting.batch import Aggregator, Report
from counters_lambda.counting.feeds import Feeds, StreamReader
from counters_lambda.counting.runner import Progress
from counters_lambda.counting.verification import Verification
from dynamodb_counters._assumptions import FRESH, GIVEN_UP_AFTER, LONGEST_INVOCATION, SKEW
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declarable, Event, flatten
from dynamodb_counters._declarations.codec import definition, encode
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._erasure import Erased, Eraser
from dynamodb_counters._fold.layouts import ItemLayout
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._registry import Registry, State, entry_key, read_registry, write_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from simulation.aws.streams import older
from simulation.clock import VirtualClock
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying, HeldClient
from simulation.memory.memory_stream import MemoryStream, Record
from simulation.memory_table import MemoryTable
from simulation.pairs.backend import RestoredTable

QUARANTINE_SECONDS: Final = 14 * DAY
REFRESH: Final = 61
"""After so long, every process and reader has read the registry again."""

_BATCH: Final = 100
_MOST_ROUNDS: Final = 20


class World:
    """A table and its aggregator, which has registered what it declares if it `founds` the table.

    `then` happens at every sleep of a run or a command, with the number of sleeps.
    """

    def __init__(
        self,
        *declared: Declarable,
        shards: int = 1,
        founds: bool = True,
        table: Any = None,
        clock: Any = None,
        source_table: str | None = None,
    ) -> None:
        self.clock: VirtualClock = clock or VirtualClock()
        indexes = {RANKING_INDEX: (LEADERBOARD, SCORE)}
        self.table: MemoryTable = table or MemoryTable(self.clock, shards=shards, indexes=indexes)
        self.name: str = next(iter(self.table.tables))
        self.declared = flatten(declared)
        self.source_table = source_table
        self.slept = 0
        self.then: Callable[[int], object] = lambda _: None
        self._delivered: dict[str, int] = {}
        self.store = self.reached()
        self.counters = self.reader()
        self.aggregator = self.process()
        self._founding: dict[str, int] = {}
        if founds:
            self.aggregator.handle({})
            self._founding = {shard: len(self.records(shard)) for shard in self.shards()}

    # Processes

    def reached(self, client: Any = None, skew: float = 0.0, sleep: Callable[[float], None] | None = None) -> Table:
        """Return the table as a process reaches it, perhaps by a client of its own and with a clock that is wrong."""
        client = client or self.table
        return Table(self.name, client, clock=lambda: self.clock() + skew, sleep=sleep or self.clock.advance)

    def reader(self, client: Any = None) -> Counters:
        """Return a process that accepts and reads, and has read nothing yet."""
        client = client or self.table
        return Counters(self.name, client=client, clock=self.clock)

    def process(
        self, client: Any = None, *, declared: Collection[Declarable] | None = None, skew: float = 0.0
    ) -> Aggregator:
        """Return an aggregator that has read nothing yet."""
        parts = self.declared if declared is None else flatten(declared)
        options: Any = {"quarantine_retention_seconds": QUARANTINE_SECONDS, "source_table": self.source_table}
        return Aggregator(self.reached(client, skew), parts, **options)

    def deploy(self, *declared: Declarable) -> None:
        """Deploy declarations, and wait until every process knows of new names."""
        self.declared = flatten(declared)
        self.aggregator = self.process()
        self.aggregator.handle({})
        self.clock.advance(LONGEST_INVOCATION + FRESH + SKEW + 1)

    def copy(self) -> World:
        """Restore a copy of the table, with a stream that begins now, and deploy the aggregator on it."""
        return World(*self.declared, table=RestoredTable(self.table, self.clock), clock=self.clock)

    # Items

    def put(self, pk: str, sk: str, **values: Any) -> None:
        """Put an item of plain values."""
        item = {"pk": pk, "sk": sk, **values}
        self.write({name: TypeSerializer().serialize(value) for name, value in item.items()})

    def write(self, item: Mapping[str, Any]) -> None:
        self.table.put_item(TableName=self.name, Item=dict(item))

    def item(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        item: dict[str, Any] | None = self.table.get_item(TableName=self.name, Key=_key(key)).get("Item")
        return item

    def delete(self, key: Mapping[str, Any]) -> None:
        """Delete an item by its key, or by itself."""
        self.table.delete_item(TableName=self.name, Key=_key(key))

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Return the items of a type, which is that of an event, a name, or of bookkeeping."""
        return [dict(item) for item in self.table.items() if item.get("_type") == {"S": kind}]

    def accept(self, event: Event, *events: Mapping[str, Any]) -> list[Record]:
        """Accept new events at once; return their records, of a table with one shard."""
        before = len(self.records())
        assert {outcome.status for outcome in self.counters.accept_many(event, events)} <= {"accepted"}
        return self.records()[before:]

    def expire(self, days: float = 0) -> int:
        """Have the TTL process delete what is over by then, when the stream has other shards."""
        self.clock.advance(days * DAY)
        for shard in self.table.stream.open_shards():
            self.table.stream.split(shard)
        return len(self.table.expire())

    def group_item(self, declaration: Aggregate, **values: Any) -> dict[str, Any]:
        """Return the key of a group's item."""
        [key] = ItemLayout(declaration).keys(group_key(declaration, values))
        return {**key}

    def spoil(self, declaration: Aggregate, measure: str, by: int, **values: Any) -> None:
        """Add to a number of a group, as nothing of the runtime would."""
        self.table.update_item(
            TableName=self.name,
            Key=self.group_item(declaration, **values),
            UpdateExpression="ADD #m :by",
            ExpressionAttributeNames={"#m": measure},
            ExpressionAttributeValues={":by": {"N": str(by)}},
        )

    def mend(self, *declared: Any) -> None:
        """Have names folded otherwise, as a later version of the code may; then deploy declarations that say so."""
        names = self.registry.names
        for declaration in declared:
            if declaration.name in names:
                self.redefine(declaration.name, encode((definition(declaration),)))
        self.deploy(*declared)

    def redefine(self, name: str, text: str) -> None:
        item = self.item(entry_key(name))
        assert item is not None
        self.write({**item, "definition": {"S": text}})

    # Deliveries

    @property
    def streams(self) -> list[MemoryStream]:
        return [table.stream for table in self.table.tables.values()]

    def shards(self) -> list[str]:
        return [shard.id for stream in self.streams for shard in stream.shards()]

    def records(self, shard: str | None = None) -> list[Record]:
        """Return all records of a shard since the table was founded, by default of the first."""
        shard = shard or self.shards()[0]
        [stream] = [stream for stream in self.streams if any(other.id == shard for other in stream.shards())]
        return stream.read(shard, None, 10**9).records[self._founding.get(shard, 0) :]

    def deliver(self, records: list[Record], shard: str | None = None, by: Aggregator | None = None) -> Report:
        return (by or self.aggregator).handle({"shardId": shard or self.shards()[0], "Records": records})

    def end_window(self, records: list[Record], shard: str | None = None, by: Aggregator | None = None) -> Report:
        """Deliver the empty last invocation of a window whose batches ended with these records."""
        state = Report(moved={"applied_through": padded(records[-1]["dynamodb"]["SequenceNumber"])}).state({})
        event = {"shardId": shard or self.shards()[0], "Records": [], "isFinalInvokeForWindow": True, "state": state}
        return (by or self.aggregator).handle(event)

    def deliver_all(self) -> None:
        """Deliver every shard from its beginning, until that changes nothing."""
        before = -1
        for _ in range(_MOST_ROUNDS):
            now = sum(len(self.records(shard)) for shard in self.shards())
            if now == before:
                return
            before = now
            for shard in self.shards():
                self.deliver(self.young(self.records(shard)), shard)
        raise AssertionError("each delivery writes something, as while a run is open: deliver what is new")

    def deliver_new(self) -> None:
        """Deliver what is new, in batches."""
        for shard, new in self.skip().items():
            records = self.young(new)
            for start in range(0, len(records), _BATCH):
                self.deliver(records[start : start + _BATCH], shard)

    def settle(self) -> None:
        """Deliver what is new, and what that changes."""
        for _ in range(3):
            self.deliver_new()

    def new(self) -> dict[str, list[Record]]:
        return {shard: self.records(shard)[self._delivered.get(shard, 0) :] for shard in self.shards()}

    def skip(self) -> dict[str, list[Record]]:
        """Give up on what is new; return it."""
        new = self.new()
        self._delivered |= {shard: self._delivered.get(shard, 0) + len(records) for shard, records in new.items()}
        return new

    def young(self, records: list[Record]) -> list[Record]:
        """Return the records on which Lambda has not given up."""
        return records[len(older(records, self.clock() - GIVEN_UP_AFTER)) :]

    # Ends of invocations

    def kill(self, records: list[Record], calls: int, shard: str | None = None, *, after: bool = False) -> bool:
        """Deliver to a process that dies at a call, before or after it; return whether it did."""
        with suppress(Crashed):
            self.deliver(records, shard, self.process(Dying(self.table, calls, after=after)))
            return False
        return True

    def freeze(self, records: list[Record], shard: str | None = None, operation: str = "update_item") -> HeldClient:
        """Deliver to a process that stops with its first request of an operation on its way; it lands on command."""
        client = HeldClient(self.table, operation)
        with suppress(Crashed):
            self.deliver(records, shard, self.process(client))
        return client

    # Runs and commands

    def sleep(self, seconds: float) -> None:
        """Let time pass for a run, while what is new is delivered."""
        self.clock.advance(seconds)
        self.deliver_new()
        self.slept += 1
        self.then(self.slept)

    @property
    def feeds(self) -> Feeds:
        streams: Any = self.table.stream
        return Feeds(StreamReader(streams, streams.arn, sleep=lambda _: None))

    def run(self, kind: Callable[..., Any], *, sleep: Callable[[float], None] | None = None, **options: Any) -> Any:
        """Return a run, at whose sleeps what is new is delivered unless it has a `sleep` of its own."""
        return kind(table=self.reached(sleep=sleep or self.sleep), feeds=self.feeds, now=self.clock, **options)

    def backfill(self, *names: str, **options: Any) -> Backfill:
        options |= {"names": names} if names else {}
        backfill: Backfill = self.run(Backfill, **options)
        return backfill

    def verification(self, **options: Any) -> Verification:
        verification: Verification = self.run(Verification, **options)
        return verification

    def fill(self, *names: str, **options: Any) -> None:
        """Run a backfill to its end, until readers know of it."""
        assert [*self.backfill(*names, **options).steps()][-1].phase == "complete"
        self.clock.advance(REFRESH)

    def verify(self) -> Verification:
        verification = self.verification()
        assert [*verification.steps()][-1].phase == "complete"
        return verification

    def dropping(self, *names: str, sleep: Callable[[float], None] | None = None) -> Iterator[Progress]:
        table = self.reached(sleep=sleep)
        yield from Dropping(table=table, now=self.clock, names=names, segments=2).steps()

    def drop(self, *names: str) -> None:
        for _ in self.dropping(*names):
            pass

    def erase(self, event: Event, values: Mapping[str, Any], counts: Any, client: Any = None) -> Erased:
        return Eraser(self.reached(client), event, values).erase(counts)

    def redrive(self) -> int:
        """Redrive all that waits in quarantine, and deliver it."""
        done = [self.counters.redrive(entry) for entry in [*self.counters.quarantined()]]
        self.settle()
        return sum(done)

    # What there is, and what is right

    @property
    def registry(self) -> Registry:
        return read_registry(self.store)

    def state(self, name: str) -> str:
        return self.registry.entries[name].state

    def enter(self, name: str, state: State, **changed: Any) -> None:
        """Have a name enter a state, as some process may."""
        registry = self.registry
        entry = registry.entries[name]
        assert write_registry(self.store, registry, [(entry, entry.entering(state, self.clock(), **changed))])

    def waiting(self) -> int:
        return sum(1 for _ in self.counters.quarantined())

    def read(self, declaration: Aggregate, **values: Any) -> tuple[dict[str, Any], bool]:
        """Return what a group counts, and whether that is complete, once every process has read the registry."""
        self.clock.advance(REFRESH)
        group = self.reader().get(declaration, values, consistent=True)
        return dict(group.measures), group.complete

    def missing(self) -> list[tuple[str, dict[str, Any]]]:
        """Return status and missing numbers of each group that a verification finds other than its sources say."""
        return [(difference.status, dict(difference.missing)) for difference in self.verify().differences]


def _key(key: Mapping[str, Any]) -> dict[str, Any]:
    return {name: key[name] for name in ("pk", "sk")}


def reach(steps: Iterator[Progress], phase: str) -> Progress:
    """Let a run go on to a phase; return its step."""
    return next(step for step in steps if step.phase == phase)


def interrupt(
    patch: Any, owner: Any, method: str, then: Callable[[], object], when: Callable[..., bool] = lambda *_: True
) -> None:
    """Have something happen before a method is called for the first time, `when` that is so."""
    call = getattr(owner, method)

    def late(*arguments: Any, **named: Any) -> Any:
        if when(*arguments):
            patch.setattr(owner, method, call)
            then()
        return call(*arguments, **named)

    patch.setattr(owner, method, late)
