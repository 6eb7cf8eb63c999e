"""The specification in docs/spec, checked by TLC, and traces of the real handler checked against it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from simulation.engines import EngineUnavailableError, maven
from simulation.night import scaled
from simulation.specification.backfill_configurations import BACKFILL, BACKFILL_REMOVALS, BACKFILLS, VERIFY
from simulation.specification.broken_handlers import BROKEN
from simulation.specification.configurations import CONFIGURATIONS, COUNTING, REMOVALS
from simulation.specification.explorations import Configuration, Removal, Specification
from simulation.specification.page_configurations import PAGE_REMOVALS, PAGES, PAGINATIONS
from simulation.specification.registry_configurations import REGISTRIES, REGISTRY, REGISTRY_REMOVALS
from simulation.specification.threshold_configurations import CROSSING_REMOVALS, CROSSINGS, THRESHOLDS
from simulation.specification.tlc import DEADLOCK, PROGRAM, check, installed
from simulation.specification.traces import compare, trace_of
from tests.conftest import IN_CI

TRACES = scaled(2)
LONG = ("core", "checkpoints")
"""Explored by `make spec`, which also removes every guard and breaks the handler in every way."""
BY_DAY = ("lost item", "an update has no condition")
"""A specification and a guard that are explored by day: whether the tools and modules work at all."""
SOME_BROKEN = (
    "updates have no condition",
    "a record is folded by the code that delivers it",
    "checkpoints are not heeded",
)
ALL_CONFIGURATIONS = (*CONFIGURATIONS, *BACKFILLS, *PAGINATIONS, *CROSSINGS, *REGISTRIES)
ALL_REMOVALS = (*REMOVALS, *BACKFILL_REMOVALS, *PAGE_REMOVALS, *CROSSING_REMOVALS, *REGISTRY_REMOVALS)
ITEM_EXPIRES = 413
"""Seed in which an item expires between a batch and its retry."""
SEEDS_OF_BROKEN = range(6, 12)


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


def _by_night(name: str) -> Collection[pytest.MarkDecorator]:
    return () if name in BY_DAY else (pytest.mark.night,)


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(c, id=c.name, marks=_by_night(c.name))
        for c in ALL_CONFIGURATIONS
        if c.states and c.name not in LONG
    ],
)
def test_every_count_is_exact_in_every_state(configuration: Configuration) -> None:
    verdict = check(configuration.specification.module, configuration.text(), compiled_in_haste=True)
    assert verdict.violated is None, "\n\n".join(verdict.trace)
    # Fewer would mean that the specification has lost some of what can happen.
    assert verdict.states == configuration.states


@pytest.mark.parametrize(
    "removal", [pytest.param(r, id=r.about, marks=_by_night(r.about)) for r in ALL_REMOVALS if r.quick]
)
def test_without_a_guard_some_state_counts_wrong(removal: Removal) -> None:
    specification = removal.of(ALL_CONFIGURATIONS).specification
    verdict = check(specification.module, removal.text(ALL_CONFIGURATIONS), compiled_in_haste=True)
    assert verdict.violated in {*specification.invariants} - {"TypeOK"}


@pytest.mark.parametrize(
    "specification", [COUNTING, BACKFILL, VERIFY, PAGES, THRESHOLDS, REGISTRY], ids=lambda s: s.module
)
def test_every_guard_is_removed_from_some_configuration(specification: Specification) -> None:
    removed = {r.guard for r in ALL_REMOVALS if r.of(ALL_CONFIGURATIONS).specification is specification}
    assert removed - {None} == specification.guards


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
