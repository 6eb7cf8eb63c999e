"""Packed events are accepted once, whoever else writes, on every engine."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dynamodb_counters import Counters, Event, Packed
from simulation.engines import Engine
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW

_BEGIN = NOW // 600 * 600
_PACKED = Packed("time", timedelta(minutes=10))
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", packed=_PACKED)


def _view(url: str = "/", time: Any = _BEGIN, client: Any = "c", **others: Any) -> dict[str, Any]:
    return {"url": url, "time": time, "clientId": client, **others}


def _views(*numbers: int) -> list[dict[str, Any]]:
    return [_view(client=str(number)) for number in numbers]


def _status(counters: Counters, views: list[dict[str, Any]], event: Event = _VIEW) -> list[str]:
    return [outcome.status for outcome in counters.accept_many(event, views)]


def _process(store: Store, client: Any = None) -> Counters:
    """A process that has read nothing yet."""
    return Counters(store.name, client=client or store.table.client, clock=store.clock)


def _chunks(store: Store) -> list[dict[str, Any]]:
    found = [item for item in store.items() if "_chunk" in item]
    return sorted(found, key=lambda item: str(item["pk"]["S"] + item["sk"]["S"]))


def _columns(chunk: dict[str, Any]) -> Any:
    return json.loads(zlib.decompress(bytes(chunk["_chunk"]["B"])))[3]


def test_an_event_is_accepted_once(store: Store) -> None:
    outcomes = [store.counters.accept(_VIEW, view).status for view in _views(1, 2, 1, 1)]

    assert outcomes == ["accepted", "accepted", "duplicate", "duplicate"]
    assert _status(_process(store), _views(2, 3, 1)) == ["duplicate", "accepted", "duplicate"]
    assert len(_chunks(store)) == 3


def test_a_chunk_says_its_type_its_place_and_when_it_may_go(store: Store) -> None:
    event = Event(
        "kept", pk="URL#{url}", sk="T#{time}", retention=timedelta(days=7), packed=Packed("time", timedelta(minutes=10))
    )
    values = {"url": "/#", "time": _BEGIN + 5, "price": Decimal("1.50"), "tags": {"a"}, "deep": {"x": [None, b"\0"]}}

    assert store.counters.accept(event, values).status == "accepted"

    [chunk] = _chunks(store)
    begin = datetime.fromtimestamp(_BEGIN, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (chunk["pk"], chunk["sk"], chunk["_type"]) == (
        {"S": "PACK#kept#0"},
        {"S": f"{begin}#000000"},
        {"S": "kept#pack"},
    )
    assert chunk["ttl"] == {"N": str(_BEGIN + 600 + 8 * 86_400)}
    assert _columns(chunk) == {
        "url": "/#",
        "time": ["N", str(_BEGIN + 5)],
        "price": ["N", "1.50"],
        "tags": ["", [{"SS": ["a"]}]],
        "deep": ["", [{"M": {"x": {"L": [{"NULL": True}, {"B": base64.b64encode(b"\0").decode()}]}}}]],
    }


def test_a_bucket_of_many_chunks(store: Store, engine: Engine) -> None:
    # More than a page of 1 MB on AWS's own engine; elsewhere a few hundred say as much, in seconds.
    many = 1200 if engine.name == "dynamodb_local" else 300
    writer = _process(store)
    noise = random.Random(1)
    # Each fills a chunk of the least size by itself.
    event = replace(_VIEW, packed=Packed("time", timedelta(minutes=10), chunk_bytes=1024))
    events = [{**view, "noise": noise.randbytes(500).hex()} for view in _views(*range(many))]

    assert Counter(_status(writer, events, event)) == {"accepted": many}

    assert len(_chunks(store)) == many
    cold = _process(store)
    some = [events[0], events[many // 2], events[-1], *_views(9999)]
    assert _status(cold, some, event) == ["duplicate", "duplicate", "duplicate", "accepted"]
    assert cold.retract(event, events[17])
    assert _chunks(store)[-1]["sk"]["S"].endswith(f"#{many + 1:06}")


def test_writers_with_caches_of_their_own_accept_each_event_once(store: Store) -> None:
    events = _views(*range(200))

    def write(seed: int) -> Counter[str]:
        rng, counters, told = random.Random(seed), _process(store), Counter[str]()
        object.__setattr__(counters._table, "sleep", lambda _: None)
        mine = rng.sample(events, len(events))
        while mine:
            size = rng.randint(1, 30)
            outcomes = _status(counters, mine[:size])
            told.update(outcomes)
            # Events that failed are sent again.
            mine = [view for view, status in zip(mine, outcomes, strict=False) if status == "failed"] + mine[size:]
        return told

    with ThreadPoolExecutor(6) as pool:
        told = sum(pool.map(write, range(6)), Counter[str]())

    assert told["accepted"] == len(events)
    assert told["duplicate"] == 5 * len(events)
    rows = [client for chunk in _chunks(store) for client in _columns(chunk)["clientId"].split("\x7f")]
    assert sorted(rows) == sorted(view["clientId"] for view in events)
