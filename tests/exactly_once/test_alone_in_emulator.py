"""In an emulator that runs all that counts its tables, runs begin at once, and stay exact; elsewhere they wait."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Threshold
from dynamodb_counters._backfill.feeds import EMULATOR_HEADER
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._declarations import flatten
from dynamodb_counters._dev import server
from simulation.world import QUARANTINE_SECONDS, World
from tests.exactly_once.test_backfill import NUMBER, REVENUE, Orders
from tests.exactly_once.test_run_commands import command, lines
from tests.unit.cli.in_process import Done


class Alone:
    """A client whose answers say that the emulator is alone."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_table(self, **request: Any) -> Any:
        headers = {EMULATOR_HEADER: "alone"}
        return {**self._client.describe_table(**request), "ResponseMetadata": {"HTTPHeaders": headers}}


class Function(Aggregator):
    """The emulator's function: it reads the registry before each batch, and its events name no shard."""

    def __init__(self, world: World, *declarations: Any) -> None:
        options: Any = {"single_shard": True, "always_reads": True, "quarantine_retention_seconds": QUARANTINE_SECONDS}
        super().__init__(world.store, flatten(declarations), **options)

    def handle(self, event: Any, *arguments: Any, **options: Any) -> Report:
        return super().handle({"Records": event["Records"]}, *arguments, **options)


def emulated(world: World, *arguments: str) -> Done:
    return command(world, *arguments, client=Alone(world.table))


@pytest.fixture
def world() -> Orders:
    world = Orders(founds=False)
    world.aggregator = Function(world, REVENUE)
    for number in range(20):
        world.order(number, 10, f"customer{number % 3}")
    world.deliver_new()
    world.aggregator = Function(world, REVENUE, NUMBER)
    world.deliver_new()
    world.then = lambda slept: world.order(100 + slept, 7, f"customer{slept % 3}")
    return world


def test_a_backfill_and_a_verification_take_seconds_and_are_exact(world: Orders) -> None:
    began = world.clock.now
    done = emulated(world, "backfill", "--yes", "--json")
    assert done.code == 0, done.err
    assert lines(done.err)[0] == "waiting: 0 of 3 s"
    assert world.clock.now < began + 15
    world.deliver_new()
    assert world.read(NUMBER) == ({"orders": 20 + world.slept}, True)

    world.deliver_new()
    began = world.clock.now
    assert emulated(world, "verify").code == 0
    assert world.clock.now < began + 15


def test_where_no_answer_says_so_a_run_waits_for_other_processes(world: Orders) -> None:
    done = command(world, "backfill", "--yes", "--json")
    assert lines(done.err)[0] == "waiting: 0 of 240 s"


@pytest.mark.parametrize("command", ["drop", "backfill"])
def test_no_reader_takes_a_name_that_is_emptied_for_complete(world: Orders, command: str) -> None:
    reads, reader = [], world.reader()

    def customer(_slept: int = 0) -> None:
        group = reader.get(REVENUE, customer="customer0", consistent=True)
        reads.append((group.measures["total"], group.complete))

    customer()
    world.then = customer
    done = emulated(world, command, "revenue", "--yes")
    assert done.code == 0, done.err
    assert reads[0] == (70, True)
    assert {total for total, is_complete in reads if is_complete} == {70}
    assert any(not is_complete for _, is_complete in reads)


def test_a_threshold_that_is_added_watches_at_once(world: Orders) -> None:
    far: Any = Threshold("far", REVENUE, at=[1], measure="total")
    Aggregator.handle(Function(world, REVENUE, NUMBER, far), {})
    [entry] = [entry for entry in world.registry.entries.values() if entry.watches]
    assert entry.since <= world.clock.now + 3


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_emulator_alone_says_so_in_each_answer(*, is_alone: bool) -> None:
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/_ministack/ready", "headers": [(b"host", b"localhost")]}
    with pytest.raises(StopIteration):
        server.guarded(app, "key", is_alone=is_alone)(scope, None, send).__await__().send(None)

    names = [name for name, _ in sent[0]["headers"]]
    assert names == [b"a", *([EMULATOR_HEADER.encode()] if is_alone else [])]
    assert sent[1] == {"type": "http.response.body", "body": b""}
