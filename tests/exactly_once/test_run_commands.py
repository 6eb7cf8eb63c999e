"""``counters backfill``, ``drop`` and ``verify`` on a table that is written to; and verification on a schedule."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from counters_cli import dev_server as server
from counters_lambda.counting.batch import Aggregator, Report
from counters_lambda.counting.feeds import EMULATOR_HEADER
from counters_lambda.counting.run_logs import run_key
from counters_lambda.counting.verification import Verification
from counters_lambda.handlers.verifier import LONGEST, work_on_schedule
from dynamodb_counters import Distinct, Threshold
from dynamodb_counters._declarations import flatten
from dynamodb_counters.errors import BackfillError
from simulation.world import QUARANTINE_SECONDS, World
from tests.exactly_once.test_runs import NUMBER, ORDER, REVENUE, Orders, described, older, world
from tests.unit.cli.in_process import Done, run

__all__ = ["world"]

FILLED, VERIFIED = "b0123456789abcdef", "v0123456789abcdef"
BUYERS = Distinct("buyers", ORDER, pk="BUYERS", sk="NUMBER", member="customer")


def command(world: World, *arguments: str, **outside: Any) -> Done:
    """Run a command on the world's table, which is delivered at its sleeps."""
    clients: Any = {"client": world.table, "clients": {"dynamodbstreams": world.table.stream}}
    times: Any = {"clock": world.clock, "service_time": world.clock, "sleep": world.sleep}
    return run(*arguments, "--table", world.name, **clients | times | outside)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def changed(world: Orders) -> Orders:
    """Return a new aggregate over twenty items, five of which are deleted then."""
    world.deploy(REVENUE, NUMBER)
    world.cancel(*range(5))
    world.deliver_new()
    return world


def test_backfill_counts_what_the_table_held(changed: Orders) -> None:
    before = command(changed, "get", "orders")
    assert lines(before.out + before.err) == [
        "orders 0",
        "not complete: `counters backfill orders` counts what was there before",
    ]
    done = command(changed, "backfill", "--yes", "--json")
    assert (done.code, done.document["names"]) == (0, ["orders"])
    assert lines(done.err)[0] == "waiting: 0 of 240 s"
    assert {line.partition(":")[0] for line in lines(done.err)} == {"waiting", "scanning", "draining", "adding"}
    assert changed.read(NUMBER) == ({"orders": 15}, True)
    after = command(changed, "get", "orders")
    assert lines(after.out + after.err) == ["orders 15"]
    again = command(changed, "backfill", "--yes")
    assert (again.code, lines(again.out)) == (0, ["Nothing to backfill: all count all there is."])


def test_a_distinct_is_backfilled_with_its_members() -> None:
    world = Orders(BUYERS, founds=False)
    for number in range(10):
        world.order(number, 10, f"customer{number % 5}")
    # The stream shows none to an aggregator that the table takes for its first.
    world.skip()
    world.process(older(world.table, minutes=0)).handle({})
    assert world.read(BUYERS.total) == ({"distinct": 0}, True)
    done = command(world, "backfill", "buyers", "--yes", "--json")
    assert (done.code, done.document["names"]) == (0, ["buyers", "buyers-members"])
    assert world.read(BUYERS.total) == ({"distinct": 5}, True)


def test_a_name_is_dropped_once_no_process_can_count_in_it(changed: Orders) -> None:
    assert command(changed, "backfill", "orders", "--yes").code == 0

    def types() -> set[str]:
        return {item["_type"]["S"] for item in changed.table.items() if "_type" in item} - {"_checkpoint"}

    questions: list[str] = []
    assert command(changed, "drop", "orders", answer=questions.append).code == 1
    assert questions == [f"Drop orders, and scan {len([*changed.table.items()])} items for theirs?"]
    changed.deploy(REVENUE)
    assert types() == {"revenue", "orders"}
    assert lines(command(changed, "drop", "orders", "--yes").out) == ["orders: dropped; 1 item deleted"]
    assert types() == {"revenue"}
    assert "expected one that the table counts: revenue" in command(changed, "drop", "orders", "--yes").err


def test_a_backfill_asks_first_and_a_dry_run_says_what_would_be_done(changed: Orders) -> None:
    before, questions = sorted(map(str, changed.table.items())), list[str]()
    done = command(changed, "backfill", "--dry-run")
    assert (done.code, done.out.partition(", ")[0]) == (0, f"would backfill orders: {len(before)} items")
    assert command(changed, "backfill", answer=questions.append).code == 1
    assert questions[0].startswith("Backfill orders: 19 items, ")
    refused = command(changed, "backfill")
    assert (refused.code, lines(refused.err)) == (2, ["error: no terminal to ask at: pass --yes"])
    assert sorted(map(str, changed.table.items())) == before


