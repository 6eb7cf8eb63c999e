"""Items that cannot take a delta, nor even a watermark: what they cannot take waits, once, and the shard goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Ranking
from dynamodb_counters._items.bookkeeping import item_bytes
from dynamodb_counters.exactly_once import Watermark
from simulation.engines import Engine
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_MOST_BYTES = 400 * 1024
_KEY = {"pk": {"S": "URL#a"}, "sk": {"S": "STATISTICS"}}
_ITEM: dict[str, Any] = {**_KEY, "_type": {"S": "views"}, "n": {"N": "10"}}
_BATCH = [record(n, image("view", url=url, id=str(n))) for n, url in ((1, "a"), (2, "b"), (3, "a"))]


def _counts(store: Store, views: Aggregate = _VIEWS) -> list[Any]:
    groups = store.counters.get_many([(views, {"url": url}) for url in "ab"], consistent=True)
    return [group.measures["n"] for group in groups]


def _redrive_all(store: Store) -> list[Record]:
    records = []
    for place, entry in enumerate(list(store.counters.quarantined()), start=1000):
        before = store.item(*entry.key)
        assert store.counters.redrive(entry)
        records.append(record(place, store.item(*entry.key), before))
    return records


def _waits_record_by_record(store: Store) -> None:
    """The item takes nothing: each record of it has an entry, however often and cut however they are delivered."""
    before = store.item("URL#a", "STATISTICS")
    deliveries = [_BATCH, _BATCH[:2], _BATCH, [*_BATCH, record(4, image("view", url="b", id="4"))]]

    assert [store.deliver(batch, _VIEWS).quarantined for batch in deliveries] == [2, 0, 0, 0]

    assert store.item("URL#a", "STATISTICS") == before
    assert _counts(store) == [10, 2]
    entries = sorted(store.counters.quarantined(), key=lambda entry: entry.sequence)
    assert [(int(entry.sequence), entry.content["numbers"]) for entry in entries] == [(1, {"n": "1"}), (3, {"n": "1"})]


@pytest.mark.parametrize("engine", ["dynamodb_local"], indirect=True)  # moto and ministack measure otherwise
def test_an_item_of_400_kb_that_takes_no_watermark_holds_nothing_up(store: Store) -> None:
    full = {**_ITEM, "note": {"S": ""}}
    full["note"] = {"S": "x" * (_MOST_BYTES - item_bytes(full))}
    store.client.put_item(TableName=store.name, Item=full)

    _waits_record_by_record(store)

    store.client.update_item(TableName=store.name, Key=_KEY, UpdateExpression="REMOVE note")
    again = _redrive_all(store)
    for _ in range(2):
        # The checkpoint has moved beyond the batch, which the mended item could take now.
        store.deliver(_BATCH, _VIEWS)
        store.deliver(again, _VIEWS, shard=OTHER_SHARD)
    assert _counts(store) == [12, 2]


@pytest.mark.parametrize("spoiled", [{"N": "7"}, {"M": {}}, {"S": "7"}, {"S": "0"}, {"B": b"\x05x"}], ids=str)
def test_a_spoiled_watermark_holds_nothing_up(engine: Engine, store: Store, spoiled: dict[str, Any]) -> None:
    if engine.name == "moto" and "B" not in spoiled:
        pytest.skip("moto compares values of two types with a TypeError")
    name = Watermark(SHARD).name
    store.client.put_item(TableName=store.name, Item={**_ITEM, name: spoiled})

    _waits_record_by_record(store)

    again = _redrive_all(store)
    for _ in range(2):
        store.deliver(again, _VIEWS, shard=OTHER_SHARD)
    assert _counts(store) == [12, 2]


def test_a_score_that_is_a_text_holds_nothing_up(engine: Engine, store: Store) -> None:
    if engine.name == "moto":
        pytest.skip("moto takes a text in an index of numbers")
    ranked = replace(_VIEWS, ranking=Ranking("n", "TOP"))
    store.client.put_item(TableName=store.name, Item={**_ITEM, "_score": {"S": "taken"}})

    assert [store.deliver(_BATCH, ranked).quarantined for _ in range(3)] == [2, 0, 0]

    assert _counts(store, ranked) == [10, 1]
