"""Tiers: which a window has, what they cost to read, and where a moment lies in them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from dynamodb_counters import Sum, Window
from dynamodb_counters._items.schema import item_bytes
from dynamodb_counters._reads.span_reads import add_up
from dynamodb_counters._tiers import (
    DAY,
    DAYS,
    FIRST_SECOND,
    HOUR,
    HOURS,
    LAST_SECOND,
    MINUTE,
    MINUTES,
    MONTHS,
    TIERS,
    Interval,
    Span,
    Tier,
    plan_queries,
    read_cost,
)
from simulation.engines import Engine
from simulation.memory_table import MemoryTable
from tests.integration.stores import Store
from tests.unit.fold.buckets import JOBS
from tests.unit.fold.streams import image, record

_SECOND, _MINUTE, _HOUR, _DAY = (timedelta(seconds=seconds) for seconds in (1, 60, 3600, 86_400))


@pytest.mark.parametrize(
    ("precision", "longest", "tiers"),
    [
        (_SECOND, 15 * _MINUTE, "M"),
        (_SECOND, _HOUR + _SECOND, "MH"),
        (_SECOND, 30 * _DAY, "MHD"),
        (_MINUTE, 24 * _HOUR, "H"),
        (_MINUTE, 31 * _DAY, "HD"),
        (_MINUTE, 365 * _DAY, "HDN"),
        (_HOUR, 30 * _DAY, "D"),
        (_HOUR, 365 * _DAY, "DN"),
        (_DAY, 3650 * _DAY, "N"),
    ],
)
def test_tiers_follow_from_precision_and_longest_window(precision: timedelta, longest: timedelta, tiers: str) -> None:
    window = replace(JOBS, precision=precision, longest=longest)

    assert "".join(tier.letter for tier in window._kept_tiers) == tiers


@pytest.mark.parametrize(
    ("precision", "days", "queries", "items", "units"),
    [
        (_MINUTE, 1, 1, 25, 2),
        (_MINUTE, 30, 3, 33, 4),
        (_MINUTE, 365, 4, 38, 4),
        (_HOUR, 30, 1, 31, 3),
        (_DAY, 365, 1, 13, 2),
    ],
)
def test_a_window_is_read_by_few_queries(
    precision: timedelta, days: int, queries: int, items: int, units: float
) -> None:
    dice = random.Random(f"{precision} {days}")
    window = replace(JOBS, precision=precision, longest=days * _DAY)
    results = list[tuple[int, int, float]]()
    for _ in range(500):
        unit = dice.choice([1, 3600, 86_400])
        as_of = dice.randint(0, 3_000_000_000) // unit * unit + dice.choice([-1, 0])
        spans = plan_queries(window._kept_tiers, Interval.ending_at(as_of, days * _DAY, window._unit))
        assert sum(span.interval.end - span.interval.start for span in spans) == days * 86_400
        read = sum(span.buckets[1] - span.buckets[0] + 1 for span in spans)
        results.append((len(spans), read, read_cost(spans) - len(spans) / 2))
    assert [max(column) for column in zip(*results, strict=True)] == [queries, items, units]


def test_a_shorter_window_is_read_from_the_finest_tier_alone() -> None:
    month = replace(JOBS, longest=30 * _DAY)
    [span] = plan_queries(month._kept_tiers, Interval.ending_at(1_790_000_000, 24 * _HOUR))

    assert span.tier is HOURS
    assert span.buckets[1] - span.buckets[0] < 40


def test_a_whole_bucket_is_read_from_its_total_alone() -> None:
    assert add_up(Span(HOURS, Interval(3600, 7200)), [(1, {"total": 5})]) == 5
    assert add_up(Span(HOURS, Interval(3660, 7200)), [(1, {"total": 5, "m00": 2, "m59": 3})]) == 3


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
def test_every_moment_lies_in_one_bucket_and_slot(tier: Tier) -> None:
    dice = random.Random(tier.name)
    edges = [FIRST_SECOND, LAST_SECOND, -1, 0, *(dice.randint(FIRST_SECOND, LAST_SECOND) for _ in range(500))]
    for second in edges:
        bucket, slot = tier.locate(second)
        assert tier.start(bucket) <= second < tier.end(bucket)
        assert tier.slots[(second - tier.start(bucket)) // tier.slot_seconds] == slot
        assert tier.parse(tier.text(bucket)) == bucket
        assert tier.end(bucket) - tier.start(bucket) <= tier.seconds
    ordered = sorted(tier.locate(second)[0] for second in edges)
    assert [tier.text(bucket) for bucket in ordered] == sorted(tier.text(bucket) for bucket in ordered)


@pytest.mark.parametrize(
    ("moment", "tier", "text", "slot"),
    [
        ("2024-02-29T23:59:59", MONTHS, "2024-02", "d29"),
        ("2024-02-29T23:59:59", DAYS, "2024-02-29", "h23"),
        ("2024-03-01T00:00:00", MONTHS, "2024-03", "d01"),
        ("2026-11-20T10:30:07", HOURS, "2026-11-20T10", "m30"),
        ("2026-11-20T10:30:07", MINUTES, "2026-11-20T10:30", "s07"),
    ],
)
def test_a_moment_has_a_readable_key(moment: str, tier: Tier, text: str, slot: str) -> None:
    bucket, name = tier.locate(int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()))

    assert (tier.text(bucket), name) == (text, slot)


def test_a_window_whose_retention_is_short_has_tiers_for_it() -> None:
    assert replace(JOBS, retention=timedelta(hours=2))._longest_window == timedelta(hours=2)
    assert replace(JOBS, precision=_DAY, retention=timedelta(hours=2))._longest_window == _DAY


# What windows cost: written by the aggregator, read by `Counters`, measured in units


if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_AMOUNTS = replace(JOBS, measure=Sum("amount"))
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
        (timedelta(minutes=1), timedelta(hours=24), MINUTE, 4 * HOUR),
        (timedelta(hours=1), timedelta(days=30), HOUR, 4 * HOUR),
        pytest.param(timedelta(days=1), timedelta(days=365), DAY, DAY, marks=pytest.mark.night),
    ],
)
def test_one_query_of_full_buckets_takes_at_most_3_read_units(
    precision: timedelta, last: timedelta, slot: int, rotation: int
) -> None:
    window = replace(_AMOUNTS, precision=precision, longest=last)
    store = Customers(window)
    begin = (_NOW - int(last.total_seconds())) // DAY * DAY - 31 * DAY * (slot == DAY)
    if slot == DAY:
        # Every month ends with the most watermarks it can gather.
        for day in range(begin, _NOW, DAY):
            date = datetime.fromtimestamp(day, UTC)
            for part in range(6 if date.day > 26 else 1):
                store.clock.now = day + part * 4 * HOUR
                store.count(range(day, day + 1), (day - begin) // HOUR + part)
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
    store = Customers(replace(_AMOUNTS, longest=timedelta(days=60)))
    store.count(range(_NOW, _NOW + 10), 1)

    assert [tier.name for tier in store.window._kept_tiers] == ["hour", "day", "month"]
    assert store.units == 3
