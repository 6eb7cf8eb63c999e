"""Each example's numbers, read from a table in memory, are those of its truth, and a wrong one is named."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from demo.example import Finding
from demo.examples import play
from demo.options import EXAMPLES, Options, Setup
from demo.report import Result, summary
from demo.sending import Account
from demo.terminal import Progress
from simulation.counters_in_memory import counters_in_memory

NOW = datetime(2026, 11, 20, 9, 30, 15, tzinfo=UTC)
EMITTING = [
    pytest.param(name, marks=pytest.mark.night) if name in ("blog", "packed") else name
    for name in EXAMPLES
    if name != "orders"
]
"""Those that send events; items of other code need a second table."""


def setup(seed: int = 1) -> Setup:
    options = Options(("blog",), log=None, duplicates=0.2, seed=seed, report=None, keep=False)
    return Setup(options, NOW, Progress(io.StringIO()))


def counted(name: str) -> Finding:
    """Count an example's events in memory; crossings, which only the emulator sends, are taken to be right."""
    [example] = play(setup(), [name])
    account = Account()
    declared = [each for (is_event, _), each in example.declared.items() if not is_event]
    with counters_in_memory(declared, now=example.now) as counters:
        for feed in example.feeds():
            account.send(counters, feed, Progress(io.StringIO()))
        found: dict[str, Any] = {**example.read(counters)}
    if name == "blog":
        found["crossings"] = example.expected(found)["crossings"]
    return Finding(example, account, found)


@pytest.fixture(scope="module", params=EMITTING)
def finding(request: pytest.FixtureRequest) -> Finding:
    return counted(request.param)


def test_numbers_are_those_of_the_truth(finding: Finding) -> None:
    assert finding.differences() == []
    assert summary(Result([finding], 1.0)).splitlines()[-1].startswith("EXACT: ")


def test_a_wrong_number_is_named(finding: Finding) -> None:
    for what, numbers in finding.found.items():
        group = max(numbers, key=lambda name: numbers[name])
        wrong = {**finding.found, what: {**numbers, group: numbers[group] * 1.03 + 1}}
        [line, *_] = Finding(finding.example, finding.account, wrong).differences()
        assert line.startswith(f"{finding.example.name}: {what} of ")
        assert "NOT EXACT: " in summary(Result([Finding(finding.example, finding.account, wrong)], 1.0))


def test_a_seed_decides_the_traffic() -> None:
    for first, again, other in zip(*(play(setup(seed), EXAMPLES) for seed in (1, 1, 2)), strict=True):
        assert (first.events, first.changes) == (again.events, again.changes)
        assert (first.events, first.changes) != (other.events, other.changes)
