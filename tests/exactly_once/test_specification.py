"""The specification in docs/spec, checked by TLC, and traces of the real handler checked against it."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.engines import EngineUnavailableError, maven
from simulation.night import scaled
from simulation.specification.explorations import (
    DEADLOCK,
    PROGRAM,
    SPECIFICATIONS,
    Exploration,
    Specification,
    installed,
)
from simulation.specification.traces import BROKEN, compare, trace_of
from tests.conftest import IN_CI

TRACES = scaled(2)
LONG = ("core", "checkpoints")
"""Explored by `make spec`, which also removes every guard and breaks the handler in every way."""
CONFIGURATIONS = [c for spec in SPECIFICATIONS for c in spec.configurations if c.states and c.name not in LONG]
REMOVALS = [removal for spec in SPECIFICATIONS for removal in spec.removals if removal.quick]
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


@pytest.mark.parametrize("configuration", [_param(exploration.name, exploration) for exploration in CONFIGURATIONS])
def test_every_count_is_exact_in_every_state(configuration: Exploration) -> None:
    result = configuration.check(compiled_in_haste=True)
    assert result.violated is None, "\n\n".join(result.trace)
    # Fewer would mean that the specification has lost some of what can happen.
    assert result.states == configuration.states


@pytest.mark.parametrize("removal", [_param(removal.about, removal) for removal in REMOVALS])
def test_without_a_guard_some_state_counts_wrong(removal: Exploration) -> None:
    result = removal.check(compiled_in_haste=True)
    assert result.violated in {*removal.specification.invariants} - {"TypeOK"}


@pytest.mark.parametrize("specification", SPECIFICATIONS, ids=lambda s: s.name)
def test_every_guard_is_removed_from_some_configuration(specification: Specification) -> None:
    assert {r.guard for r in specification.removals} - {None} == specification.guards


def test_the_handler_does_what_the_specification_allows() -> None:
    result, wrong = compare([trace_of(seed) for seed in (*range(TRACES), ITEM_EXPIRES)])
    assert wrong is None
    assert result.states > 100 * TRACES


@pytest.mark.night
@pytest.mark.parametrize("broken", SOME_BROKEN)
def test_a_broken_handler_violates_the_specification(broken: str) -> None:
    with BROKEN[broken]():
        traces = [trace_of(seed) for seed in SEEDS_OF_BROKEN]
    result, wrong = compare(traces)
    assert wrong is not None
    assert result.violated in (DEADLOCK, "AtMostOnce")
