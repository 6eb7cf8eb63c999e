"""What windows cost: written by the aggregator, read by `Counters`, measured in units."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from dynamodb_counters import Event, Sum, Window
from dynamodb_counters._items.bookkeeping import item_bytes
from simulation.engines import Engine
from simulation.memory_table import MemoryTable
from tests.integration.stores import Store
from tests.unit.fold.streams import image, record

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_JOB = Event("job", pk="JOB#{id}", sk="JOB")
_JOBS = Window("jobs", _JOB, pk="CUSTOMER#{customer}", time="at", measure=Sum("amount"), future_tolerance=None)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
# So far ahead that no engine's TTL deletes what the past has left.
_NOW = int(datetime(2096, 11, 20, 10, 30, 30, tzinfo=UTC).timestamp())
_C = {"customer": "customer-00017"}
_AMOUNT = 9_999
"""As many digits as a slot is taken to have: a busy customer."""


class Customers(Store):
    """A store whose aggregator lives through the times of its events."""

    def __init__(self, window: Window) -> None:
        self.memory = MemoryTable(lambda: _NOW)
        super().__init__(Engine("memory", cast("DynamoDBClient", self.memory), None), self.memory.name)
        self.clock.now = _NOW
        self.window, self.units, self.sequence = window, 0.0, 10**21
        self._aggregator = self.aggregator(window)

    def count(self, moments: range, shard: int, customer: str = _C["customer"]) -> None:
        """Count one job at each moment, in one batch of a shard that is as old as its first."""
        records = []
        for second in moments:
            self.sequence += 7
            job = image("job", customer=customer, at=second, amount=_AMOUNT)
            records.append(record(self.sequence, job, created=second))
        name = f"shardId-{1_414_576_573_621 + shard:020d}-f55eea{shard % 100:02d}"
        now, self.clock.now = self.clock.now, records[0]["dynamodb"]["ApproximateCreationDateTime"]
        report = self._aggregator.handle({"shardId": name, "Records": records})
        self.units += report.write_units
        window = {"isFinalInvokeForWindow": True, "state": report.moved, "Records": []}
        self._aggregator.handle({"shardId": name, **window})
        self.clock.now = now

    def fill(self, start: int, end: int, every: int, rotation: int) -> None:
        """Fill every slot from one moment to another, from shards that last for `rotation` seconds each."""
        for shard, begin in enumerate(range(start, end, rotation)):
            self.clock.now = min(begin + rotation, end)
            self.count(range(begin, min(begin + rotation, end), every), shard)
        self.clock.now = end


@pytest.mark.parametrize(
    ("precision", "last", "slot", "rotation"),
    # How long the shard that feeds the group lasts: a year's fewer batches shorten the test.
    [
        (timedelta(minutes=1), timedelta(hours=24), _MINUTE, 4 * _HOUR),
        (timedelta(hours=1), timedelta(days=30), _HOUR, 4 * _HOUR),
        pytest.param(timedelta(days=1), timedelta(days=365), _DAY, _DAY, marks=pytest.mark.night),
    ],
)
def test_one_query_of_full_buckets_takes_at_most_3_read_units(
    precision: timedelta, last: timedelta, slot: int, rotation: int
) -> None:
    window = replace(_JOBS, precision=precision, longest=last)
    store = Customers(window)
    begin = (_NOW - int(last.total_seconds())) // _DAY * _DAY - 31 * _DAY * (slot == _DAY)
    if slot == _DAY:
        # Every month ends with the most watermarks it can gather.
        for day in range(begin, _NOW, _DAY):
            date = datetime.fromtimestamp(day, UTC)
            for part in range(6 if date.day > 26 else 1):
                store.clock.now = day + part * 4 * _HOUR
                store.count(range(day, day + 1), (day - begin) // _HOUR + part)
        store.clock.now = _NOW
    else:
        store.fill(begin, _NOW, slot, rotation)
    # A process asks once a minute which items hold the counts.
    count = store.counters.window(window, _C).last(last).count
    usage = replace(store.memory.usage)
    assert store.counters.window(window, _C).last(last).count == count > 0

    assert store.memory.usage.calls - usage.calls == 1
    assert store.memory.usage.reads - usage.reads <= 3
    sizes = [item_bytes(item) for item in store.memory.items() if item["_type"] == {"S": window.name}]
    assert max(sizes) <= 1024, "a write would take two units"
    store.memory.page_items = 7
    assert store.counters.window(window, _C).last(last).count == count, "a window longer than a page is read whole"


def test_a_touched_bucket_takes_one_write_unit() -> None:
    store = Customers(replace(_JOBS, longest=timedelta(days=60)))
    store.count(range(_NOW, _NOW + 10), 1)

    assert [tier.name for tier in store.window._kept_tiers] == ["hour", "day", "month"]
    assert store.units == 3
