"""``counters backfill``, ``drop`` and ``verify`` on a table that is written to; and verification on a schedule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from dynamodb_counters import Distinct
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._control.run_items import run_key
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.handlers.verifier import LONGEST, work_on_schedule
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import NUMBER, ORDER, REVENUE, Older, Stream, bench, delete, put, read, spoil
from tests.unit.cli.in_process import Done, run

__all__ = ["bench"]

FILLED, VERIFIED = "b0123456789abcdef", "v0123456789abcdef"
BUYERS = Distinct("buyers", ORDER, pk="BUYERS", sk="NUMBER", member="customer")


class Person:
    """Says no, and remembers to what."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, question: str) -> bool:
        self.asked.append(question)
        return False


class Counters:
    """Runs commands at the bench; `then` happens at every sleep, and may break the command off."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.stream = Stream(bench)
        self.slept = 0
        self.then: Callable[[int], None] = lambda _: None

    def __call__(self, *arguments: str, **outside: Any) -> Done:
        return run(
            *arguments,
            *("--table", self.bench.table.name),
            client=outside.pop("client", self.bench.table),
            clients={"dynamodbstreams": self.bench.table.stream},
            clock=self.bench.clock,
            service_time=self.bench.clock,
            sleep=self._sleep,
            **outside,
        )

    def _sleep(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.stream.deliver()
        self.slept += 1
        self.then(self.slept)


@pytest.fixture
def counters(bench: Workbench) -> Counters:
    return Counters(bench)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def changed(bench: Workbench, counters: Counters) -> Counters:
    """A new aggregate over twenty items, five of which are deleted then."""
    bench.deploy([REVENUE, NUMBER])
    counters.stream.deliver()
    for number in range(5):
        delete(bench, number)
    counters.stream.deliver()
    return counters


def test_backfill_counts_what_the_table_held(changed: Counters) -> None:
    bench = changed.bench
    before = changed("get", "orders")
    assert lines(before.out + before.err) == [
        "orders 0",
        "not complete: `counters backfill orders` counts what was there before",
    ]
    done = changed("backfill", "--yes", "--json")
    assert (done.code, done.document["names"]) == (0, ["orders"])
    assert lines(done.err)[0] == "waiting: 0 of 240 s"
    assert {line.partition(":")[0] for line in lines(done.err)} == {"waiting", "scanning", "draining", "adding"}
    bench.clock.advance(61)
    assert read(bench, NUMBER) == ({"orders": 15}, True)
    after = changed("get", "orders")
    assert lines(after.out + after.err) == ["orders 15"]

    again = changed("backfill", "--yes")
    assert (again.code, lines(again.out)) == (
        0,
        ["Nothing to backfill: all count all there is."],
    )


def test_a_dry_run_says_what_would_be_backfilled_and_writes_nothing(changed: Counters) -> None:
    before = sorted(map(str, changed.bench.table.items()))
    done = changed("backfill", "--dry-run")
    assert done.code == 0
    assert done.out.startswith(f"would backfill orders: {len(before)} items, ")
    assert sorted(map(str, changed.bench.table.items())) == before


def late(*declared: Any, hours: float = 0.0) -> Counters:
    """Orders of five customers, of which the stream shows none to an aggregator that the table takes for its first."""
    bench = Workbench(declared)
    for number in range(10):
        put(bench, number, 10, f"customer{number % 5}")
    counters = Counters(bench)
    counters.stream.skip()
    bench.aggregator = bench.process(Older(bench.table, minutes=0, hours=hours))
    bench.aggregator.handle({})
    return counters


def test_a_distinct_is_backfilled_with_its_members() -> None:
    counters = late(*BUYERS._parts)
    assert read(counters.bench, BUYERS.total) == ({"distinct": 0}, True)
    done = counters("backfill", "buyers", "--yes", "--json")
    assert (done.code, done.document["names"]) == (0, ["buyers", "buyers-members"])
    counters.bench.clock.advance(61)
    assert read(counters.bench, BUYERS.total) == ({"distinct": 5}, True)


def test_a_name_is_dropped_once_no_process_can_count_in_it(changed: Counters) -> None:
    bench = changed.bench
    assert changed("backfill", "orders", "--yes").code == 0

    def types() -> set[str]:
        return {item["_type"]["S"] for item in bench.table.items() if "_type" in item} - {"_checkpoint"}

    person = Person()
    assert changed("drop", "orders", answer=person).code == 1
    assert person.asked == [f"Drop orders, and scan {len([*bench.table.items()])} items for theirs?"]
    bench.deploy([REVENUE])
    assert types() == {"revenue", "orders"}
    done = changed("drop", "orders", "--yes")
    assert lines(done.out) == ["orders: dropped; 1 item deleted"]
    assert types() == {"revenue"}
    assert "expected one that the table counts: revenue" in changed("drop", "orders", "--yes").err


def test_a_backfill_asks_first(changed: Counters) -> None:
    person = Person()
    assert changed("backfill", answer=person).code == 1
    assert person.asked[0].startswith("Backfill orders: 19 items, ")
    refused = changed("backfill")
    assert (refused.code, lines(refused.err)) == (
        2,
        ["error: no terminal to ask at: pass --yes"],
    )


@pytest.mark.parametrize("sleeps", [1, 100, 121])
def test_a_run_that_was_interrupted_says_how_to_go_on_and_goes_on(changed: Counters, sleeps: int) -> None:
    def interrupt(slept: int) -> None:
        if slept == sleeps:
            raise KeyboardInterrupt

    changed.then = interrupt
    killed = changed("backfill", "--yes")
    assert killed.code == 130
    told, error = lines(killed.err)[-2:]
    assert error == "error: interrupted"
    run_id = told.split()[1]
    assert told == f"run {run_id} is not complete: the same command goes on, with --run {run_id} for names"
    assert read(changed.bench, NUMBER) == ({"orders": 0}, False)

    done = changed("backfill", "--run", run_id)
    assert (done.code, lines(done.out)[0].partition(",")[0]) == (0, "orders: counted all there is")
    changed.bench.clock.advance(61)
    assert read(changed.bench, NUMBER) == ({"orders": 15}, True)
    again = changed("backfill", "--run", run_id)
    assert (again.code, f"run {run_id} is complete" in again.err) == (2, True)


def test_verify_lists_differences_and_repair_adds_them_once(counters: Counters) -> None:
    spoil(counters.bench, REVENUE, "total", 5, customer="ann")
    found = counters("verify", "--json")
    assert (found.code, found.document["compared"], "repaired" in found.document) == (1, 1, False)
    assert found.document["differences"] == [
        {
            "declaration": "revenue",
            "values": {"customer": "ann"},
            "missing": {"total": -5},
            "verdict": "drifted",
            "reason": None,
        }
    ]
    looked = counters("verify")
    assert looked.code == 1
    assert "revenue customer=ann total=-5 drifted -" in lines(looked.out)
    person = Person()
    assert counters("verify", "--repair", answer=person).code == 1
    assert person.asked == ["Add what is missing to 1 group?"]
    assert read(counters.bench, REVENUE, customer="ann")[0] == {"total": 205}

    put(counters.bench, 50, 3)
    repaired = counters("verify", "--repair", "--yes")
    assert (repaired.code, lines(repaired.out)) == (0, ["1 item repaired"])
    assert "revenue customer=ann total=-5 drifted -" in lines(repaired.err)
    counters.stream.deliver()
    assert read(counters.bench, REVENUE, customer="ann")[0] == {"total": 203}
    exact = counters("verify", "--repair", "--yes")
    assert exact.code == 0
    waited = ["settling: 0 of 2,340 s" in done.err for done in (looked, repaired, exact)]
    assert waited == [False, True, False]


def test_a_verification_that_was_killed_goes_on_and_is_not_reported_twice(counters: Counters) -> None:
    spoil(counters.bench, REVENUE, "total", 5, customer="ann")

    def fail(slept: int) -> None:
        if slept == 50:
            raise EndpointConnectionError(endpoint_url="https://dynamodb.invalid")

    counters.then = fail
    killed = counters("verify")
    assert killed.code == 3
    run_id = lines(killed.err)[-2].split()[1]
    other = counters("backfill", "--run", run_id, "--yes")
    assert (other.code, "expected one of `counters backfill`, not of `counters verify`" in other.err) == (2, True)

    done = counters("verify", "--run", run_id, "--json")
    assert (done.code, done.document["run"], len(done.document["differences"])) == (1, run_id, 1)
    again = counters("verify", "--run", run_id)
    [said] = lines(again.err)
    assert (again.code, said.startswith("error: "), run_id in said) == (2, True, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
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
        (("verify", "--unknown"), "--unknown"),
        (("verify", "--segments", "0"), "--segments"),
        (("backfill", "--units-per-second", "0"), "--units-per-second"),
        (("verify", "--repair"), "no terminal to ask at"),
    ],
)
def test_wrong_input_is_one_line(counters: Counters, arguments: tuple[str, ...], said: str) -> None:
    done = counters(*arguments)
    assert (done.code, done.out) == (2, "")
    [line] = lines(done.err)
    assert said in line


class Invocations:
    """Invokes the verifier; each invocation has 100 seconds."""

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.stream = bench, Stream(bench)
        client: Any = bench.table
        self.table = Table(bench.table.name, client, clock=bench.clock, sleep=self._sleep)
        make = partial(Verification.of_table, self.table, bench.table.stream, now=bench.clock, segments=1)
        self.work = partial(work_on_schedule, self.table, make, bench.clock)

    def __call__(self, *, begins: bool = False) -> Verification | None:
        ends = self.bench.clock() + 100
        return self.work(begins=begins, time_left=lambda: ends - self.bench.clock())

    @property
    def open_runs(self) -> list[str]:
        return [run.id for run in read_registry(self.table).runs]

    def _sleep(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.stream.deliver()


def test_a_verification_takes_as_many_invocations_as_it_needs(bench: Workbench) -> None:
    invoke = Invocations(bench)
    spoil(bench, REVENUE, "total", 5, customer="ann")
    assert (invoke(), invoke.open_runs) == (None, [])
    assert invoke(begins=True) is None
    [run] = invoke.open_runs
    put(bench, 90, 3, "bob")
    done, invocations = None, 1
    while done is None:
        assert invocations < 20
        bench.clock.advance(60)
        # No other is opened while one is open.
        done, invocations = invoke(begins=True), invocations + 1
        assert invoke.open_runs in ([run], [])
    assert invocations >= 3
    assert [(each.group, each.missing) for each in done.differences] == [({"customer": "ann"}, {"total": -5})]
    assert (invoke(), invoke.open_runs) == (None, [])


def test_a_verification_that_another_process_is_opening_is_left_alone(bench: Workbench) -> None:
    invoke = Invocations(bench)
    invoke(begins=True)
    [run] = read_registry(invoke.table).runs
    # As it is until the process that opens it has entered the first phase.
    item = {**invoke.table.read_item(run_key(run.id)), "phase": {"S": "opening"}}
    bench.table.put_item(TableName=bench.table.name, Item=item)
    assert invoke() is None
    assert invoke.open_runs == [run.id]


def test_a_verification_that_does_not_end_is_given_up(bench: Workbench) -> None:
    invoke = Invocations(bench)
    invoke(begins=True)
    bench.clock.advance(LONGEST + 400)
    with pytest.raises(BackfillError, match="it has not ended in 20 hours"):
        invoke()
    assert invoke.open_runs == []
