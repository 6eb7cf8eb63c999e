"""In an emulator that runs all that counts its tables, runs begin at once, and stay exact; elsewhere they wait."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Counters, Threshold, Window
from dynamodb_counters._backfill.feeds import EMULATOR_HEADER
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import flatten
from dynamodb_counters._dev import server
from simulation.workbench import QUARANTINE_SECONDS, Workbench
from tests.exactly_once import test_run_commands as run_commands
from tests.exactly_once.test_backfill import NUMBER, REVENUE, put, read
from tests.exactly_once.test_run_commands import lines


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

    def __init__(self, bench: Workbench, *declarations: Aggregate | Window) -> None:
        options: Any = {"single_shard": True, "always_reads": True}
        super().__init__(bench.store, declarations, quarantine_retention_seconds=QUARANTINE_SECONDS, **options)

    def handle(self, event: Any, *arguments: Any, **options: Any) -> Report:
        return super().handle({"Records": event["Records"]}, *arguments, **options)


class Emulated(run_commands.Counters):
    """Commands against an emulator."""

    def __call__(self, *arguments: str, **outside: Any) -> Any:
        return super().__call__(*arguments, **{"client": Alone(self.bench.table)} | outside)


@pytest.fixture
def emulated() -> Emulated:
    bench = Workbench([REVENUE])
    bench.aggregator = Function(bench, REVENUE)
    for number in range(20):
        put(bench, number, 10, f"customer{number % 3}")
    counters = Emulated(bench)
    counters.stream.deliver()
    bench.aggregator = Function(bench, REVENUE, NUMBER)
    counters.stream.deliver()
    counters.then = lambda slept: put(bench, 100 + slept, 7, f"customer{slept % 3}")
    return counters


def test_a_backfill_and_a_verification_take_seconds_and_are_exact(emulated: Emulated) -> None:
    bench = emulated.bench
    began = bench.clock.now
    done = emulated("backfill", "--yes", "--json")
    assert done.code == 0, done.err
    assert lines(done.err)[0] == "waiting: 0 of 3 s"
    assert bench.clock.now < began + 15
    bench.clock.advance(61)
    emulated.stream.deliver()
    assert read(bench, NUMBER) == ({"orders": 20 + emulated.slept}, True)

    began = bench.clock.now
    assert emulated("verify").code == 0
    assert bench.clock.now < began + 15


def test_where_no_answer_says_so_a_run_waits_for_other_processes(emulated: Emulated) -> None:
    done = emulated("backfill", "--yes", "--json", client=emulated.bench.table)
    assert lines(done.err)[0] == "waiting: 0 of 240 s"


@pytest.mark.parametrize("command", ["drop", "backfill"])
def test_no_reader_takes_a_name_that_is_emptied_for_complete(emulated: Emulated, command: str) -> None:
    bench, reads = emulated.bench, []
    reader = Counters(bench.table.name, client=bench.table, clock=bench.clock)  # type: ignore[arg-type]

    def customer(_slept: int = 0) -> None:
        group = reader.get(REVENUE, customer="customer0", consistent=True)
        reads.append((group.measures["total"], group.complete))

    customer()
    emulated.then = customer
    done = emulated(command, "revenue", "--yes")
    assert done.code == 0, done.err
    assert reads[0] == (70, True)
    assert {total for total, is_complete in reads if is_complete} == {70}
    assert any(not is_complete for _, is_complete in reads)


def test_a_threshold_that_is_added_watches_at_once(emulated: Emulated) -> None:
    bench = emulated.bench
    far: Any = Threshold("far", REVENUE, at=[1], measure="total")
    Aggregator.handle(Function(bench, *flatten([REVENUE, NUMBER, far])), {})
    [entry] = [entry for entry in read_registry(bench.store).entries.values() if entry.watches]
    assert entry.since <= bench.clock.now + 3


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
