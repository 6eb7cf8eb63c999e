"""Events are erased, with counts kept or taken back, while they are written, counted, redelivered and cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Sum
from dynamodb_counters._erase import eraser
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._table import Table
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus
from dynamodb_counters.errors import CountersError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient, once
from simulation.night import scaled
from simulation.oracle.chunks import rows_of
from simulation.workbench import Workbench

PLAIN = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", retention=timedelta(hours=9), version="version")
PACKED = replace(PLAIN, version=None, packed=Packed("at", timedelta(minutes=10)))
KINDS = {"plain": PLAIN, "packed": PACKED}
WRITES = ("put_item", "update_item", "delete_item")


def _declared(event: Event) -> tuple[Aggregate, Aggregate]:
    measures: Any = {"sales": Count(), "amount": Sum("amount")}
    return (
        Aggregate("sold", event, pk="SOLD", sk="ALL", measures=measures),
        Aggregate("known", event, pk="KNOWN", sk="ALL", measures=measures, on_expiry="subtract"),
    )


class World:
    """A table in memory, its aggregator, and what the counts must be."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.event = KINDS[kind]
        self.declared = _declared(self.event)
        self.bench = Workbench(self.declared)
        self.random = random.Random(seed)
        self.now = int(self.bench.clock.now) // 600 * 600
        self.writer = self.process()
        self.live: dict[tuple[str, int], tuple[int, int]] = {}
        """Version and amount by client and id."""
        self.gone: set[tuple[str, int]] = set()
        self.counted_through = 0
        self.kept = [0, 0]
        """Sales and amount of those erased with their counts kept."""

    def process(self, client: Any = None) -> Counters:
        table: Any = self.bench.table
        return Counters(table.name, client=client or table, clock=self.bench.clock)

    def sale(self, client: str, number: int, version: int = 1) -> dict[str, Any]:
        values = {"client": client, "at": self.now + number % 2 * 700, "id": number}
        return {**values, "version": version, "amount": number * 10 + version}

    def accept(self, client: str, number: int, version: int = 1, by: Counters | None = None) -> None:
        sale = self.sale(client, number, version)
        [outcome] = (by or self.writer).accept_many(self.event, [sale])
        key, before = (client, number), self.live.get((client, number))
        is_newer = before is not None and self.event.version is not None and before[0] < version
        is_new = key not in self.gone and (before is None or is_newer)
        assert outcome.status == ("accepted" if is_new else "duplicate")
        if is_new:
            self.live[key] = version, sale["amount"]

    def retract(self, client: str, number: int) -> None:
        was_there = self.writer.retract(self.event, self.sale(client, number))
        assert was_there == (self.live.pop((client, number), None) is not None)
        if self.event.packed is not None:
            self.gone.add((client, number))

    def erase(self, client: str, counts: Any, hook: Callable[..., Any] | None = None, **others: Any) -> Any:
        table = self.bench.table
        store: Any = table if hook is None else HookedClient(table, hook)
        reached = Table(table.name, store, clock=self.bench.clock, sleep=self.bench.clock.advance)
        return Eraser(reached, self.event, {"client": client, **others}).erase(counts)

    def note_erased(self, client: str, counts: str) -> None:
        for key in [key for key in self.live if key[0] == client]:
            _, amount = self.live.pop(key)
            if counts == "keep":
                self.kept[0] += 1
                self.kept[1] += amount
            if self.event.packed is not None:
                self.gone.add(key)

    def deliver_some(self) -> None:
        """Deliver a batch that begins anywhere, perhaps once more, perhaps by an invocation that dies."""
        records = self.bench.records()
        counted = self.counted_through
        first = self.random.randint(0, counted)
        last = self.random.randint(first, len(records))
        if first == last:
            return
        try:
            client = HookedClient(self.bench.table, dying(self.random.choice((2, 4, 99)), ("update_item",)))
            self.bench.deliver(records[first:last], by=self.bench.process(client))
            self.counted_through = max(counted, last)
        except Crashed:
            return

    def counts(self) -> dict[str, tuple[int, int]]:
        self.bench.deliver_all()
        found = {name.name: self.bench.counters.get(name, {}).measures for name in self.declared}
        return {name: (measures["sales"], measures["amount"]) for name, measures in found.items()}

    def expected(self) -> dict[str, tuple[int, int]]:
        amounts = [amount for _, amount in self.live.values()]
        known = len(amounts), sum(amounts)
        return {"sold": (known[0] + self.kept[0], known[1] + self.kept[1]), "known": known}

    def stored(self) -> str:
        """All that the table holds, chunks and entries of the quarantine unpacked."""
        items = [dict(item) for item in self.bench.table.items()]
        return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in items])


