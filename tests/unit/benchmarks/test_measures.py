"""The figures of measures and of the naive ways are of right answers."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import measures
from benchmarks.databases import MemoryDatabase

pytestmark = pytest.mark.night


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measures.measure(MemoryDatabase(), ((31, 5),), 300)


def test_members_and_extremes_are_exact(found: dict[str, Any]) -> None:
    assert [each["exact"] for each in found["unique"]["31 days"].values()] == [True, True]
    assert [each["exact"] for order in found["extremes"].values() for each in order.values()] == [True] * 6


def test_percentiles_are_within_the_declared_error_and_those_of_all_values_exact(found: dict[str, Any]) -> None:
    for spread in found["percentiles"].values():
        ours, naive = (each["error_percent"] for each in spread.values())
        assert 0 < ours <= 1
        assert naive == 0


def test_units_of_counts_are_all_but_those_of_checkpoints(found: dict[str, Any]) -> None:
    ours = found["unique"]["31 days"]["this"]
    assert 2 <= ours["write_units"] < ours["with_checkpoints"]
