"""Books on every engine: what Lambda gave up on is counted after later records, and each record once."""

from __future__ import annotations

from typing import Any

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._assumptions import GIVEN_UP_AFTER
from dynamodb_counters._stream.checkpoint_items import checkpoint_key
from dynamodb_counters._stream.watermarks import shard_digest
from dynamodb_counters._timeline.times import HOUR, MINUTE
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})


def _view(store: Store, sequence: int) -> Record:
    return record(sequence, image("view", url="/", id=str(sequence)), created=store.clock())


def _count(store: Store) -> Any:
    return store.counters.get(_VIEWS, {"url": "/"}, consistent=True).measures["n"]


def test_a_given_up_record_counts_once_after_a_later_one(store: Store) -> None:
    store.deliver([_view(store, 1)], _VIEWS)
    given_up = _view(store, 2)
    store.clock.now += GIVEN_UP_AFTER + MINUTE
    later = _view(store, 3)
    for _ in range(2):
        store.deliver([later], _VIEWS)
    assert _count(store) == 2

    for _ in range(2):
        event = {"shardId": SHARD, "Records": [given_up]}
        store.aggregator(_VIEWS).handle(event, given_up=True)
        store.deliver([later], _VIEWS)
        assert _count(store) == 3

    checkpoint = store.item(*(value["S"] for value in checkpoint_key(shard_digest(SHARD)).values()))
    assert checkpoint["successor"] == {"S": f"{3:040}"}


def test_a_lagging_batch_is_told_before_it_is_counted(store: Store) -> None:
    store.deliver([_view(store, 1)], _VIEWS)
    lagging = [_view(store, 2), _view(store, 3)]
    store.clock.now += GIVEN_UP_AFTER - HOUR / 2
    store.deliver(lagging, _VIEWS)
    checkpoint = store.item(*(value["S"] for value in checkpoint_key(shard_digest(SHARD)).values()))
    assert (checkpoint["met"], checkpoint["tried"]) == ({"S": f"{2:040}"}, {"S": f"{3:040}"})
    assert "successor" not in checkpoint
    assert _count(store) == 3
