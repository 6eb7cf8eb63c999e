"""Erasing asks first and reports by place."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run

VISIT = Event("visit", pk="CLIENT#{client}", sk="AT#{at}")
VISITS = Aggregate("visits", VISIT, pk="VISITS", sk="ALL", measures={"n": Count()})
ANN = ("erase", "visit", "client=ann", "--counts", "take_back")


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench([VISITS])
    for number in range(3):
        bench.counters.accept(VISIT, {"client": "ann" if number else "bob", "at": number})
    bench.deliver(bench.records())
    return bench


def command(bench: Workbench, *arguments: str, **outside: Any) -> Done:
    table = bench.table
    return run(*arguments, "--table", table.name, client=table, clock=bench.clock, **outside)


def visits(bench: Workbench) -> int:
    return sum(item["_type"] == {"S": "visit"} for item in bench.table.items())


def test_erasing_asks_first_and_reports_by_place(bench: Workbench) -> None:
    assert command(bench, *ANN, "--dry-run", "--json").document["found"]["events"] == 2
    assert command(bench, *ANN).code == 2, "no question was asked"
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    assert command(bench, *ANN, answer=refuse).code == 1
    assert asked == ["Erase events=2 packed=0 quarantined=0 uncounted=0 left=0? Counts: take_back."]
    assert visits(bench) == 3
    done = command(bench, *ANN, "--yes", "--json")
    assert (done.code, done.document["erased"]["events"]) == (0, 2)
    assert visits(bench) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("erase", "visits", "client=x", "--counts", "keep"), "no event 'visits' is declared"),
        (("erase", "visit", "town=x", "--counts", "keep"), "a value for one or more fields of the key: client, at"),
        (("erase", "visit", "--counts", "keep"), "Missing argument"),
        (("erase", "visit", "client=x"), "Missing option '--counts'"),
    ],
)
def test_wrong_input_is_one_line(bench: Workbench, arguments: tuple[str, ...], said: str) -> None:
    done = command(bench, *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
