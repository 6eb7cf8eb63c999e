"""Estimates of backfills: a sample of the table says what a run takes, whatever its items and groups are like."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Event, Items, Packed, Sum
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import NUMBER, Stream, backfill

VISIT = Items("visit", pk="PERSON#{person}", sk="VISIT#{at}")
ORDER = Items("order", where=Attr("customer").exists())
TAP = Event("tap", key=("device", "at"), retention=timedelta(days=2), packed=Packed("at", timedelta(hours=1)))

KINDS: dict[str, tuple[Any, int]] = {
    "few groups": (Aggregate("spent", ORDER, by="customer", spent=Sum("price")), 40),
    "some groups": (Aggregate("spent", ORDER, by="customer", spent=Sum("price")), 1500),
    "a group per item": (Aggregate("orders-by-id", ORDER, by="id"), 1),
    "groups of neighbors": (Aggregate("visits", VISIT, by="person"), 200),
    "pages": (Aggregate("paged", ORDER, by="customer", pages=True), 3000),
    "wide items, few of which count": (Aggregate("spent", ORDER, by="customer", spent=Sum("price")), 300),
    "packed events": (Aggregate("taps", TAP, by="device"), 500),
}
ITEMS = 3000


def fill(bench: Workbench, kind: str, most: int) -> None:
    rng = random.Random(kind)
    if kind == "packed events":
        events = [{"device": f"d{rng.randrange(most)}", "at": int(bench.clock()) - number} for number in range(ITEMS)]
        bench.counters.accept_many(TAP, events)
        return
    for number in range(ITEMS):
        item: dict[str, Any] = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}, "id": {"N": str(number)}}
        if kind == "groups of neighbors":
            item |= {"pk": {"S": f"PERSON#{rng.randrange(most)}"}, "sk": {"S": f"VISIT#{number}"}}
        elif "wide" not in kind or rng.random() < 0.1:
            item |= {"customer": {"S": f"c{rng.randrange(most)}"}, "price": {"N": str(rng.randrange(100))}}
        else:
            item["text"] = {"S": "x" * 2000}
        bench.table.put_item(TableName=bench.table.name, Item=item)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_announces_about_what_the_run_takes(kind: str) -> None:
    declared, most = KINDS[kind]
    bench = Workbench([NUMBER])
    stream = Stream(bench)
    bench.aggregator.handle({})
    fill(bench, kind, most)
    stream.skip()
    bench.deploy([NUMBER, declared])
    stream.deliver()
    names, found = backfill(bench, stream, names=[declared.name]).estimate()
    assert (names, found.sampled <= 1000) == ([declared.name], True)
    [*_, last] = backfill(bench, stream, names=[declared.name]).steps()
    assert last.units / 2 <= found.units <= 2 * last.units
