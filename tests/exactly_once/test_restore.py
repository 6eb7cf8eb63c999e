"""A restored table: an aggregator is deployed on a copy of any moment, and a repair makes it exact."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

from dynamodb_counters import Aggregate, Attr, Count, Counters, Event, Items
from dynamodb_counters._backfill.verification import Difference, Verification
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations.groups import identity, typed_key
from dynamodb_counters._quarantine.quarantine import list_quarantined, redrive
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying
from simulation.faults.process import in_disorder
from simulation.night import scaled
from simulation.oracle.specs import SPECS, Spec, declarations
from simulation.oracle.truth import _with_derived, actual, differences, expected_of_rows, expected_so_far
from simulation.pairs.restored_tables import Restored, RestoredTable
from simulation.schedules.backend import MemoryBackend
from simulation.schedules.sandbox import QUARANTINE_SECONDS
from simulation.schedules.writers import Writers

SEEDS = scaled(5)
DERIVED = {"crowded", "sizes", "books"}

Place = tuple[str, str, str]


class Copied:
    """A table with traffic and an aggregator that lags, in steps drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.backend = MemoryBackend(self.random)
        self.specs: list[Spec] = self.random.sample(SPECS, self.random.randint(3, 6))
        self.poison = self.random.choice((0.0, 0.2))
        self.writers = Writers(self.backend, self.random, 1000, self.poison)
        self._delivered: dict[str, int] = {}
        self._aggregator(self.backend).handle({})

    def live(self, steps: int, lag: float) -> None:
        for _ in range(steps):
            if self.random.random() < 0.6:
                self.writers.write()
            elif self.random.random() > lag:
                self._deliver()
            elif self.random.random() < 0.05:
                self.backend.roll_over()

    def _deliver(self) -> None:
        shard = self.random.choice([shard.id for shard in self.backend.stream.shards()])
        records = self.backend.stream.read(shard, None, 1_000_000).records
        start = self._delivered.get(shard, 0)
        batch = records[start : start + self.random.randint(1, 12)]
        if not batch:
            return
        calls = self.random.choice((None, None, self.random.randint(0, 12)))
        client: Any = self.backend
        if calls is not None:
            client = Dying(client, calls, after=self.random.random() < 0.5)
        try:
            self._aggregator(client).handle({"shardId": shard, "Records": batch})
        except (Crashed, CommitError):
            return  # Half written, perhaps; it comes again.
        self._delivered[shard] = start + len(batch)

    def _aggregator(self, client: Any) -> Aggregator:
        clock = self.backend.clock
        table = Table(self.backend.name, client, clock=clock, sleep=clock.advance, jitter=self.random.random)
        table.__dict__["side_by_side"] = in_disorder(self.random)
        return Aggregator(table, declarations(self.specs), quarantine_retention_seconds=QUARANTINE_SECONDS)

    def restored(self, seed: int) -> Restored:
        """Copy the table, deploy, and write to the copy from now on."""
        table = RestoredTable(self.backend, seed)
        self.backend.clock.advance(self.random.choice((60.0, HOUR, 3 * DAY)))
        self.writers.move(table)
        return Restored(table, self.random, declarations(self.specs), self.writers.write)

    def wrong(self, restored: Restored, unknown: Collection[Place] = ()) -> list[str]:
        """Counts that are neither exact nor said to be unknown."""
        now = restored.backend.clock()
        want, have = expected_so_far(self.specs, self.writers.history, now)[0], actual(restored.backend.items(), now)
        # Nothing shows whether an event that has expired was counted when the copy was made.
        expired = [expected_of_rows(self.specs, [(values, -1, True)], now) for values in self.writers.expired]
        # Aggregates over others are as exact as these.
        groups = {place: numbers for place, numbers in have.items() if place[0] not in DERIVED}
        derived = {place: numbers for place, numbers in _with_derived(groups).items() if place[0] in DERIVED}
        want = {place: numbers for place, numbers in want.items() if place[0] not in DERIVED} | derived
        for place in unknown:
            want[place] = have.get(place, {})
        return differences(want, have, [each for counts in expired for each in counts.items()])


