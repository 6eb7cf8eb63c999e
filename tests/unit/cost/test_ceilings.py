"""Ceilings: the most events per second, the limit that they reach, and the setting that moves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynamodb_counters._cost.ceilings import Ceiling, Limit, ceiling_of, used_by_ours
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.known_units import KNOWN
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._timeline.tiers import TIERS

_ONE_KEY = Workload(3_190, (Counted(1, scattered=False),))
_MANY_KEYS = Workload(5_000, (Counted(1),))
_RANKED = Workload(2_000, (Counted(10_000, ranked=True),))
_MILLION = Workload(10_000, (Counted(10**6),), partitions=4)
_MILLION_OF_A_PART = Workload(10_000, (Counted(10**6),), packed=64)
_FLUSHES = Workload(1_000, (Counted(1),), packed=64)
_PART = replace(_FLUSHES, packed=1_024)
_BUCKETS = Workload(1_000, (Counted(1, tiers=TIERS[:3]),), partitions=16, gather=0.0)


def _ours(load: Workload) -> Ceiling:
    found = ceiling_of(load)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("load", "limit", "least", "most"),
    [
        (_ONE_KEY, Limit.EVENT_KEY, 990, 1_000),
        (replace(_MANY_KEYS, gather=0.0, table_units=1e6), Limit.ITEM, 100_000, 160_000),
        (replace(_MANY_KEYS, table_units=1e6), Limit.ITEM, 100_000, 160_000),
        (_MANY_KEYS, Limit.TABLE, 30_000, 40_000),
        (Workload(60_000, (Counted(10**6),)), Limit.TABLE, 15_000, 25_000),
        (_RANKED, Limit.INDEX, 510, 520),
        (replace(_MILLION, partitions=40, concurrency=10), Limit.CONCURRENCY, 8_000, 9_000),
        (_MILLION, Limit.INVOCATION, 3_000, 4_000),
        (_MILLION_OF_A_PART, Limit.INVOCATION_OF_PART, 800, 1_000),
        (_FLUSHES, Limit.FLUSHES, 10_000, 11_000),
        (_PART, Limit.FLUSHES, 18_000, 20_000),
    ],
    ids=[
        "one key",
        "one item, update by update",
        "one item",
        "one item of a table with AWS's quota",
        "many groups of that table",
        "leaderboard",
        "ten executions",
        "many groups",
        "many groups of a part",
        "flushes",
        "one part",
    ],
)
def test_the_lowest_limit_is_the_ceiling(load: Workload, limit: Limit, least: float, most: float) -> None:
    found = _ours(load)
    assert found.limit is limit
    assert least <= found.events_per_second <= most
    shares = [max(used_by_ours(replace(load, rate=found.events_per_second * by)).values()) for by in (1, 1.01)]
    assert shares[0] <= 1 < shares[1]


def test_the_setting_that_a_limit_names_moves_it() -> None:
    for load in (_PART, _FLUSHES, _MILLION_OF_A_PART):
        assert _ours(replace(load, parts=2)).events_per_second == pytest.approx(
            2 * _ours(load).events_per_second, rel=0.01
        )
    assert _ours(replace(_FLUSHES, packed=120)).events_per_second > 1.8 * _ours(_FLUSHES).events_per_second
    two = replace(_RANKED, counted=(replace(_RANKED.counted[0], write_shards=2),))
    assert _ours(two).events_per_second > 1.9 * _ours(_RANKED).events_per_second
    four = replace(_BUCKETS, counted=(Counted(1, write_shards=4),), partitions=128)
    assert used_by_ours(four)[Limit.ITEM] < used_by_ours(replace(four, counted=(Counted(1),)))[Limit.ITEM] / 4
    assert _ours(replace(_MILLION, partitions=8)).events_per_second > 1.9 * _ours(_MILLION).events_per_second
    assert _ours(replace(_ONE_KEY, packed=64)).events_per_second > 10 * _ours(_ONE_KEY).events_per_second
    more_keys = replace(_ONE_KEY, counted=(Counted(10, scattered=False),))
    assert _ours(more_keys).events_per_second == pytest.approx(10 * _ours(_ONE_KEY).events_per_second, rel=0.01)


def test_each_bucket_of_a_window_is_an_item() -> None:
    total = replace(_BUCKETS, counted=(Counted(1),))
    share, of_total = (used_by_ours(load)[Limit.ITEM] for load in (_BUCKETS, total))
    assert share == pytest.approx(of_total, rel=0.05)


def test_an_event_without_other_limits_ends_at_the_executions_of_the_account() -> None:
    load = Workload(1, (Counted(10**9, scattered=False),), table_units=1e9)
    assert _ours(load).limit is Limit.CONCURRENCY
    assert ceiling_of(replace(load, concurrency=10**9)) is None


def test_a_part_puts_no_chunk_before_the_last_one_has_landed() -> None:
    """More events per flush help until they fill a chunk."""
    assert _ours(replace(_PART, packed=4_096)).events_per_second < 1.2 * _ours(_PART).events_per_second


def test_designs_without_batches_end_at_their_counter() -> None:
    found = {known.name: ceiling_of(_MANY_KEYS, known) for known in KNOWN}
    for name, most in {"naive_increment": 1_000, "transaction_marker": 92}.items():
        each = found[name]
        assert each is not None
        assert each.limit is Limit.ITEM
        assert each.events_per_second == pytest.approx(most, rel=0.01)
