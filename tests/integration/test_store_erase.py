"""Copies of events go with them: entries of the quarantine expire as their events do, and hold nothing once erased."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Packed, Sum
from dynamodb_counters._stream.batch import Aggregator
from dynamodb_counters.errors import EraseError, InvalidArgumentError
from simulation.oracle.chunks import rows_of
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import NOW, record

DAY = 86_400
SALE = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", retention=timedelta(days=7))
PACKED = Event(SALE.name, SALE.pk, SALE.sk, SALE.retention, packed=Packed("at"))
EVENTS = {"plain": SALE, "packed": PACKED}


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
    store: Store, kind: str, retention_days: float, kept_days: int
) -> None:
    event = Event(SALE.name, SALE.pk, SALE.sk, timedelta(days=retention_days), packed=EVENTS[kind].packed)
    _accept(store, event, _sale("ann", amount="much"))

    aggregator = Aggregator(store.table, (_sums(event),), quarantine_retention_seconds=90.0 * DAY)
    assert aggregator.handle({"Records": store.inserts(), "shardId": SHARD}).quarantined == 1

    [entry] = _quarantined(store)
    kept = int(entry["ttl"]["N"]) - NOW
    # A chunk stays as long as its bucket, and a day.
    assert kept_days * DAY <= kept <= kept_days * DAY + (DAY + 600 if kind == "packed" and kept_days == 7 else 0)


def test_an_entry_is_kept_no_longer_than_was_asked_for(store: Store) -> None:
    _accept(store, SALE, _sale("ann", amount="much"))
    Aggregator(store.table, (_sums(SALE),), quarantine_retention_seconds=3600.0).handle(
        {"Records": store.inserts(), "shardId": SHARD}
    )
    [entry] = _quarantined(store)
    assert entry["ttl"]["N"] == str(NOW + 3600)
