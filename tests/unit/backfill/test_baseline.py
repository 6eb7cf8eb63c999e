"""What runs compare: the baseline of their cut, no counters, and groups of which some sources may have expired."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Counter, Event, Ranking, Sum
from dynamodb_counters._backfill.feeds import Shard
from dynamodb_counters._backfill.runner import Lineage, contributions, part_of, sum_up
from dynamodb_counters._backfill.verification import judge
from dynamodb_counters._control.run_items import RunRow, Sums
from dynamodb_counters._items.table_schema import SCORE
from simulation.world import World

_numbers = st.integers(-2, 3)
_few = st.integers(-3, 3)
SALE = Event("sale", key=("shop", "id"))
STOCK = Counter("stock", by=("shop", "sku"), left=Count())
SHOPS = Aggregate("shops", STOCK, by="shop", left=Sum("left"))
KINDS = Aggregate("kinds", STOCK, by="sku", kinds=Count())


@dataclass
class _Item:
    """Contributions of an item at the cut and after each change since, and how many changes its scan has seen."""

    contributed: list[int]
    seen: int
    in_parent: int
    """How many changes came through the shard that has a child by now."""


_items = st.lists(
    st.builds(_Item, st.lists(_numbers, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3)), max_size=6
)


def _sums(group: str, number: int) -> Sums:
    return {("views", (group,)): {"n": number}} if number else {}


@given(_items, st.integers(1, 3), st.booleans())
def test_a_baseline_is_what_items_contributed_at_the_cut(items: list[_Item], parts: int, is_repeated: bool) -> None:
    scanned, logged, expected = [], [], collections.Counter[str]()
    for place, (group, item) in enumerate(zip("ababab", items, strict=False)):
        digest, seen = f"item-{place}", min(item.seen, len(item.contributed) - 1)
        scanned.append(RunRow(digest, _sums(group, item.contributed[seen])))
        expected[group] += item.contributed[0]
        for index, old in enumerate(item.contributed[:-1]):
            # The numbers of a child say nothing about those of its parent.
            shard, sequence = ("parent", 10 + index) if index < item.in_parent else ("child", index)
            logged.append((shard, RunRow(digest, _sums(group, old), sequence=f"{sequence:040}")))
    logged *= 2 if is_repeated else 1
    lineage = Lineage()
    lineage.meet([Shard("parent", "", is_open=False), Shard("child", "parent", is_open=True)])
    pages: Any = SimpleNamespace(scanned=lambda: scanned, logged=lambda: reversed(logged), lineage=lineage)

    every = [each for part in range(parts) for each in contributions(pages, part, parts)]

    found = {group[0]: measures["n"] for (_, group), measures in (sum_up(every, 0, 1) or {}).items()}
    assert {group: number for group, number in found.items() if number} == {
        group: number for group, number in expected.items() if number
    }


@given(st.lists(st.text(max_size=4), unique=True), st.integers(1, 5))
def test_parts_hold_each_group_once_and_split_into_four(texts: list[str], parts: int) -> None:
    contributed = [{("views", (text,)): {"n": 1}} for text in texts]
    found = [ref for part in range(parts) for ref in sum_up(contributed, part, parts) or ()]
    assert sorted(found) == sorted(("views", (text,)) for text in texts)
    assert all(part_of(text, 4 * parts) // 4 == part_of(text, parts) for text in texts)


@given(st.sampled_from([Count(), Sum("price")]), _few, _few)
def test_a_score_that_differs_from_its_measure_is_drift_though_events_may_have_expired(
    measure: Count | Sum, total: int, score: int
) -> None:
    ranking = Ranking(measure="total", leaderboard="SHOPS")
    shops = Aggregate("shops", SALE, by="shop", measures={"total": measure}, ranking=ranking)
    missing = {name: number for name, number in (("total", total), (SCORE, score)) if number}

    verdicts = list(judge(shops, missing, may_exceed=True, is_gone=False))

    certain = [numbers.get(SCORE, 0) for verdict, _, numbers in verdicts if verdict == "drifted"]
    lost = total if isinstance(measure, Count) and total > 0 else 0
    assert sum(certain) == score - total + lost
    found = [numbers for *_, numbers in verdicts]
    assert {name: sum(numbers.get(name, 0) for numbers in found) for name in missing} == missing
    assert all(all(numbers.values()) for numbers in found)


def test_what_is_over_a_counter_is_verified_and_backfilled() -> None:
    world = World(STOCK, SHOPS)
    for sku in "xy":
        world.counters.increment(STOCK, shop="a", sku=sku, amount=5)
    world.deliver_new()
    assert world.missing() == []
    world.spoil(SHOPS, "left", 2, shop="a")
    assert [(each.name, dict(each.missing)) for each in world.verify().differences] == [("shops", {"left": -2})]

    world.deploy(STOCK, SHOPS, KINDS)
    world.fill()
    assert world.read(KINDS, sku="x") == ({"kinds": 1}, True)
    assert world.read(STOCK, shop="a", sku="x") == ({"left": 5}, True)
