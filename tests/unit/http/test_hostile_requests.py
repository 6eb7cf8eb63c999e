"""Hostile requests among sensible ones: no 5xx, no exception, and every answer is as the OpenAPI document says."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dynamodb_counters.handlers import ingest_queue
from simulation.hostile.__main__ import attack
from simulation.hostile.costly import BODIES as COSTLY
from simulation.hostile.doors import Door, all_doors
from simulation.night import scaled


@pytest.fixture(autouse=True)
def _no_metrics_are_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions of a process share their metrics: what is left here would be written elsewhere."""
    monkeypatch.setattr(ingest_queue.metrics.provider, "namespace", "Counters")
    yield
    ingest_queue.metrics.clear_metrics()


@pytest.fixture(scope="module")
def doors() -> dict[str, Door]:
    """Build the doors once."""
    return {door.name: door for door in all_doors()}


def test_no_stranger_breaks_a_door(doors: dict[str, Door]) -> None:
    """``python -m simulation.hostile --requests 30000`` sends more, and bodies that cost as much as they can."""
    seed = int(os.environ.get("SEED") or 15)
    totals = attack([*doors.values()], scaled(600), seed, costly={})
    assert [f"seed {seed}: {text}" for one in totals.values() for text in one.wrong] == []
    taken = sum(one.statuses["202"] + one.statuses["200"] for one in totals.values())
    assert 0 < taken < sum(one.statuses.total() for one in totals.values())


@pytest.mark.parametrize("name", COSTLY)
def test_no_body_of_a_megabyte_takes_a_second(doors: dict[str, Door], name: str) -> None:
    for door in (doors["receiver with both"], doors["consumer, direct mode"], doors["API"]):
        [totals] = attack([door], 1, 0, costly={name: COSTLY[name]}).values()
        assert totals.wrong == []
