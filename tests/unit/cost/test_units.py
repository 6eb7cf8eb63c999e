"""Units grow with events, groups and shards as DynamoDB bills them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from dynamodb_counters._cost.batches import Batches, hottest_share, touched_by_rank
from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._cost.counted_items import GUARD_SECONDS, Counted, updates_of
from dynamodb_counters._cost.own_units import Packing, accept_packed, accept_plain, checkpoint_writes
from dynamodb_counters._items.chunks import Row


@pytest.mark.parametrize(("groups", "skew"), [(7, 0.0), (50, 1.0), (30_000, 0.8)])
def test_touched_groups_are_those_of_a_draw(groups: int, skew: float) -> None:
    dice = random.Random(1)
    weights = [rank**-skew for rank in range(1, groups + 1)]
    drawn = [len(set(dice.choices(range(groups), weights, k=400))) for _ in range(100)]
    assert touched_by_rank(groups, skew, 400) == pytest.approx(sum(drawn) / len(drawn), rel=0.02)
    assert hottest_share(groups, skew) == pytest.approx(weights[0] / sum(weights), rel=0.001)


def test_an_update_costs_by_the_shards_that_feed_its_item() -> None:
    batches = Batches.gathered(100.0, 1.0, 1000)
    per_update = {}
    for shards in (1, 16, 64, 256):
        found = updates_of(Counted(1), batches, shards)
        per_update[shards] = found.writes / found.number
    # Those of the benchmark's table "Write units per update, by the table's partitions".
    assert per_update == {1: 1.0, 16: 1.0, 64: 2.0, 256: 8.0}
    own = updates_of(Counted(1, scattered=False), batches, 256)
    assert own.writes == own.number


@pytest.mark.parametrize(
    ("groups", "events", "pages"),
    [
        # Up to 4 units each, as updates touch many of their groups: 250 fit.
        (900, 10_000, [4]),
        # One unit each, as updates touch few: 60 groups at most.
        (100_000, 1_000, range(750, 990)),
        # As many as groups.
        (1_000_000, 10, [10]),
    ],
)
def test_a_batch_touches_the_pages_of_its_groups(groups: int, events: int, pages: Sequence[int]) -> None:
    found = updates_of(Counted(groups, pages=True, group_bytes=16), Batches(events), 1)
    assert round(found.number) in pages
    if len(pages) > 1:
        assert found.writes == found.number


def test_every_shard_feeds_a_page_whatever_its_groups_are() -> None:
    batches = Batches.gathered(100.0, 1.0, 1000)
    one, other = (updates_of(Counted(5000, scattered=either, pages=True), batches, 64) for either in (True, False))
    assert one.writes / one.number == pytest.approx(other.writes / other.number)
    assert one.writes / one.number > 2


def test_a_checkpoint_moves_every_hundred_items_or_at_the_end_of_a_window() -> None:
    assert checkpoint_writes(100, Batches(1000)) == 1.0
    assert checkpoint_writes(10, Batches(1000)) == 0.1
    assert checkpoint_writes(10, Batches(1, seconds=90)) == 0.1
    assert checkpoint_writes(1, Batches(1, seconds=450)) == 0.5
    assert checkpoint_writes(1, Batches(1, seconds=3600)) == 1.0


def test_larger_events_and_duplicates_cost_more() -> None:
    assert accept_plain(1024).writes == 1.0
    assert accept_plain(1025, duplicates=0.5).writes == 3.0
    assert accept_plain(1025, duplicates=0.5).reads == 0.0
    assert accept_plain(5000, duplicates=0.5, compares=True).reads == 1.0


def test_a_flush_of_one_event_costs_an_item_and_more_events_less() -> None:
    sizes = ChunkSizes.assumed(200)
    per_event = [accept_packed(Packing(number, 1, sizes)).writes for number in (1, 4, 16, 64, 256)]
    assert per_event[0] == 1.0
    assert per_event == sorted(per_event, reverse=True)
    assert accept_packed(Packing(64, 1, sizes, writers=2)).reads > accept_packed(Packing(64, 1, sizes)).reads


def test_sizes_are_measured_by_encoding_a_sample() -> None:
    dice = random.Random(1)
    rows = [Row("+", {"url": {"S": "/"}, "id": {"S": f"{dice.getrandbits(128):032x}"}}) for _ in range(300)]
    sizes = ChunkSizes.measured(rows)
    # 128 random bits do not compress.
    assert sizes.content(256) / 256 > 16
    assert sizes.content(256) < 2 * sizes.content(128) * 1.05
    assert sizes.events_within(4096) == pytest.approx((4096 - 100) / (sizes.content(200) / 200), rel=0.05)


def test_the_page_says_for_how_long_an_item_keeps_a_watermark() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cost.md").read_text()
    assert f"each shard that fed it in the last {GUARD_SECONDS / 60:.0f} minutes" in page
