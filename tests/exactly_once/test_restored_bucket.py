"""Batches that Lambda gave up on before a copy was made count in the copy, once, and nothing that came after them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Items, TableKeys
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.control import read_control
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._quarantine.redrive_entries import list_quarantined
from dynamodb_counters._recovery.catch_up import CatchUp, has_caught_up
from dynamodb_counters._recovery.given_up import GivenUp
from dynamodb_counters._recovery.redrive_bucket import redrive_bucket
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY, HOUR, MINUTE
from dynamodb_counters.errors import CommitError, GivenUpError
from dynamodb_counters.testing._dynamodb.memory_stream import Record
from simulation.faults.actors import Crashed
from simulation.night import scaled
from simulation.oracle.truth import actual, differences, expected_so_far
from simulation.schedules.backend import MemoryBackend
from simulation.schedules.housekeeping import housekeeping
from simulation.schedules.restored_tables import Copy, Objects, Reader, all_records, copied, count_own_stream
from simulation.workbench import QUARANTINE_SECONDS, Workbench
from tests.exactly_once.test_restore import World
from tests.unit.cli.in_process import Done, run

SEEDS = range(scaled(10))
GIVEN_UP_AFTER = 23 * HOUR
FORGOTTEN_AFTER = 24 * HOUR
STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/counters/stream/2026-11-20T00:00:00.000"


class Lagging(World):
    """A table whose aggregator lags by hours, so that Lambda gives up on what it leaves for a day."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, MemoryBackend)
        self.objects = Objects()
        self._through: dict[str, str] = {}

    def live(self, steps: int, lag: float) -> None:
        for _ in range(steps):
            drawn = self.random.random()
            if drawn < 0.4 and self.writers.left:
                self.writers.write()
            elif drawn < 0.6:
                self.let_pass(self.random.choice((0.1, 1, 3)) * HOUR)
            elif drawn < 0.63:
                self.backend.roll_over()
            elif self.random.random() > lag:
                self._deliver()

    def let_pass(self, seconds: float) -> None:
        end = self.backend.clock.now + seconds
        while self.backend.clock.now < end:
            self.backend.clock.advance(min(HOUR / 2, end - self.backend.clock.now))
            for shard in self.backend.stream.shards():
                self._give_up(shard.id)
            self.backend.trim(self.backend.clock.now - FORGOTTEN_AFTER)

    def redrive(self, where: Any, calls: int | None = None, *, keep: bool = False) -> list[str]:
        found = list(redrive_bucket(self.table(where, calls), self.objects, keep=keep))  # type: ignore[arg-type]
        return [one.problem for one in found if one.problem is not None]

    def _give_up(self, shard: str) -> None:
        page = self.backend.stream.read(shard, self._through.get(shard), 1000)
        old = [one for one in page.records if _created(one) <= self.backend.clock.now - GIVEN_UP_AFTER]
        while old:
            batch, old = old[: (size := self.random.randint(1, 5))], old[size:]
            self.objects.put(GivenUp(shard, self.backend.stream.arn, tuple(batch), self.backend.clock.now))
            self._through[shard] = batch[-1]["dynamodb"]["SequenceNumber"]

    def _deliver(self) -> None:
        shard = self.random.choice([shard.id for shard in self.backend.stream.shards()])
        batch = self.backend.stream.read(shard, self._through.get(shard), self.random.randint(1, 12)).records
        if not batch:
            return
        calls = self.random.choice((None, None, self.random.randint(0, 12)))
        try:
            self.aggregator(self.backend, calls=calls).handle({"shardId": shard, "Records": batch})
        except (Crashed, CommitError, TimeoutError):
            return
        self._through[shard] = batch[-1]["dynamodb"]["SequenceNumber"]


