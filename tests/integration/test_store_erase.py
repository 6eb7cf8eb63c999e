"""Copies of events go with them: entries of the quarantine expire as their events do, and hold nothing once erased."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Packed, Sum
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._fold.fold import Unfoldable
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters.errors import InvalidArgumentError
from simulation.engines import Engine
from simulation.engines.tables import create_table
from simulation.oracle.chunks import rows_of
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import NOW, image, record

DAY = 86_400
SALE = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", retention=timedelta(days=7))
PACKED = replace(SALE, packed=Packed("at"))
EVENTS = {"plain": SALE, "packed": PACKED}


@pytest.fixture
def any_store(moto_engine: Engine) -> Store:
    """On the quickest engine, for what does not depend on the engine."""
    create_table(moto_engine.client, "counters")
    return Store(moto_engine, "counters")


def _sums(event: Event) -> Aggregate:
    return Aggregate("sums", event, pk="SUMS", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})


def _sale(client: str, number: int = 1, amount: Any = 5) -> dict[str, Any]:
    return {"client": client, "at": NOW, "id": number, "amount": amount}


def _accept(store: Store, event: Event, *sales: dict[str, Any]) -> None:
    assert {outcome.status for outcome in store.counters.accept_many(event, sales)} == {"accepted"}


def _quarantined(store: Store) -> list[dict[str, Any]]:
    return [item for item in store.items() if item["pk"]["S"].startswith("QUARANTINE#")]


def _stored(store: Store) -> str:
    return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in store.items()])


@pytest.mark.parametrize(("retention_days", "kept_days"), [(7, 7), (90, 90), (400, 90), (0.01, 2)])
@pytest.mark.parametrize("kind", EVENTS)
def test_an_entry_is_kept_no_longer_than_its_event(
    any_store: Store, kind: str, retention_days: float, kept_days: int
) -> None:
    event = replace(SALE, retention=timedelta(days=retention_days), packed=EVENTS[kind].packed)
    _accept(any_store, event, _sale("ann", amount="much"))

    aggregator = Aggregator(any_store.table, (_sums(event),), quarantine_retention_seconds=90.0 * DAY)
    assert aggregator.handle({"Records": any_store.inserts(), "shardId": SHARD}).quarantined == 1

    [entry] = _quarantined(any_store)
    kept = int(entry["ttl"]["N"]) - NOW
    # A chunk stays as long as its bucket, and a day.
    assert kept_days * DAY <= kept <= kept_days * DAY + (DAY + 600 if kind == "packed" and kept_days == 7 else 0)


def test_an_entry_is_kept_no_longer_than_was_asked_for(any_store: Store) -> None:
    _accept(any_store, SALE, _sale("ann", amount="much"))
    Aggregator(any_store.table, (_sums(SALE),), quarantine_retention_seconds=3600.0).handle(
        {"Records": any_store.inserts(), "shardId": SHARD}
    )
    [entry] = _quarantined(any_store)
    assert entry["ttl"]["N"] == str(NOW + 3600)


@pytest.mark.parametrize(("ttl", "kept"), [(5, 90 * DAY), (NOW - 5 * 365 * DAY + 9, 2 * DAY), (10**14, 90 * DAY)])
def test_a_ttl_that_deletes_nothing_is_none(any_store: Store, ttl: int, kept: int) -> None:
    aggregator = Aggregator(any_store.table, (_sums(SALE),), quarantine_retention_seconds=90.0 * DAY)
    bad = record(10**21, {**image("sale", amount="much"), "ttl": {"N": str(ttl)}})
    assert aggregator.handle({"Records": [bad], "shardId": SHARD}).quarantined == 1

    [entry] = _quarantined(any_store)
    assert int(entry["ttl"]["N"]) == NOW + kept


def test_rows_of_others_stay_in_a_whole_chunk_in_quarantine(store: Store) -> None:
    _accept(store, PACKED, _sale("ann", 1), _sale("bob", 2), _sale("ann", 3))
    [chunk] = [item for item in store.items() if "_chunk" in item]
    unreadable = Unfoldable(f"{10**21:040}", "NewImage", record(10**21, chunk), "a later version reads it")
    assert Quarantine(store.table, 90.0 * DAY).keep(SHARD, [unreadable]) == 1

    [entry] = store.counters.quarantined()
    assert store.counters.redrive(entry)
    found = store.counters.erase(PACKED, {"client": "ann"}, counts="take_back")
    assert (found.packed, found.quarantined, found.left) == (2, 2, 0)
    [entry] = store.counters.quarantined(redriven=True)
    assert [values["client"] for _, values in rows_of(entry.content["dynamodb"]["NewImage"])] == ["bob"]
    [item] = _quarantined(store)
    redriven = record(10**21 + 5, item, {**item, "state": {"S": "waiting"}})
    store.deliver([redriven], _sums(PACKED))
    assert store.counters.get(_sums(PACKED), {}).measures == {"sales": 1, "amount": 5}


def test_a_record_of_which_only_the_key_was_kept_is_found(store: Store) -> None:
    values = _sale("ann", 1, "much") | {"note": "x"}
    _accept(store, SALE, values)
    [item] = store.items()
    keys = {name: item[name] for name in ("pk", "sk")}
    bare = record(10**21)
    bare["dynamodb"]["Keys"] = keys
    assert store.deliver([bare], _sums(SALE)).quarantined == 1

    assert all(map(store.counters.redrive, store.counters.quarantined()))
    assert store.counters.erase(SALE, {"client": "ann"}, counts="keep").quarantined == 1
    assert "ann" not in _stored(store)


@pytest.mark.parametrize(
    "arguments",
    [
        {"values": {}},
        {"values": {"amount": 5}},
        {"values": "ann"},
        {"values": {"client": [1]}},
        {"counts": "both"},
        {"event": "sale"},
    ],
)
def test_wrong_arguments_are_refused(any_store: Store, arguments: dict[str, Any]) -> None:
    given: dict[str, Any] = {"event": SALE, "values": {"client": "ann"}, "counts": "keep", **arguments}
    with pytest.raises(InvalidArgumentError):
        any_store.counters.erase(given.pop("event"), given.pop("values"), **given)
