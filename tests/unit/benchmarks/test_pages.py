"""Pages that the benchmark puts are those that the aggregator makes, and what it measures is all there is."""

from __future__ import annotations

import pytest

from benchmarks import page_growth, page_shards, pages
from benchmarks.databases import MemoryDatabase
from benchmarks.designs.ours import PackedOnThree, PagedOnThree
from benchmarks.queue_and_stream import deliver
from benchmarks.workloads import hot, truth

pytestmark = pytest.mark.night


def test_groups_that_are_put_cost_and_read_like_groups_that_came_by_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_growth, "_EVENTS", 256)
    [came] = page_growth.measure((2_000,)).values()
    monkeypatch.setattr(page_growth, "_WRITTEN", 0)
    [put] = page_growth.measure((2_000,)).values()
    assert put["items"] == pytest.approx(came["items"], rel=0.05)
    assert put["bytes_per_group"] == pytest.approx(came["bytes_per_group"], rel=0.15)
    assert put["page_known"] == came["page_known"] == 0.5
    assert put["largest"] <= 1024


def test_a_share_of_the_groups_costs_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_growth, "_WRITTEN", 0)
    monkeypatch.setattr(page_growth, "_EVENTS", 1_000)
    [whole] = page_growth.measure((4_000,)).values()
    monkeypatch.setattr(page_growth, "_SHOWN", 1_000)
    [share] = page_growth.measure((4_000,)).values()
    assert share["pages"] == pytest.approx(whole["pages"], rel=0.2)
    assert share["groups_per_page"] == pytest.approx(whole["groups_per_page"], rel=0.2)


def test_pages_cost_a_fraction_of_items_where_a_batch_has_many_groups() -> None:
    views = hot(2_000, 400)
    items, paged = (pages._counted(design, views) for design in (PackedOnThree, PagedOnThree))
    assert paged["counting"] < items["counting"] / 5
    assert paged["calls"] < items["calls"] / 5


def test_counts_in_pages_are_exact() -> None:
    counting, views = PagedOnThree(database := MemoryDatabase()), hot(500, 100)
    deliver(counting, database, views, 100)
    assert counting.counts() == truth(views)


def test_every_unit_of_counting_has_a_purpose() -> None:
    views = hot(1_000, 200)
    found = pages._left_over(views)["groups come"]
    assert found["splits"] > 0
    assert sum(found.values()) == pytest.approx(pages._counted(PagedOnThree, views)["counting"], rel=0.02)


def test_a_shard_with_rare_batches_pays_for_every_kind() -> None:
    [found] = page_shards.rare((4,), 0.5).values()
    assert min(each for kind, each in found.items() if kind != "reading_to_prune") > 0
    assert found["units"] == pytest.approx(sum(each for kind, each in found.items() if kind != "units"))
