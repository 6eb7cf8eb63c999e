"""The night runs each part, whatever became of those before, and its table and status say what went wrong."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from simulation import nightly
from simulation.nightly import Part

PARTS = [
    Part(
        "first",
        ("-c", "print('1,200 schedules, 0 schedules with wrong counts')"),
        r"([\d,]+) schedules, ",
        r"(\d+) schedules with",
    ),
    Part("second", ("-c", "print('WRONG a'); print('ok b'); raise SystemExit(3)"), r"^(?:WRONG|ok) ", r"^WRONG "),
    Part(
        "third",
        ("-c", "import os; print(os.environ['NIGHT'], 'passed')"),
        r"(\d) passed",
        r"(\d) failed",
        (("NIGHT", "7"),),
    ),
]


def _rows(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    table = capsys.readouterr().out.partition("part ")[2].splitlines()[1:]
    return [re.split(r" {2,}", re.sub(r"\d+(?=  [pF])", "s", line)) for line in table]


def test_a_part_that_fails_stops_no_other_and_fails_the_night(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main([], PARTS) == 1
    assert _rows(capsys) == [
        ["first", "1,200", "0", "s", "passed"],
        ["second", "2", "1", "s", "FAILED with status 3"],
        ["third", "7", "0", "s", "passed"],
    ]


def test_some_parts_alone_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main(["--parts", "first", "third"], PARTS) == 0
    assert [name for name, *_ in _rows(capsys)] == ["first", "third"]


def test_a_part_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        nightly.main(["--parts", "spek"], PARTS)
    assert "invalid parts=spek: expected some of ['first', 'second', 'third']" in capsys.readouterr().err


@pytest.mark.parametrize("part", nightly.parts(30), ids=lambda part: part.name)
def test_every_part_runs_a_module_that_there_is(part: Part) -> None:
    assert part.command[0] == "-m"
    assert find_spec(part.command[1]) is not None