@pytest.mark.parametrize("sleeps", [1, 100, 121])
def test_a_run_that_was_interrupted_says_how_to_go_on_and_goes_on(changed: Orders, sleeps: int) -> None:
    def interrupt(slept: int) -> None:
        if slept == sleeps:
            raise KeyboardInterrupt

    changed.then = interrupt
    killed = command(changed, "backfill", "--yes")
    assert killed.code == 130
    hint, error = lines(killed.err)[-2:]
    assert error == "error: interrupted"
    run_id = hint.split()[1]
    assert hint == f"run {run_id} is not complete: the same command goes on, with --run {run_id} for names"
    assert changed.read(NUMBER) == ({"orders": 0}, False)
    done = command(changed, "backfill", "--run", run_id)
    assert (done.code, lines(done.out)[0].partition(",")[0]) == (0, "orders: counted all there is")
    assert changed.read(NUMBER) == ({"orders": 15}, True)
    again = command(changed, "backfill", "--run", run_id)
    assert (again.code, f"run {run_id} is complete" in again.err) == (2, True)


def test_verify_lists_differences_and_repair_adds_them_once(world: Orders) -> None:
    world.spoil(REVENUE, "total", 5, customer="ann")
    result = command(world, "verify", "--json")
    assert (result.code, result.document["compared"], "repaired" in result.document) == (1, 1, False)
    drift = {"missing": {"total": -5}, "status": "drifted", "reason": None}
    assert result.document["differences"] == [{"declaration": "revenue", "values": {"customer": "ann"}, **drift}]
    looked = command(world, "verify")
    assert looked.code == 1
    assert "revenue customer=ann total=-5 drifted -" in lines(looked.out)
    questions: list[str] = []
    assert command(world, "verify", "--repair", answer=questions.append).code == 1
    assert questions == ["Add what is missing to 1 group?"]
    assert world.read(REVENUE, customer="ann")[0] == {"total": 205}
    world.order(50, 3)
    repaired = command(world, "verify", "--repair", "--yes")
    assert (repaired.code, lines(repaired.out)) == (0, ["1 item repaired"])
    assert "revenue customer=ann total=-5 drifted -" in lines(repaired.err)
    world.deliver_new()
    assert world.read(REVENUE, customer="ann")[0] == {"total": 203}
    exact = command(world, "verify", "--repair", "--yes")
    assert exact.code == 0
    assert ["settling: 0 of 2,340 s" in done.err for done in (looked, repaired, exact)] == [False, True, False]


def test_a_verification_that_was_killed_goes_on_and_is_not_reported_twice(world: Orders) -> None:
    world.spoil(REVENUE, "total", 5, customer="ann")

    def fail(slept: int) -> None:
        if slept == 50:
            raise EndpointConnectionError(endpoint_url="https://dynamodb.invalid")

    world.then = fail
    killed = command(world, "verify")
    assert killed.code == 3
    run_id = lines(killed.err)[-2].split()[1]
    other = command(world, "backfill", "--run", run_id, "--yes")
    assert (other.code, "expected one of `counters backfill`, not of `counters verify`" in other.err) == (2, True)
    done = command(world, "verify", "--run", run_id, "--json")
    assert (done.code, done.document["run"], len(done.document["differences"])) == (1, run_id, 1)
    again = command(world, "verify", "--run", run_id)
    [message] = lines(again.err)
    assert (again.code, message.startswith("error: "), run_id in message) == (2, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("backfill", "nothing", "--yes"), "invalid name='nothing': expected one that the table counts: revenue"),
        (("verify", "nothing"), "invalid name='nothing': expected one of"),
        (("verify", "--run", "x"), "invalid run='x': expected the id of a run"),
        (("backfill", "--run", FILLED), "expected the id of a run of the last 30 days"),
        (("backfill", "orders", "--run", FILLED), "no names"),
        (("verify", "revenue", "--run", VERIFIED), "no names"),
        (("verify", "--sample", "0"), "invalid --sample 0: expected a share above 0, at most 1"),
        (("verify", "--sample", "nan"), "invalid --sample nan"),
        (("verify", "--sample", "1.5"), "invalid --sample 1.5"),
        (("verify", "--segments", "0"), "--segments"),
        (("backfill", "--units-per-second", "0"), "--units-per-second"),
        (("verify", "--repair"), "no terminal to ask at"),
    ],
)
def test_wrong_input_is_one_line(world: Orders, arguments: tuple[str, ...], message: str) -> None:
    done = command(world, *arguments)
    assert (done.code, done.out) == (2, "")
    [line] = lines(done.err)
    assert message in line


def work(world: World, **options: Any) -> Verification | None:
    """Work on a scheduled verification, as the verifier's function does."""
    table = world.reached(sleep=world.sleep)
    make = partial(Verification.of_table, table, world.table.stream, now=world.clock, segments=1)
    return work_on_schedule(table, make, world.clock, **options)


def invoke(world: World, *, begins: bool = False) -> Verification | None:
    """Invoke it; it has 100 seconds."""
    ends = world.clock() + 100
    return work(world, begins=begins, time_left=lambda: ends - world.clock())


def open_runs(world: World) -> list[str]:
    return [run.id for run in world.registry.runs]


@pytest.fixture
def verified() -> Orders:
    """Twenty orders of a customer, of whom five too much are counted."""
    world = Orders(REVENUE, sold=20)
    world.spoil(REVENUE, "total", 5, customer="ann")
    return world


