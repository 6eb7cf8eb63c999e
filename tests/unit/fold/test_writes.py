"""Writes of a batch: one UpdateItem a touched group and bucket of each tier, never two for total and slot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from dynamodb_counters import Window
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._table import Table
from simulation.memory_table import MemoryTable
from tests.unit.fold.buckets import JOB, job

_NOW = 1_790_000_000
_HOUR, _DAY = 3600, 86_400
_JOBS = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", future_tolerance=None)
_MONTH = replace(_JOBS, longest=timedelta(days=30))
_FINE = replace(_MONTH, precision=timedelta(seconds=1))


class Client(MemoryTable):
    """Notes the updates of groups."""

    def __init__(self) -> None:
        super().__init__(lambda: _NOW)
        self.updates: list[dict[str, Any]] = []

    def update_item(self, **update: Any) -> dict[str, Any]:
        if not update["Key"]["pk"]["S"].startswith("CHECKPOINT#"):
            self.updates.append(update)
        return super().update_item(**update)


def _written(window: Window, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    client = Client()
    table = Table(client.name, cast("Any", client), clock=lambda: _NOW)
    aggregator = Aggregator(table, (window,), quarantine_retention_seconds=1)
    report = aggregator.handle({"shardId": "shardId-1", "Records": records})
    assert report.updated == len(client.updates)
    return client.updates


def _at(place: int, at: int, customer: str = "c") -> dict[str, Any]:
    return job(place, _NOW, at=at, customer=customer)


@pytest.mark.parametrize(
    ("window", "buckets"),
    [(_JOBS, {"H": 48}), (_MONTH, {"H": 48, "D": 2}), (_FINE, {"M": 48 * 12, "H": 48, "D": 2})],
)
def test_a_batch_writes_each_touched_bucket_once(window: Window, buckets: dict[str, int]) -> None:
    start = _NOW // _DAY * _DAY
    updates = _written(window, [_at(place, start + place * 300) for place in range(48 * 12)])
    keys = [(update["Key"]["pk"]["S"], update["Key"]["sk"]["S"]) for update in updates]

    assert len(keys) == len(set(keys))
    assert Counter(sk.split("#")[2] for _, sk in keys) == buckets


def test_total_and_slots_are_in_one_expression() -> None:
    [update] = _written(_JOBS, [_at(place, _NOW // _HOUR * _HOUR + second) for place, second in enumerate([0, 59, 60])])
    names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
    added = dict(part.split() for part in update["UpdateExpression"].split(" ADD ")[1].split(","))

    assert {names[name]: values[value] for name, value in added.items()} == {
        "total": {"N": "3"},
        "m00": {"N": "2"},
        "m01": {"N": "1"},
    }


def test_a_batch_of_10_000_groups_is_10_000_updates_a_tier() -> None:
    updates = _written(_MONTH, [_at(place, _NOW, f"c{place}") for place in range(10_000)])

    assert len({(update["Key"]["pk"]["S"], update["Key"]["sk"]["S"]) for update in updates}) == len(updates) == 20_000


def test_the_largest_update_is_within_an_expressions_4_kb() -> None:
    start = _NOW // _DAY * _DAY
    updates = _written(_FINE, [_at(place, start + place * 13) for place in range(_DAY // 13)])

    assert max(len(update["UpdateExpression"]) for update in updates) < 4096