def check(seed: int) -> tuple[list[str], int, int]:
    """Errors; how many objects the copy's bucket held, and how many of them hold what the copy has not."""
    world = Lagging(seed)
    world.aggregator(world.backend).handle({})
    world.live(world.random.randint(20, 80), world.random.random())
    if world.random.random() < 0.3:
        world.redrive(world.backend)
    restored, at = copied(world.backend, seed), world.backend.clock()
    history = list(world.writers.history)
    end = at + world.random.choice((0, 1, 10, 20)) * HOUR
    while world.backend.clock() < end:
        # Records that the original counts now and forgets before the restore cannot come to the copy.
        world.live(1, 1.0)
    if world.random.random() < 0.5:
        world.redrive(world.backend, keep=True)
    _restore(world, restored, at)
    _count_own(world, restored)
    # The original goes on, unless it was stopped.
    world.let_pass(world.random.choice((0.1, 30)) * HOUR)
    held = len(list(world.objects.list_keys()))
    left = _redrive_until_done(world, restored)
    _count_own(world, restored)
    now = restored.clock()
    want, poisoned = expected_so_far(world.specs, history, now)
    wrong = differences(want, actual(restored.items(), now))
    waiting = list(list_quarantined(world.table(restored), redriven=False))
    if len(waiting) < poisoned or (len(waiting) - poisoned) % 2:
        wrong.append(f"quarantine: expected {poisoned}, found {len(waiting)}: {waiting}")
    wrong += [problem for problem in left if "after the copy" not in problem]
    return [f"seed {seed}: {line}" for line in wrong], held, len(left)


def _restore(world: World, restored: Copy, at: float) -> None:
    for attempt in range(200):
        calls = None if attempt > 6 else world.random.randint(0, 60)
        original: Any = Reader(world.backend.stream)
        own: Any = Reader(restored.stream)
        try:
            table, stream = world.table(restored, calls), world.backend.stream.arn
            catch_up = CatchUp(table, original, own, stream, at=at)
            if has_caught_up(table, stream):
                return
            catch_up.count(catch_up.find())
        except Crashed:
            continue
        except TimeoutError:
            world.backend.clock.advance(MINUTE)  # The run that was killed might still count.


def _redrive_until_done(world: Lagging, restored: Copy) -> list[str]:
    for attempt in range(200):
        try:
            calls = None if attempt > 6 else world.random.randint(0, 40)
            left = world.redrive(restored, calls, keep=world.random.random() < 0.3)
        except (Crashed, TimeoutError):
            continue
        if attempt > 8:
            return left
    raise AssertionError("the bucket is never done")


def _count_own(world: World, restored: Copy) -> None:
    stream: Any = restored.stream
    stream.trim(restored.clock() - FORGOTTEN_AFTER)
    count_own_stream(world.aggregator(restored), restored.stream)


