"""Events are erased, with counts kept or taken back, while they are written, counted, redelivered and cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Sum
from dynamodb_counters._erasure import Eraser, Selection, without
from dynamodb_counters._fold.fold import InvalidImage
from dynamodb_counters._quarantine import Quarantine, list_quarantined, pack, redrive
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus
from dynamodb_counters.errors import CountersError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying, HookedClient, once
from simulation.night import scaled
from simulation.oracle.layout import rows_of
from simulation.world import World
from tests.unit.fold.streams import image, record

PLAIN = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", retention=timedelta(hours=9), version="version")
PACKED = replace(PLAIN, version=None, packed=Packed("at", timedelta(minutes=10)))
KINDS = {"plain": PLAIN, "packed": PACKED}
WRITES = ("put_item", "update_item", "delete_item")

MEASURES: Any = {"sales": Count(), "amount": Sum("amount")}
BOTH = pytest.mark.parametrize("counts", ["keep", "take_back"])
OF_EACH_KIND = pytest.mark.parametrize("kind", KINDS)


def stored(world: World) -> str:
    """All that the table holds, chunks and entries of the quarantine unpacked."""
    items = [dict(item) for item in world.table.items()]
    return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in items])


class Sales(World):
    """A table of sales, and what the counts must be."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.event = KINDS[kind]
        sold = Aggregate("sold", self.event, pk="SOLD", sk="ALL", measures=MEASURES)
        super().__init__(sold, replace(sold, name="known", pk="KNOWN", on_expiry="subtract"))
        self.random = random.Random(seed)
        self.now = int(self.clock()) // 600 * 600
        self.live: dict[tuple[str, int], tuple[int, int]] = {}
        """Version and amount by client and id."""
        self.tombstones: set[tuple[str, int]] = set()
        self.counted_through = 0
        self.remainder = [0, 0]
        """Sales and amount of those erased with their counts kept."""

    def sale(self, client: str, number: int, version: int = 1) -> dict[str, Any]:
        values = {"client": client, "at": self.now + number % 2 * 700, "id": number}
        return {**values, "version": version, "amount": number * 10 + version}

    def sell(self, client: str, number: int, version: int = 1, by: Counters | None = None) -> None:
        sale = self.sale(client, number, version)
        [outcome] = (by or self.counters).accept_many(self.event, [sale])
        key, before = (client, number), self.live.get((client, number))
        is_newer = before is not None and self.event.version is not None and before[0] < version
        is_new = key not in self.tombstones and (before is None or is_newer)
        assert outcome.status == ("accepted" if is_new else "duplicate")
        if is_new:
            self.live[key] = version, sale["amount"]

    def retract(self, client: str, number: int) -> None:
        was_there = self.counters.retract(self.event, self.sale(client, number))
        assert was_there == (self.live.pop((client, number), None) is not None)
        if self.event.packed is not None:
            self.tombstones.add((client, number))

    def forget(self, client: str, counts: Any, reached: Any = None) -> None:
        """Erase what there is of a client."""
        self.erase(self.event, {"client": client}, counts, reached)

    def note_erased(self, client: str, counts: str) -> None:
        for key in [key for key in self.live if key[0] == client]:
            _, amount = self.live.pop(key)
            if counts == "keep":
                self.remainder[0] += 1
                self.remainder[1] += amount
            if self.event.packed is not None:
                self.tombstones.add(key)

    def deliver_some(self) -> None:
        """Deliver a batch that begins anywhere, perhaps once more, perhaps by an invocation that dies."""
        records = self.records()
        first = self.random.randint(0, self.counted_through)
        last = self.random.randint(first, len(records))
        dying = Dying(self.table, self.random.choice((2, 4, 99)), after=True, operations=["update_item"])
        if first < last:
            with suppress(Crashed):
                self.deliver(records[first:last], by=self.process(dying))
                self.counted_through = max(self.counted_through, last)

    def counts(self) -> dict[str, tuple[int, int]]:
        self.deliver_all()
        groups = {aggregate.name: self.counters.get(aggregate, {}) for aggregate in self.declared}  # type: ignore[arg-type]
        return {name: (group["sales"], group["amount"]) for name, group in groups.items()}

    def expected(self) -> dict[str, tuple[int, int]]:
        amounts = [amount for _, amount in self.live.values()]
        total = len(amounts), sum(amounts)
        return {"sold": (total[0] + self.remainder[0], total[1] + self.remainder[1]), "known": total}

    def chunks(self) -> list[Any]:
        return sorted((item for item in self.table.items() if "_chunk" in item), key=lambda item: str(item["sk"]["S"]))


