"""`partition` reads all groups that share a partition key by one Query, and little else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Distinct, Event, InvalidArgumentError
from tests.unit.fold.world import World

VIEW = Event("view", pk="PAGE#{page}", sk="VIEW#{user}")


def _aggregate(name: str, sk: str, pk: str = "PAGE#{page}", write_shards: int = 1) -> Aggregate:
    return Aggregate(name, VIEW, pk=pk, sk=sk, measures={"n": Count()}, write_shards=write_shards)


def _world(*declared: Any, users: tuple[str, ...] = ("ann", "bob")) -> World:
    world = World(declared)
    for user in users:
        world.put(VIEW, {"page": "home", "user": user, "word": user})
    world.settle()
    return world


def _read(world: World, *aggregates: Aggregate) -> tuple[dict[str, int], list[Mapping[str, Any]]]:
    """Give what is found, and the items that were read for it."""
    pages: list[Mapping[str, Any]] = []
    query = world.client.query

    def noted(**request: Any) -> dict[str, Any]:
        page = query(**request)
        pages.extend(page["Items"])
        return page

    world.client.query = noted  # type: ignore[method-assign]
    found = world.counters.partition(aggregates, {"page": "home"})
    return {name: sum(int(group.measures["n"]) for group in groups) for name, groups in found.items()}, pages


def test_prefixes_of_prefixes_are_read_whole() -> None:
    one, two = _aggregate("one", "A#{word}"), _aggregate("two", "A#M#{word}#{user}")

    found, _ = _read(_world(one, two, users=("ann", "zoe", "\U0010ffff")), one, two)

    assert found == {"one": 3, "two": 3}


def test_a_key_that_begins_with_a_field_is_read_whole() -> None:
    # No segment of another item's key can be equal: this one has a single segment.
    bare = _aggregate("bare", "{word}", pk="BARE#{page}")

    found, _ = _read(_world(bare, users=("", " ", "!", "é", "\x00", "zoe")), bare)

    assert found == {"bare": 6}


def test_members_of_a_distinct_count_are_not_read_with_it() -> None:
    visitors = Distinct("visitors", VIEW, pk="PAGE#{page}", sk="VISITORS", member="user")
    views = _aggregate("views", "STATISTICS")
    world = _world(visitors, views)

    found = world.counters.partition([views, visitors.total], {"page": "home"})

    assert found["visitors"][0].measures == {"distinct": 2}
    assert [len(groups) for groups in world.counters.partition([visitors], {"page": "home"}).values()] == [2, 1]
    assert len(_read(world, views)[1]) == 1


@pytest.mark.parametrize(
    "aggregates",
    [
        [],
        [_aggregate("one", "A"), _aggregate("two", "B", pk="OTHER#{page}")],
        [_aggregate("one", "A", write_shards=2)],
    ],
)
def test_groups_that_share_no_partition_key_are_refused(aggregates: list[Aggregate]) -> None:
    with pytest.raises(InvalidArgumentError, match="aggregates with one pk template and write_shards=1"):
        _world().counters.partition(aggregates, {"page": "home"})


def test_groups_after_a_sort_key_are_read_without_it() -> None:
    one = _aggregate("one", "A#{word}")
    counters = _world(one).counters
    [(first, _), second] = counters.scan(one, {"page": "home"})

    assert list(counters.scan(one, {"page": "home"}, after=first)) == [second]
