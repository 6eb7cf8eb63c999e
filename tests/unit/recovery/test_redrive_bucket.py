"""Batches of a table's own stream are known, whether the table is given by name or by ARN."""

from __future__ import annotations

import pytest

from dynamodb_counters._control.registry import Registry
from dynamodb_counters._recovery.redrive_bucket import _unknown

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/counters"
REGISTRY = Registry()


@pytest.mark.parametrize("name", ["counters", ARN])
def test_batches_of_the_own_stream_are_known(name: str) -> None:
    assert _unknown(f"{ARN}/stream/2026-11-20T00:00:00.000", name, REGISTRY) is None


@pytest.mark.parametrize("name", ["counter", "ounters", f"{ARN}s", "table/other"])
def test_batches_of_another_table_are_not(name: str) -> None:
    problem = _unknown(f"{ARN}/stream/2026-11-20T00:00:00.000", name, REGISTRY)
    assert problem is not None
    assert repr(name) in problem


def test_batches_of_the_stream_before_a_restore_are_not() -> None:
    first, second = (f"{ARN}/stream/2026-11-2{day}T00:00:00.000" for day in range(2))
    assert "`counters repair`" in str(_unknown(first, "counters", REGISTRY, second))
    assert _unknown(second, "counters", REGISTRY, second) is None
