"""Checkpoints make a redelivery cheap and let watermarks go."""

from __future__ import annotations

from typing import Any

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._assumptions import SETTLED_AFTER
from dynamodb_counters._commit.pruning import PRUNED_AT
from dynamodb_counters._items.watermarks import shard_digest
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW, Record, image, record

_URL = "x" * 800  # With the watermarks of some shards nearly a write unit.
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_DAY = 86_400.0


def _view(sequence: int, url: str = _URL, created: float = NOW) -> Record:
    return record(sequence, image("view", url=url, id=str(sequence)), created=created)


def _shard(number: int) -> str:
    return f"shardId-{number:020}-aaaaaaaa"


def _count(store: Store, url: str = _URL) -> Any:
    return store.counters.get(_VIEWS, {"url": url}, consistent=True).measures["n"]


def _watermarks(store: Store) -> list[str]:
    return [name for name in store.item(f"URL#{_URL}", "STATISTICS") if name.startswith("_w")]


def _end_window(store: Store, shard: str, applied_through: int) -> None:
    """The empty last invocation of a window, in a process of its own."""
    state = {"applied_through": f"{applied_through:040}"}
    store.aggregator(_VIEWS).handle({"shardId": shard, "isFinalInvokeForWindow": True, "state": state, "Records": []})


def _calls(store: Store) -> list[str]:
    """The operations called from now on."""
    names: list[str] = []
    store.client.before = lambda name, _: names.append(name)
    return names


def _feed(store: Store, shards: range) -> None:
    for number in shards:
        store.deliver([_view(number)], _VIEWS, shard=_shard(number))
        _end_window(store, _shard(number), number)


def test_watermarks_go_once_the_checkpoints_of_their_shards_have_settled(store: Store) -> None:
    _feed(store, range(1, 12))
    store.deliver([_view(50)], _VIEWS, shard=_shard(50))
    assert len(_watermarks(store)) == 12

    store.clock.now += SETTLED_AFTER + 16 * 60
    store.deliver([_view(60)], _VIEWS, shard=_shard(60))

    # Shard 50 has no checkpoint: its window has not ended.
    kept = {"_w" + shard_digest(_shard(number)) for number in (50, 60)}
    assert set(_watermarks(store)) == kept
    for number in (3, 50, 60):
        store.deliver([_view(number)], _VIEWS, shard=_shard(number))
    assert _count(store) == 13


def test_a_few_watermarks_and_a_small_item_are_not_worth_a_write(store: Store) -> None:
    for number in range(1, 12):
        store.deliver([_view(number, "small")], _VIEWS, shard=_shard(number))
        _end_window(store, _shard(number), number)
    _feed(store, range(21, 21 + PRUNED_AT - 1))
    store.clock.now += _DAY
    calls = _calls(store)

    store.deliver([_view(60), _view(61, "small")], _VIEWS, shard=_shard(60))

    assert "batch_get_item" not in calls