def check(seed: int, *, repairs: bool = True) -> list[str]:
    world = Copied(seed)
    world.live(world.random.randint(5, 60), world.random.random())
    restored = world.restored(seed)
    if world.random.random() < 0.5:
        for entry in list(list_quarantined(restored.table, redriven=False)):
            redrive(restored.table, entry)
    unknown: set[Place] = set()
    if repairs:
        work = restored.repair()
        unknown = {place_of(work, each) for each in work.differences if each.verdict == "unknown"}
    restored.deliver_all()
    return [f"seed {seed}: {line}" for line in world.wrong(restored, unknown)]


def place_of(work: Verification, difference: Difference) -> Place:
    key = work._layout(difference.ref).key(difference.ref[1], "")
    pk, sk = identity(typed_key(key))
    # A spread group is one of all its items.
    return difference.name, pk.partition("#~")[0], sk


def test_a_copy_of_any_moment_is_exact_once_it_is_repaired() -> None:
    assert [line for seed in (*range(SEEDS), 364) for line in check(seed)] == []


def test_without_a_repair_counts_stay_wrong() -> None:
    wrong = [seed for seed in range(SEEDS) if check(seed, repairs=False)]
    assert len(wrong) >= SEEDS * 0.7, wrong


SALE = Event("sale", pk="SALE#{id}", sk="SALE", retention=timedelta(hours=1))
MEASURES = {"sales": Count()}
KEPT = Aggregate("keep", SALE, pk="keep", sk="#", measures=MEASURES)
LIVE = Aggregate("subtract", SALE, pk="subtract", sk="#", measures=MEASURES, on_expiry="subtract")


TICKET = Items("ticket", where=Attr("ticket").exists())
TICKETS = Aggregate("tickets", TICKET, pk="tickets", sk="#", measures=MEASURES)


def _original() -> tuple[MemoryBackend, Counters]:
    original = MemoryBackend(random.Random(1))
    return original, Counters(original.name, client=original.client, clock=original.clock)


def _count(original: MemoryBackend, declared: tuple[Aggregate, ...]) -> None:
    table = Table(original.name, original.client, clock=original.clock)
    aggregator = Aggregator(table, declared, quarantine_retention_seconds=QUARANTINE_SECONDS)
    for shard in original.stream.shards():
        aggregator.handle({"shardId": shard.id, "Records": original.stream.read(shard.id, None, 1000).records})


def test_what_was_erased_before_the_copy_had_counted_it_is_unknown() -> None:
    event = replace(SALE, retention=None)
    declared = (replace(KEPT, source=event),)
    original, counters = _original()
    for number in range(3):
        counters.accept(event, {"id": number})
    _count(original, declared)
    counters.erase(event, {"id": "1"}, counts="keep")
    work = Restored(RestoredTable(original, 1), random.Random(1), declared).repair()
    assert [(each.verdict, each.missing) for each in work.differences] == [("unknown", {"sales": -1})]


def test_what_expired_before_the_copy_had_counted_it_is_unknown_and_stays_counted() -> None:
    declared = (KEPT, LIVE, TICKETS)
    original, counters = _original()
    for number in range(3):
        counters.accept(SALE, {"id": number})
        ticket = {"pk": {"S": f"TICKET#{number}"}, "sk": {"S": "#"}, "ticket": {"BOOL": True}}
        ttl = {"ttl": {"N": str(int(original.clock() + HOUR))}}
        original.client.put_item(TableName=original.name, Item={**ticket, **ttl})
    _count(original, declared)
    original.clock.advance(2 * HOUR)
    original.expire(6)
    restored = Restored(RestoredTable(original, 1), random.Random(1), declared)
    work = restored.repair()
    verdicts = {each.name: (each.verdict, each.missing["sales"]) for each in work.differences}
    assert verdicts == {"keep": ("unknown", -3), "subtract": ("drifted", -3), "tickets": ("unknown", -3)}
    copy = Counters(restored.table.name, client=restored.table.client, clock=original.clock)
    assert [copy.get(each, {}).measures["sales"] for each in declared] == [3, 0, 3]