def _created(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


def test_batches_that_lambda_gave_up_on_are_counted_in_the_copy() -> None:
    wrong: list[str] = []
    held = left = 0
    for seed in SEEDS:
        with housekeeping(eager=seed % 2 == 0):
            found = check(seed)
        wrong, held, left = wrong + found[0], held + found[1], left + found[2]
    assert wrong == []
    assert held >= len(SEEDS), held
    assert left >= len(SEEDS) // 8, left


SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE")
SALES = Aggregate("sales", SALE, pk="SALES", sk="ALL", measures={"n": Count()})


class Shop:
    """A table of sales, of which Lambda has given up on some, and its copy."""

    def __init__(self) -> None:
        self.bench = Workbench([SALES])
        self.bench.aggregator.handle({})
        self.objects = Objects()
        self._sold = 0

    def sell(self) -> Record:
        self._sold += 1
        self.bench.counters.accept(SALE, {"shop": "x", "id": self._sold})
        return self.bench.records()[-1]

    def give_up(self, *records: Record, stream: str = STREAM) -> str:
        return self.objects.put(GivenUp(self.bench.shards()[0], stream, records, self.bench.clock()))

    def copy(self, name: str = "restored") -> Copy:
        self.at = self.bench.clock()
        self.restored = copied(self.bench.table, name=name)
        client: Any = self.restored.client
        self.table = Table(self.restored.name, client, clock=self.bench.clock, sleep=self.bench.clock.advance)
        return self.restored

    def restore(self) -> None:
        original: Any = Reader(self.bench.table.stream)
        own: Any = Reader(self.restored.stream)
        catch_up = CatchUp(self.table, original, own, STREAM, at=self.at)
        catch_up.count(catch_up.find())

    def redrive(self) -> list[tuple[str, int, str | None]]:
        found = redrive_bucket(self.table, self.objects)  # type: ignore[arg-type]
        return [(one.key, one.records, one.problem) for one in found]

    def command(self, *arguments: str) -> Done:
        arguments = ("bucket", "redrive", "bucket", "--table", self.restored.name, *arguments)
        return run(*arguments, client=self.restored.client, clients={"s3": S3(self.objects)}, clock=self.bench.clock)

    def count(self) -> int:
        client: Any = self.restored.client
        counters = Counters(self.restored.name, client=client, clock=self.bench.clock)
        number: int = counters.get(SALES, {}).measures["n"]
        return number


class S3:
    """A client of S3 over such objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get_paginator(self, _: str) -> S3:
        return self

    def paginate(self, **_: str) -> Iterator[Any]:
        yield {"Contents": [{"Key": key} for key in self._objects.list_keys()]}

    def get_object(self, **place: str) -> Any:
        held = self._objects.read(place["Key"])
        batch = {"shardId": held.shard, "streamArn": held.stream}
        document = {"DDBStreamBatchInfo": batch, "payload": {"Records": held.records}}

        class Body:
            def read(self) -> bytes:
                return json.dumps(document).encode()

        return {"Body": Body()}

    def delete_object(self, **place: str) -> None:
        self._objects.delete(place["Key"])


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_the_original_s_batches_count_in_the_copy_and_what_came_after_it_stays(shop: Shop) -> None:
    lost = [shop.sell() for _ in range(3)]
    shop.bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    before = shop.give_up(*lost)
    shop.bench.deliver([shop.sell()])
    shop.copy()
    shop.bench.clock.advance(2 * HOUR)
    shop.bench.table.stream.trim(shop.bench.clock() - FORGOTTEN_AFTER)
    after = shop.give_up(shop.sell(), shop.sell())
    shop.restore()
    assert shop.count() == 1

    dry = shop.command("--dry-run")
    assert (dry.code, f"{before}: 3 records; to count" in dry.out) == (1, True)
    assert f"{after}: 2 records; 2 of them stay: created after the copy was made" in dry.out
    done = shop.command("--yes")
    assert (done.code, shop.count()) == (1, 4)
    assert list(shop.objects.list_keys()) == [after]
    assert shop.command("--yes", "--json").document["objects"][0]["left"] == 2
    assert shop.count() == 4


def test_records_that_the_catch_up_read_around_the_copy_are_settled(shop: Shop) -> None:
    """Within some minutes of the copy, times do not say what it contains; the catch-up has compared the images."""
    shop.bench.deliver([shop.sell()])
    shop.bench.clock.advance(HOUR)
    inside = shop.sell()
    shop.bench.clock.advance(MINUTE)
    shop.copy()
    shop.bench.clock.advance(MINUTE)
    outside = shop.sell()
    shop.restore()
    assert shop.count() == 2
    shop.give_up(inside, outside)
    assert [problem for _, _, problem in shop.redrive()] == [None]
    assert (shop.count(), list(shop.objects.list_keys())) == (2, [])


def test_records_around_the_copy_that_were_not_read_stay(shop: Shop) -> None:
    lost = shop.sell()
    shop.bench.clock.advance(MINUTE)
    shop.copy()
    shop.bench.clock.advance(2 * DAY)
    shop.bench.table.stream.trim(shop.bench.clock() - FORGOTTEN_AFTER)
    key = shop.give_up(lost)
    shop.restore()
    [(found, _, problem)] = shop.redrive()
    assert (found, "or too near it" in str(problem)) == (key, True)
    assert (shop.count(), list(shop.objects.list_keys())) == (0, [key])


def test_before_the_copy_has_caught_up_the_bucket_waits(shop: Shop) -> None:
    key = shop.give_up(shop.sell())
    shop.bench.clock.advance(HOUR)
    shop.copy()
    [(found, _, problem)] = shop.redrive()
    assert (found, "expected a stream of" in str(problem), "counters restore" in str(problem)) == (key, True, True)
    assert shop.command("--yes").code == 1

    original: Any = Reader(shop.bench.table.stream)
    own: Any = Reader(shop.restored.stream)
    catch_up = CatchUp(shop.table, original, own, STREAM, at=shop.at)
    catch_up._finish = lambda: None  # type: ignore[method-assign]
    catch_up.count(catch_up.find())
    with pytest.raises(GivenUpError, match=f"run `counters restore {STREAM}` again"):
        shop.redrive()
    shop.restore()
    assert (shop.redrive(), shop.count()) == ([(key, 1, None)], 1)


def test_a_copy_of_a_copy_knows_both(shop: Shop) -> None:
    lost = shop.sell()
    shop.bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    shop.give_up(lost)
    shop.copy()
    shop.bench.clock.advance(HOUR)
    shop.bench.table.stream.trim(shop.bench.clock() - FORGOTTEN_AFTER)
    shop.restore()
    first = shop.restored
    shop.bench.clock.advance(HOUR)
    items: Any = first.client
    again = copied(items, seed=7, name="again")
    client: Any = again.client
    table = Table(again.name, client, clock=shop.bench.clock, sleep=shop.bench.clock.advance)
    original: Any = Reader(first.stream)
    own: Any = Reader(again.stream)
    catch_up = CatchUp(table, original, own, first.stream.arn, at=shop.bench.clock())
    catch_up.count(catch_up.find())
    assert [one.stream for one in read_control(table).predecessors] == [STREAM, first.stream.arn]
    shop.restored, shop.table = again, table
    assert ([problem for _, _, problem in shop.redrive()], shop.count()) == ([None], 1)


def test_a_copy_of_the_same_name_knows_its_own_batches_from_the_original_s(shop: Shop) -> None:
    shop.copy(name="counters")
    shop.restore()
    shop.bench.clock.advance(HOUR)
    client: Any = shop.restored.client
    Counters(shop.restored.name, client=client, clock=shop.bench.clock).accept(SALE, {"shop": "y", "id": 99})
    [own] = [
        (shard.id, record)
        for shard in shop.restored.stream.shards()
        for record in all_records(shop.restored.stream, shard.id)
        if record["eventName"] == "INSERT" and "SHOP#y" in record["dynamodb"]["Keys"]["pk"]["S"]
    ]
    shop.objects.put(GivenUp(own[0], STREAM.replace("11-20T", "11-25T"), (own[1],), shop.bench.clock()))
    after = shop.give_up(shop.sell())
    left = {key: problem for key, _, problem in shop.redrive() if problem}
    assert (list(left), shop.count()) == ([after], 1)


def test_a_stream_of_another_table_is_named(shop: Shop) -> None:
    other = STREAM.replace("table/counters", "table/another")
    key = shop.give_up(shop.sell(), stream=other)
    shop.copy()
    for arguments in (("--dry-run",), ("--yes",), ()):
        done = shop.command(*arguments)
        assert (done.code, f"{key}: 1 records; invalid stream={other!r}" in done.out) == (1, True)
    assert list(shop.objects.list_keys()) == [key]


ORDER = Items("order", pk="ORDER#{order}", keys=TableKeys("id"))
ORDERS = Aggregate("orders", ORDER, pk="ORDERS", sk="ALL", measures={"n": Count()})
TOTAL = Aggregate("total", ORDERS, pk="TOTAL", sk="ALL", measures={"n": Count()})
SOURCE = "arn:aws:dynamodb:us-east-1:123456789012:table/shop"


def test_a_copy_with_a_source_table_counts_what_waits_of_both(shop: Shop) -> None:
    declared: tuple[Declaration, ...] = (ORDERS, TOTAL)
    bench = shop.bench = Workbench(declared)

    def aggregator(table: Table) -> Aggregator:
        return Aggregator(table, declared, quarantine_retention_seconds=QUARANTINE_SECONDS, source_table=SOURCE)

    def order(number: int) -> Record:
        image = {"id": {"S": f"ORDER#{number}"}}
        change = {"ApproximateCreationDateTime": bench.clock(), "Keys": image, "SequenceNumber": f"{number}"}
        record = {"eventName": "INSERT", "dynamodb": {**change, "NewImage": image}}
        return {**record, "eventSourceARN": f"{SOURCE}/stream/2026"}

    aggregator(bench.store).handle({"shardId": "shardId-9", "Records": [order(number) for number in range(1, 6)]})
    lost = [order(6), order(7)]
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    shop.objects.put(GivenUp("shardId-9", f"{SOURCE}/stream/2026", tuple(lost), bench.clock()))
    # An item without a type is none of the source table.
    bench.table.put_item(TableName=bench.table.name, Item={"pk": {"S": "X"}, "sk": {"S": "Y"}, "id": {"S": "ORDER#8"}})
    shop.copy()
    bench.clock.advance(10 * MINUTE)
    shop.restore()
    client: Any = shop.restored.client
    counters = Counters(shop.restored.name, client=client)
    assert counters.get(ORDERS, {}).measures["n"] == 5
    assert counters.get(TOTAL, {}).measures["n"] == 1
    assert [problem for _, _, problem in shop.redrive()] == [None]
    live = aggregator(shop.table)
    for _ in range(2):
        # Its new mapping begins with the oldest record that the source table's stream has.
        live.handle({"shardId": "shardId-9", "Records": [*(order(number) for number in (4, 5)), *lost, order(8)]})
        for shard in shop.restored.stream.shards():
            if records := all_records(shop.restored.stream, shard.id):
                live.handle({"shardId": shard.id, "Records": records})
    assert counters.get(ORDERS, {}).measures["n"] == 8
    assert counters.get(TOTAL, {}).measures["n"] == 1