def dying(after: int, methods: tuple[str, ...] = WRITES, *, landed: bool = True) -> Callable[..., Any]:
    """A hook that has the process die at a write, before or after it landed."""
    left = [after]

    def hook(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if name not in methods:
            return send()
        left[0] -= 1
        if left[0] < 0 and not landed:
            raise Crashed
        answer = send()
        if left[0] < 0:
            raise Crashed
        return answer

    return hook


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("counts", ["keep", "take_back"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_dies_is_completed_by_the_next(kind: str, counts: str, landed: bool) -> None:
    for after in range(12):
        world = World(kind)
        for number in range(3):
            world.accept("ann", number)
            world.accept("bob", number)
        world.accept("ann", 0, version=2)
        with_crash = [False]
        try:
            world.erase("ann", counts, dying(after, landed=landed))
        except Crashed:
            with_crash[0] = True
            world.deliver_some()
        world.erase("ann", counts)
        world.note_erased("ann", counts)

        assert world.counts() == world.expected(), f"died after {after} writes"
        assert "ann" not in world.stored()
        if not with_crash[0]:
            break
    else:
        pytest.fail("no run came to its end")


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("counts", ["keep", "take_back"])
def test_a_newer_version_that_comes_in_between_counts_instead_of_the_older_one(counts: str, place: int) -> None:
    world = World("plain")
    world.accept("ann", 1)
    other, left, came = world.process(), [place], list[str]()

    def hook(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if name in WRITES:
            left[0] -= 1
            if left[0] == -1:
                [outcome] = other.accept_many(world.event, [world.sale("ann", 1, version=2)])
                came.append(outcome.status)
        return send()

    world.erase("ann", counts, hook)
    world.erase("ann", counts)

    assert "ann" not in world.stored()
    assert world.counts()["known"] == (0, 0)
    # What comes after it was deleted is a new event.
    newer = world.counts()["sold"] == (1, 12) if counts == "keep" else world.counts()["sold"] == (0, 0)
    assert newer or (came != ["accepted"] and world.counts()["sold"] == (1, 11))


@pytest.mark.parametrize("counts", ["keep", "take_back"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_that_is_over_stays_counted_where_expired_ones_do(kind: str, counts: str) -> None:
    world = World(kind)
    for client in ("ann", "bob"):
        world.accept(client, 2)
        world.accept(client, 4)
    assert world.counts() == world.expected()
    world.bench.clock.advance(10 * 3600)

    world.erase("ann", counts)

    assert "ann" not in world.stored()
    assert world.counts() == {"sold": (4, 124), "known": (2, 62)}


def test_a_bucket_of_which_a_part_has_expired_is_erased_and_not_written() -> None:
    world = World("packed")
    for number in (2, 4):
        world.accept("ann", number)
    assert world.counts() == world.expected()
    table = world.bench.table
    first = min((item for item in table.items() if "_chunk" in item), key=lambda item: str(item["sk"]["S"]))
    table.delete_item(TableName=table.name, Key={"pk": first["pk"], "sk": first["sk"]})

    world.erase("ann", "take_back")

    assert "ann" not in world.stored()
    assert len([item for item in table.items() if "_chunk" in item]) == 1


def test_events_stay_whose_counts_cannot_be_taken_back_now(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("packed")
    world.accept("ann", 2)
    busy = Outcome(OutcomeStatus.FAILED, "the log is busy")

    def fail(_table: Table, _log: object, entries: list[Any]) -> list[Outcome]:
        return [busy] * len(entries)

    with monkeypatch.context() as broken:
        broken.setattr(eraser, "write_entries", fail)
        with pytest.raises(CountersError, match="may not be retracted: the log is busy"):
            world.erase("ann", "take_back")
    assert world.counts() == world.expected()
    world.erase("ann", "take_back")
    world.note_erased("ann", "take_back")
    assert ("ann" in world.stored(), world.counts()) == (False, world.expected())


def _once(method: str, then: Callable[[], object]) -> Callable[..., Any]:
    """A hook that has something happen before the first request of a method that touches a chunk."""
    return once([method], then, lambda request: "LAYOUT" not in repr(request))


@pytest.mark.parametrize("counts", ["keep", "take_back"])
@pytest.mark.parametrize("before", ["it reads the values", "it puts them"])
def test_a_writer_that_has_read_an_event_before_cannot_bring_it_back(before: str, counts: str) -> None:
    world = World("packed")
    world.accept("ann", 1)
    requests = count()

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if "LAYOUT" not in repr(request) and next(requests) == (1 if before == "it reads the values" else 2):
            assert name == ("query" if before == "it reads the values" else "put_item")
            world.erase("ann", counts)
        return send()

    slow = world.process(HookedClient(world.bench.table, hook))
    assert not slow.retract(world.event, world.sale("ann", 1))
    assert "ann" not in world.stored()
    world.note_erased("ann", counts)
    assert world.counts() == world.expected()


@pytest.mark.parametrize("counts", ["keep", "take_back"])
def test_two_runs_do_not_bring_back_what_the_other_has_erased(counts: str) -> None:
    world = World("packed")
    sales = [world.sale(client, number) for client in ("ann", "bob", "cid") for number in (2, 4)]
    assert {outcome.status for outcome in world.writer.accept_many(world.event, sales)} == {"accepted"}

    world.erase("ann", counts, _once("update_item", lambda: world.erase("bob", counts)))

    assert "ann" not in world.stored()
    assert "bob" not in world.stored()
    assert world.counts()["known"] == (2, 21 + 41)
    assert world.counts()["sold"] == ((6, 3 * 62) if counts == "keep" else (2, 62))


def _step(world: World) -> None:
    draw, version, number = world.random.random, world.random.randint(1, 3), world.random.randint(0, 4)
    client, chance = world.random.choice(("ann", "bob")), draw()
    if chance < 0.5:
        world.accept(client, number, version, by=world.writer if draw() < 0.7 else world.process())
    elif chance < 0.6:
        world.retract(client, number)
    elif chance < 0.85:
        world.deliver_some()
    else:
        counts = world.random.choice(("keep", "take_back"))
        try:
            world.erase(client, counts, dying(world.random.randint(0, 9), landed=draw() < 0.5))
        except Crashed:
            world.erase(client, counts)
        world.note_erased(client, counts)
        assert client not in world.stored()


@pytest.mark.parametrize("seed", range(scaled(5)))
@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_as_chosen_whatever_is_delivered_when(kind: str, seed: int) -> None:
    world = World(kind, seed)
    for _ in range(40):
        _step(world)
    assert world.counts() == world.expected(), f"seed {seed}"
