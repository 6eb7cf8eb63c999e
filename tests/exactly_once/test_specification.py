"""The specification in docs/spec, checked by TLC, and traces of the real handler checked against it."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.engines import EngineUnavailableError, maven
from simulation.night import scaled
from simulation.specification.explorations import (
    DEADLOCK,
    EXPLORATIONS,
    PROGRAM,
    Configuration,
    Explorations,
    Removal,
    check,
    installed,
)
from simulation.specification.traces import BROKEN, compare, trace_of
from tests.conftest import IN_CI

TRACES = scaled(2)
LONG = ("core", "checkpoints")
"""Explored by `make spec`, which also removes every guard and breaks the handler in every way."""
CONFIGURATIONS = [c for each in EXPLORATIONS for c in each.configurations if c.states and c.name not in LONG]
REMOVALS = [removal for each in EXPLORATIONS for removal in each.removals if removal.quick]
BY_DAY = ("lost item", "an update has no condition")
"""A specification and a guard that are explored by day: whether the tools and modules work at all."""
SOME_BROKEN = (
    "updates have no condition",
    "a record is folded by the code that delivers it",
    "checkpoints are not heeded",
)
ITEM_EXPIRES = 3
"""Seed in which an item expires between a batch and its retry."""
SEEDS_OF_BROKEN = range(6)


@pytest.fixture(scope="module", autouse=True)
def _tlc() -> None:
    """Without Java or Maven these tests are skipped, in CI they fail."""
    try:
        maven.find_java(PROGRAM)
        installed()
    except EngineUnavailableError as missing:
        if IN_CI:
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


def _param(name: str, value: Any) -> Any:
    return pytest.param(value, id=name, marks=() if name in BY_DAY else pytest.mark.night)


@pytest.mark.parametrize("configuration", [_param(each.name, each) for each in CONFIGURATIONS])
def test_every_count_is_exact_in_every_state(configuration: Configuration) -> None:
    verdict = check(configuration.specification.module, configuration.text(), compiled_in_haste=True)
    assert verdict.violated is None, "\n\n".join(verdict.trace)
    # Fewer would mean that the specification has lost some of what can happen.
    assert verdict.states == configuration.states


@pytest.mark.parametrize("removal", [_param(each.about, each) for each in REMOVALS])
def test_without_a_guard_some_state_counts_wrong(removal: Removal) -> None:
    specification = removal.configuration.specification
    verdict = check(specification.module, removal.text, compiled_in_haste=True)
    assert verdict.violated in {*specification.invariants} - {"TypeOK"}


@pytest.mark.parametrize("explorations", EXPLORATIONS, ids=lambda e: e.specification.name)
def test_every_guard_is_removed_from_some_configuration(explorations: Explorations) -> None:
    assert {r.guard for r in explorations.removals} - {None} == explorations.specification.guards


def test_the_handler_does_what_the_specification_allows() -> None:
    verdict, wrong = compare([trace_of(seed) for seed in (*range(TRACES), ITEM_EXPIRES)])
    assert wrong is None
    assert verdict.states > 100 * TRACES


@pytest.mark.night
@pytest.mark.parametrize("broken", SOME_BROKEN)
def test_a_broken_handler_violates_the_specification(broken: str) -> None:
    with BROKEN[broken]():
        traces = [trace_of(seed) for seed in SEEDS_OF_BROKEN]
    verdict, wrong = compare(traces)
    assert wrong is not None
    assert verdict.violated in (DEADLOCK, "AtMostOnce")