def test_a_verification_takes_as_many_invocations_as_it_needs(verified: Orders) -> None:
    world = verified
    assert (invoke(world), open_runs(world)) == (None, [])
    assert invoke(world, begins=True) is None
    [run] = open_runs(world)
    world.order(90, 3, "bob")
    done, invocations = None, 1
    while done is None:
        assert invocations < 20
        world.clock.advance(60)
        # No other is opened while one is open.
        done, invocations = invoke(world, begins=True), invocations + 1
        assert open_runs(world) in ([run], [])
    assert invocations >= 3
    assert [(drift.group, drift.missing) for drift in done.differences] == [({"customer": "ann"}, {"total": -5})]
    assert (invoke(world), open_runs(world)) == (None, [])


def test_a_verification_that_another_process_is_opening_is_left_alone(verified: Orders) -> None:
    invoke(verified, begins=True)
    [run] = open_runs(verified)
    # As it is until the process that opens it has entered the first phase.
    verified.write({**(item := verified.store.read_item(run_key(run))), "phase": {"S": "opening"}})
    assert (invoke(verified), open_runs(verified)) == (None, [run])
    # One that does not end is given up.
    verified.write(item)
    verified.clock.advance(LONGEST + 400)
    with pytest.raises(BackfillError, match="it has not ended in 20 hours"):
        invoke(verified)
    assert open_runs(verified) == []


# In an emulator that runs all that counts its tables, runs begin at once, and stay exact; elsewhere they wait


class Function(Aggregator):
    """The emulator's function: it reads the registry before each batch, and its events name no shard."""

    def __init__(self, emulator: World, *declarations: Any) -> None:
        options: Any = {"single_shard": True, "always_reads": True, "quarantine_retention_seconds": QUARANTINE_SECONDS}
        super().__init__(emulator.store, flatten(declarations), **options)

    def handle(self, event: Any, *arguments: Any, **options: Any) -> Report:
        return super().handle({"Records": event["Records"]}, *arguments, **options)


def emulated(emulator: World, *arguments: str) -> Done:
    """Run a command where answers say that the emulator is alone."""
    headers = {"ResponseMetadata": {"HTTPHeaders": {EMULATOR_HEADER: "alone"}}}
    return command(emulator, *arguments, client=described(emulator.table, lambda answer: answer | headers))


@pytest.fixture
def emulator() -> Orders:
    emulator = Orders(founds=False)
    emulator.aggregator = Function(emulator, REVENUE)
    for number in range(20):
        emulator.order(number, 10, f"customer{number % 3}")
    emulator.deliver_new()
    emulator.aggregator = Function(emulator, REVENUE, NUMBER)
    emulator.deliver_new()
    emulator.then = lambda slept: emulator.order(100 + slept, 7, f"customer{slept % 3}")
    return emulator


def test_a_backfill_and_a_verification_take_seconds_and_are_exact(emulator: Orders) -> None:
    began = emulator.clock.now
    done = emulated(emulator, "backfill", "--yes", "--json")
    assert done.code == 0, done.err
    assert lines(done.err)[0] == "waiting: 0 of 3 s"
    assert emulator.clock.now < began + 15
    emulator.deliver_new()
    assert emulator.read(NUMBER) == ({"orders": 20 + emulator.slept}, True)
    emulator.deliver_new()
    began = emulator.clock.now
    assert emulated(emulator, "verify").code == 0
    assert emulator.clock.now < began + 15


@pytest.mark.parametrize("command", ["drop", "backfill"])
def test_no_reader_takes_a_name_that_is_emptied_for_complete(emulator: Orders, command: str) -> None:
    reads, reader = [], emulator.reader()

    def customer(_slept: int = 0) -> None:
        group = reader.get(REVENUE, customer="customer0", consistent=True)
        reads.append((group.measures["total"], group.complete))

    customer()
    emulator.then = customer
    done = emulated(emulator, command, "revenue", "--yes")
    assert done.code == 0, done.err
    assert reads[0] == (70, True)
    assert {total for total, is_complete in reads if is_complete} == {70}
    assert any(not is_complete for _, is_complete in reads)


def test_a_threshold_that_is_added_watches_at_once(emulator: Orders) -> None:
    far: Any = Threshold("far", REVENUE, at=[1], measure="total")
    Aggregator.handle(Function(emulator, REVENUE, NUMBER, far), {})
    [entry] = [entry for entry in emulator.registry.entries.values() if entry.watches]
    assert entry.since <= emulator.clock.now + 3


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_emulator_alone_says_so_in_each_answer(*, is_alone: bool) -> None:
    messages: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": "http", "path": "/_ministack/ready", "headers": [(b"host", b"localhost")]}
    with pytest.raises(StopIteration):
        server.guarded(app, "key", is_alone=is_alone)(scope, None, send).__await__().send(None)
    assert [name for name, _ in messages[0]["headers"]] == [b"a", *([EMULATOR_HEADER.encode()] if is_alone else [])]
    assert messages[1] == {"type": "http.response.body", "body": b""}
