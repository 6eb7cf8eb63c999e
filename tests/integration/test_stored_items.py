"""Stored items are a contract: every kind is stored as the first deployments stored it, to the byte."""

from __future__ import annotations

import base64
import json
import os
from datetime import timedelta
from pathlib import Path

from dynamodb_counters import Aggregate, Average, Count, Distinct, Event, Histogram, Ranking, Sum, Window
from dynamodb_counters._declarations import flatten
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.fold.streams import image, record

_RECORDED = Path(__file__).parents[1] / "snapshots" / "stored_items.json"
_ANOTHER_SHARD = "shardId-00000000000000000042"

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}", retention=timedelta(days=30))
_ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", version="revision")
_VIEWS = Aggregate(
    "views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()}, ranking=Ranking("views", "ALL")
)
_BUSY = Aggregate("busy", _VIEW, pk="BUSY", sk="ALL", measures={"views": Count()}, write_shards=4)
_SALES = Aggregate(
    "sales",
    _ORDER,
    pk="SALES#{region}",
    sk="STATISTICS",
    measures={
        "orders": Count(),
        "price": Sum("price"),
        "capped": Sum("price", cap=5),
        "size": Average("size"),
        "sizes": Histogram("size", bounds=(2, 4)),
    },
)
_CLIENTS = Distinct("clients", _VIEW, pk="URL#{url}", sk="CLIENTS", member="client")
_LEVELS = [
    Aggregate(f"levels-{number}", _ORDER, pk="REGION#{region}", sk=sk, n=Count())
    for number, sk in enumerate(("ALL", "SHOP#{shop}"))
]
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="time", tiers=("hour", "month"))
_MINUTELY = Window(
    "minutely", _VIEW, pk="M#{url}", time="time", precision=timedelta(seconds=1), tiers=("minute", "hour")
)
_DECLARED = flatten([_VIEWS, _BUSY, _SALES, _CLIENTS, *_LEVELS, _RECENT, _MINUTELY])

_LARGEST = 10**38 - 1


def _write(store: Store) -> None:
    """Write at least one item of every kind."""
    time = "2026-09-21T14:13:20Z"
    for client, url in (("a", "/"), ("b", "/"), ("a", "/#%\x1f"), ("", ""), ("a", "é" * 1100)):
        assert store.counters.accept(_VIEW, {"url": url, "time": time, "client": client}).status == "accepted"
    orders = [
        {"id": "1", "revision": 1, "region": "north", "shop": "s", "price": 7, "size": 3},
        {"id": "2", "revision": 1, "region": "north", "shop": "t", "price": _LARGEST, "size": 1},
    ]
    assert [outcome.status for outcome in store.counters.accept_many(_ORDER, orders)] == ["accepted"] * 2
    store.deliver(store.inserts(), *_DECLARED)
    # Aggregates over aggregates, and a sum that no item can take.
    store.deliver(store.inserts(2 * 10**21), *_DECLARED)
    store.deliver(
        [record(3 * 10**21, {**image("order", price=_LARGEST, size=9, region="north", shop="s")})], *_DECLARED
    )
    # Malformed: an image alone, a correction of which one image cannot be folded, one too large to be kept as text.
    right, wrong = image("order", price=1, size=1, region="south", shop="s"), image("order", price="?", region="south")
    large = image("order", price="?", region="south", text="x" * 40_000)
    malformed = [
        record(4 * 10**21 + n, new, old) for n, (new, old) in enumerate([(wrong, None), (right, wrong), (large, None)])
    ]
    store.deliver(malformed, *_DECLARED, shard=_ANOTHER_SHARD)
    [first, *_] = [waiting for waiting in store.counters.quarantined() if "price" in waiting.reason]
    assert store.counters.redrive(first)
    store.counters.record_once(
        _ORDER, {"id": "3", "revision": 2, "region": "west", "shop": "s", "price": 2, "size": 2}, [_SALES]
    )
    store.counters.increment(_SALES, {"region": "west"}, amount={"orders": 5, "price": 3})
    store.counters.reset(_VIEWS, {"url": ""})


def test_every_kind_of_item_is_stored_as_recorded(moto_engine: Engine) -> None:
    create_table(moto_engine.client)
    store = Store(moto_engine, "counters")
    _write(store)
    items = sorted(store.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    for item in items:
        # The reason is for people; its wording is no contract.
        item.pop("reason", None)
        # Nonces are random.
        for name in [name for name in item if name.startswith("_n") or name == "_reset"]:
            del item[name]
        for value in item.values():
            if "SS" in value:
                value["SS"].sort()
    text = (
        json.dumps(
            items, default=lambda value: base64.b64encode(value).decode(), indent=1, sort_keys=True, ensure_ascii=False
        )
        + "\n"
    )
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _RECORDED.write_text(text)
    assert text == _RECORDED.read_text()
