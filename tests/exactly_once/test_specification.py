"""The specification in docs/spec, checked by TLC, and traces of the real handler checked against it."""

from __future__ import annotations

import re

import pytest

from simulation.engines import EngineUnavailableError, maven
from simulation.specification.broken_handlers import BROKEN
from simulation.specification.configurations import CONFIGURATIONS, MODULE, REMOVALS, Configuration, Removal
from simulation.specification.tlc import DEADLOCK, MODULES, PROGRAM, check, installed
from simulation.specification.traces import compare, trace_of
from tests.conftest import IN_CI

TRACES = 12
ITEM_EXPIRES = 174
"""Of this seed, an item expires between a batch and its retry."""
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


@pytest.mark.parametrize("configuration", [c for c in CONFIGURATIONS if c.states], ids=lambda c: c.name)
def test_every_count_is_exact_in_every_state(configuration: Configuration) -> None:
    verdict = check(MODULE, configuration.text())
    assert verdict.violated is None, "\n\n".join(verdict.trace)
    # Fewer would mean that the specification has lost some of what can happen.
    assert verdict.states == configuration.states


@pytest.mark.parametrize("removal", [r for r in REMOVALS if r.quick], ids=lambda r: r.about)
def test_without_a_guard_some_state_counts_wrong(removal: Removal) -> None:
    assert check(MODULE, removal.text()).violated in ("AtMostOnce", "Justified", "Exact", "CheckpointCovers")


def test_every_guard_is_removed_from_some_configuration() -> None:
    [listed] = re.findall(r"^AllGuards == \{(.*?)\}", (MODULES / "Counters.tla").read_text(), re.DOTALL | re.MULTILINE)
    assert {removal.guard for removal in REMOVALS} - {None} == set(re.findall(r'"([^"]+)"', listed))


def test_the_handler_does_what_the_specification_allows() -> None:
    verdict, wrong = compare([trace_of(seed) for seed in (*range(TRACES), ITEM_EXPIRES)])
    assert wrong is None
    assert verdict.states > 100 * TRACES


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_handler_is_told_from_the_specification(broken: str) -> None:
    with BROKEN[broken]():
        traces = [trace_of(seed) for seed in SEEDS_OF_BROKEN]
    verdict, wrong = compare(traces)
    assert wrong is not None
    assert verdict.violated in (DEADLOCK, "AtMostOnce")