@pytest.mark.parametrize("landed", [False, True])
@BOTH
@OF_EACH_KIND
def test_a_run_that_dies_is_completed_by_the_next(kind: str, counts: str, landed: bool) -> None:
    for after in range(12):
        world = Sales(kind)
        for number in range(3):
            world.sell("ann", number)
            world.sell("bob", number)
        world.sell("ann", 0, version=2)
        has_crashed = False
        try:
            world.forget("ann", counts, Dying(world.table, after, after=landed, operations=WRITES))
        except Crashed:
            has_crashed = True
            world.deliver_some()
        world.forget("ann", counts)
        world.note_erased("ann", counts)
        assert world.counts() == world.expected(), f"died after {after} writes"
        assert "ann" not in stored(world)
        if not has_crashed:
            break
    else:
        pytest.fail("no run came to its end")


@pytest.mark.parametrize("place", range(5))
@BOTH
def test_a_newer_version_that_comes_in_between_counts_instead_of_the_older_one(counts: str, place: int) -> None:
    world = Sales("plain")
    world.sell("ann", 1)
    other, writes, came = world.reader(), [place], list[str]()

    def hook(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if name in WRITES:
            writes[0] -= 1
            if writes[0] == -1:
                [outcome] = other.accept_many(world.event, [world.sale("ann", 1, version=2)])
                came.append(outcome.status)
        return send()

    world.forget("ann", counts, HookedClient(world.table, hook))
    world.forget("ann", counts)
    assert "ann" not in stored(world)
    assert world.counts()["known"] == (0, 0)
    # What comes after it was deleted is a new event.
    newer = world.counts()["sold"] == (1, 12) if counts == "keep" else world.counts()["sold"] == (0, 0)
    assert newer or (came != ["accepted"] and world.counts()["sold"] == (1, 11))


@BOTH
@OF_EACH_KIND
def test_an_event_that_is_over_stays_counted_where_expired_ones_do(kind: str, counts: str) -> None:
    world = Sales(kind)
    for client in ("ann", "bob"):
        world.sell(client, 2)
        world.sell(client, 4)
    assert world.counts() == world.expected()
    world.clock.advance(10 * 3600)
    world.forget("ann", counts)
    assert "ann" not in stored(world)
    assert world.counts() == {"sold": (4, 124), "known": (2, 62)}


def test_events_stay_whose_counts_cannot_be_taken_back_now(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Sales("packed")
    world.sell("ann", 2)
    busy = Outcome(OutcomeStatus.FAILED, "the log is busy")
    with monkeypatch.context() as broken:
        broken.setattr(chunk_writes, "write_entries", lambda _table, _log, entries: [busy] * len(entries))
        with pytest.raises(CountersError, match="may not be retracted: the log is busy"):
            world.forget("ann", "take_back")
    assert world.counts() == world.expected()
    world.forget("ann", "take_back")
    world.note_erased("ann", "take_back")
    assert ("ann" in stored(world), world.counts()) == (False, world.expected())


def test_what_is_decided_again_after_a_failed_read_is_taken_back_once() -> None:
    world, reads = Sales("packed"), count()
    for number in (2, 4):
        world.sell("ann", number)

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        is_of_chunk = name == "query" and "#" in request["ExpressionAttributeValues"].get(":prefix", {"S": ""})["S"]
        if is_of_chunk and next(reads) == 1:
            raise ReadTimeoutError(endpoint_url="http://lost")
        return send()

    world.forget("ann", "take_back", HookedClient(world.table, hook))
    world.note_erased("ann", "take_back")
    assert next(reads) > 2
    assert world.counts() == world.expected()


@BOTH
@pytest.mark.parametrize("before", ["it reads the values", "it puts them"])
def test_a_writer_that_has_read_an_event_before_cannot_bring_it_back(before: str, counts: str) -> None:
    world = Sales("packed")
    world.sell("ann", 1)
    requests = count()

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if "LAYOUT" not in repr(request) and next(requests) == (1 if before == "it reads the values" else 2):
            assert name == ("query" if before == "it reads the values" else "put_item")
            world.forget("ann", counts)
        return send()

    assert not world.reader(HookedClient(world.table, hook)).retract(world.event, world.sale("ann", 1))
    assert "ann" not in stored(world)
    world.note_erased("ann", counts)
    assert world.counts() == world.expected()


@BOTH
def test_two_runs_do_not_bring_back_what_the_other_has_erased(counts: str) -> None:
    world = Sales("packed")
    sales = [world.sale(client, number) for client in ("ann", "bob", "cid") for number in (2, 4)]
    assert {outcome.status for outcome in world.counters.accept_many(world.event, sales)} == {"accepted"}
    # Before the first update of a chunk.
    hook = once(["update_item"], lambda: world.forget("bob", counts), lambda request: "_chunk" in repr(request))
    world.forget("ann", counts, HookedClient(world.table, hook))
    assert "ann" not in stored(world)
    assert "bob" not in stored(world)
    assert world.counts()["known"] == (2, 21 + 41)
    assert world.counts()["sold"] == ((6, 3 * 62) if counts == "keep" else (2, 62))


def _step(world: Sales) -> None:
    draw, version, number = world.random.random, world.random.randint(1, 3), world.random.randint(0, 4)
    client, chance = world.random.choice(("ann", "bob")), draw()
    if chance < 0.5:
        world.sell(client, number, version, by=world.counters if draw() < 0.7 else world.reader())
    elif chance < 0.6:
        world.retract(client, number)
    elif chance < 0.85:
        world.deliver_some()
    else:
        counts = world.random.choice(("keep", "take_back"))
        try:
            dying = Dying(world.table, world.random.randint(0, 9), after=draw() < 0.5, operations=WRITES)
            world.forget(client, counts, dying)
        except Crashed:
            world.forget(client, counts)
        world.note_erased(client, counts)
        assert client not in stored(world)


@pytest.mark.parametrize("seed", range(scaled(5)))
@OF_EACH_KIND
def test_counts_are_as_chosen_whatever_is_delivered_when(kind: str, seed: int) -> None:
    world = Sales(kind, seed)
    for _ in range(40):
        _step(world)
    assert world.counts() == world.expected(), f"seed {seed}"


@BOTH
def test_what_was_erased_first_stays_erased_when_more_is(counts: str) -> None:
    world, clients = Sales("packed"), ("ann", "bob", "cid")
    world.accept(world.event, *(world.sale(client, 0) for client in clients))
    for client in ("ann", "bob"):
        world.forget(client, counts)
    outcomes = world.reader().accept_many(world.event, [world.sale(client, 0) for client in clients])
    assert [outcome.status for outcome in outcomes] == ["duplicate"] * 3


@BOTH
def test_a_log_that_has_lost_a_chunk_is_erased_all_the_same_and_not_written(counts: str) -> None:
    world = Sales("packed")
    for number in (0, 2):
        world.sell("ann", number)
    assert world.counts() == world.expected()
    world.delete(world.chunks()[0])
    world.forget("ann", counts)
    assert "ann" not in stored(world)
    assert len(world.chunks()) == 1


VALUES = {"url": "/" + "u" * 3000, "time": "1", "client": "ann"}
VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}")


def test_a_hashed_key_is_known_by_all_of_its_values() -> None:
    keys = {"pk": {"S": VIEW._pk_template.render(VALUES)}, "sk": {"S": VIEW._sk_template.render(VALUES)}}
    huge: Any = {"eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
    assert without(huge, Selection(VIEW, VALUES)) == (1, None)


def test_an_entry_within_an_entry_holds_nothing_of_what_is_erased() -> None:
    sold, other = (image("view", client=client) for client in ("ann", "bob"))
    inner = {**image("quarantine"), "record": pack(record(1, sold, other))}
    number, rest = without(record(2, inner), Selection(VIEW, {"client": "ann"}))
    assert (number, "ann" in str(rest), "bob" in str(rest)) == (1, False, True)


def test_an_entry_that_goes_meanwhile_stays_gone() -> None:
    world = World(founds=False)
    change = record(1, {"_type": {"S": "view"}, "url": {"S": "/"}, "time": {"N": "1"}, "client": {"S": "ann"}})
    Quarantine(world.store, 86_400).keep("shard-1", [InvalidImage("1", "NewImage", change, "malformed")])
    [entry] = list_quarantined(world.store, redriven=False)
    assert redrive(world.store, entry)
    key = {"pk": {"S": entry.key[0]}, "sk": {"S": entry.key[1]}}
    late = HookedClient(world.table, once(["update_item"], lambda: world.delete(key)))
    assert Eraser(world.reached(late), VIEW, {"client": "ann"})._sweep_entries(writes=True) == (1, 0)
    assert list(world.table.items()) == []
