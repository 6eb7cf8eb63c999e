"""``counters rehearse``: what a file's declarations would have counted, compared with what is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters.cli.failures import DONE, FOUND, INTERRUPTED, WRONG_INPUT
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by=("customer", "at:day"), units=Sum("units"))
CALLS = Aggregate("calls", CALL, by="customer", calls=Count())
CAPPED = """
from dynamodb_counters import Aggregate, Count, Event, Sum

call = Event("call", key="id")
DECLARED = [
    Aggregate("usage", call, by=("customer", "at:day"), units=Sum("units", cap=40)),
    Aggregate("calls", call, by="customer", calls=Count()),
]
"""


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench([USAGE, CALLS])
    bench.aggregator.handle({})
    for number in range(10):
        customer, at = ("acme", "bolt")[number % 2], f"2026-11-{1 + number:02}T10:00Z"
        bench.counters.accept(CALL, {"id": str(number), "customer": customer, "at": at, "units": 10 * number})
    bench.deliver_all()
    bench.clock.advance(2)
    return bench


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.py"
    path.write_text(CAPPED)
    return path


def rehearse(bench: Workbench, path: Path, *more: str, **outside: Any) -> Done:
    return run(
        *("rehearse", str(path), *more, "--table", bench.table.name),
        client=bench.table,
        clients={"dynamodbstreams": bench.table.stream},
        **{"clock": bench.clock, "service_time": bench.clock, "sleep": bench.clock.advance, **outside},
    )


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_totals_then_the_largest_differences_are_shown(bench: Workbench, new: Path) -> None:
    done = rehearse(bench, new, "--yes", "--limit", "2")
    assert done.code == FOUND
    assert lines(done.out)[2:-1] == [
        "usage in total units 450 300 -150 -33.3 %",
        "usage at:day=2026-11-10 customer=bolt units 90 40 -50 -55.6 %",
        "usage at:day=2026-11-09 customer=acme units 80 40 -40 -50.0 %",
    ]
    assert lines(done.out)[-1] == "5 of 9 groups differ; 1 min 22 s, 10 units"
    # Nothing of what is rehearsed is counted or read.
    assert bench.counters.get(USAGE, {"customer": "bolt", "at:day": "2026-11-10"})["units"] == 90


def test_the_document_has_all_numbers(bench: Workbench, new: Path) -> None:
    found = rehearse(bench, new, "--yes", "--json", "--since", "2026-11-09").document
    assert (found["compared"], found["differing"]) == (2, 2)
    assert found["totals"] == [
        {
            "declaration": "usage",
            "values": {},
            "attribute": "units",
            "counted": 170,
            "rehearsed": 80,
            "difference": -90,
            "percent": -52.94,
        }
    ]
    assert [each["values"]["at:day"] for each in found["differences"]] == ["2026-11-10", "2026-11-09"]


def test_a_new_declaration_has_no_percentage(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "encoded"
    path.write_text(encode((CALLS, Aggregate("sum", CALL, units=Sum("units")))))
    found = rehearse(bench, path, "--yes", "--json").document
    assert [tuple(each.values())[2:] for each in found["totals"]] == [
        ("units", None, 450, 450, None),
        ("units", 450, None, -450, -100),
    ]


def test_items_that_not_all_declarations_can_count_are_named(bench: Workbench, new: Path) -> None:
    new.write_text(CAPPED.replace("cap=40", 'cap=40) if 0 else Sum("fee"'))
    done = rehearse(bench, new, "--yes")
    assert "not all of these declarations can count 10 of the items or rows" in lines(done.err)
    assert lines(done.out)[2] == "usage in total units 450 - -450 -100.0 %"
    assert rehearse(bench, new, "--yes", "--json").document["uncounted"] == 10
    assert list(bench.counters.quarantined(redriven=True)) == []


def test_templates_are_read_as_diff_reads_them(bench: Workbench, tmp_path: Path) -> None:
    declared = encode((USAGE, Aggregate("calls", CALL, by="customer", calls=Count(), where=Attr("units").gt(50))))
    variables = {"AGGREGATOR": "Stack/Counters", "DECLARATIONS": declared}
    handler = "dynamodb_counters.handlers.aggregator.handler"
    function = {"Properties": {"Handler": handler, "Environment": {"Variables": variables}}}
    (tmp_path / "stack.template.json").write_text(json.dumps({"Resources": {"One": function}}))
    for path in (tmp_path, tmp_path / "stack.template.json"):
        done = rehearse(bench, path, "--yes")
        assert (done.code, lines(done.out)[2]) == (FOUND, "calls in total calls 10 4 -6 -60.0 %")


def test_a_dry_run_says_the_price_and_scans_nothing(bench: Workbench, new: Path) -> None:
    before = sorted(map(str, bench.table.items()))
    done = rehearse(bench, new, "--dry-run")
    assert (done.code, done.out) == (DONE, f"would scan {len(before)} items, 2.7 kB; about 1 units\n")
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    assert rehearse(bench, new, answer=no).code == FOUND
    assert asked == [f"Rehearse new.py: scan {len(before)} items, 2.7 kB; about 1 units?"]
    assert "pass --yes" in rehearse(bench, new).err
    assert sorted(map(str, bench.table.items())) == before


def test_the_same_declarations_need_no_rehearsal(bench: Workbench, new: Path) -> None:
    new.write_text(CAPPED.replace(", cap=40", ""))
    done = rehearse(bench, new)
    assert (done.code, done.out) == (DONE, "Nothing to rehearse: all count the same.\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all", "fails: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ('raise SystemExit("no")', "fails: SystemExit: no"),
        ("x = 1", "declares nothing"),
    ],
)
def test_a_file_that_declares_nothing_is_refused(bench: Workbench, new: Path, text: str, said: str) -> None:
    new.write_text(text)
    done = rehearse(bench, new, "--yes")
    assert (done.code, done.err) == (WRONG_INPUT, f"error: {str(new)!r} {said}\n")


def test_it_goes_on_after_an_interruption(bench: Workbench, new: Path) -> None:
    def sleep(seconds: float) -> None:
        bench.clock.advance(seconds)
        if bench.clock.now > begun + 30:
            raise KeyboardInterrupt

    begun = bench.clock.now
    broken: Callable[[float], None] = sleep
    done = rehearse(bench, new, "--yes", sleep=broken)
    assert done.code == INTERRUPTED
    found = re.search(rf"go on with it: counters rehearse {new} --run (\w+)$", done.err, re.MULTILINE)
    assert found
    assert rehearse(bench, new, "--run", found[1], "--json").document["totals"][0]["difference"] == -150
