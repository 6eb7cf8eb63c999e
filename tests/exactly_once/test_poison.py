"""Poisoned records in a stream: the others count at once, no shard waits, and after the repair all count, once."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from dynamodb_counters._declarations import Aggregate, Count, Event, Sum, Window
from simulation.workbench import Workbench

RECORDS = 6_000
POISONED = 0.01
SEED = 20_261_120
BATCH = 100

SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE")
SHOPS = tuple("abcdefgh")

SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"n": Count(), "sum": Sum("amount")})
HOURS = Window("hours", SALE, pk="SALES#{shop}", time="at")
BEFORE = (SALES, HOURS)
AFTER = (
    Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"n": Count()}),
    Window("hours", SALE, pk="SALES#{shop}", time="created"),
)
"""Mended: neither the amount nor the time that the source sends is needed any more."""

MISSING: dict[str, Any] = {}
POISON: dict[str, dict[str, Any]] = {
    "no amount": {"amount": MISSING},
    "an amount that is text": {"amount": {"S": "12"}},
    "an amount like infinity": {"amount": {"S": "Infinity"}},
    "an amount of 39 digits": {"amount": {"S": "9" * 39}},
    "an amount that is null": {"amount": {"NULL": True}},
    "an amount that is a flag": {"amount": {"BOOL": True}},
    "an amount that is a map": {"amount": {"M": {"value": {"N": "1"}}}},
    "an amount that is a list": {"amount": {"L": [{"N": "1"}]}},
    "an amount that is binary": {"amount": {"B": b"\xff\x00"}},
    "a huge item": {"amount": MISSING, "note": {"S": "x" * 390_000}},
    "no time": {"at": MISSING},
    "a time that is prose": {"at": {"S": "yesterday"}},
    "a time without an offset": {"at": {"S": "2026-11-20T10:00:00"}},
    "a time in microseconds": {"at": {"N": "1790000000000000"}},
    "a time far ahead": {"at": {"S": "2099-01-01T00:00:00Z"}},
}


def test_the_others_count_and_after_the_repair_every_count_is_exact() -> None:
    rng = random.Random(SEED)
    bench = Workbench(BEFORE, shards=3)
    now = int(bench.clock())
    shops, poisoned = Counter[str](), {declared.name: Counter[str]() for declared in BEFORE}
    for number in range(RECORDS):
        shop, kind = rng.choice(SHOPS), rng.choice(list(POISON)) if rng.random() < POISONED else None
        item = {
            "pk": {"S": f"SHOP#{shop}#{number}"},
            "sk": {"S": "SALE"},
            "_type": {"S": "sale"},
            "shop": {"S": shop},
            "amount": {"N": "1"},
            "at": {"N": str(now)},
            "created": {"N": str(now)},
            **(POISON[kind] if kind else {}),
        }
        bench.table.put_item(
            TableName=bench.table.name, Item={name: value for name, value in item.items() if value is not MISSING}
        )
        shops[shop] += 1
        if kind:
            poisoned[SALES.name if "amount" in POISON[kind] else HOURS.name][shop] += 1

    _deliver_in_pieces(bench, rng)

    assert sum(sum(shops.values()) for shops in poisoned.values()) > RECORDS * POISONED / 2
    assert _counts(bench, now) == {
        shop: tuple(shops[shop] - poisoned[declared.name][shop] for declared in BEFORE) for shop in SHOPS
    }
    waiting = list(bench.counters.quarantined())
    kept = Counter((entry.names, entry.content["dynamodb"]["NewImage"]["shop"]["S"]) for entry in waiting)
    assert kept == {((name,), shop): times for name, found in poisoned.items() for shop, times in found.items()}

    bench.deploy(AFTER)
    assert all(bench.counters.redrive(record) for record in waiting)
    assert not any(bench.counters.redrive(record) for record in waiting)
    _deliver_in_pieces(bench, rng)
    _deliver_in_pieces(bench, rng)

    assert _counts(bench, now) == {shop: (shops[shop],) * 2 for shop in SHOPS}, f"seed {SEED}"
    assert list(bench.counters.quarantined()) == []


def _deliver_in_pieces(bench: Workbench, rng: random.Random) -> None:
    """Deliver every shard in order, each batch once or twice: none may fail."""
    for shard in bench.shards():
        records = bench.records(shard)
        for start in range(0, len(records), BATCH):
            for _ in range(rng.choice((1, 2))):
                bench.deliver(records[start : start + BATCH], shard)


def _counts(bench: Workbench, now: int) -> dict[str, tuple[int, int]]:
    as_of = datetime.fromtimestamp(now, UTC)
    return {
        shop: (
            int(bench.counters.get(SALES, {"shop": shop}).measures["n"]),
            int(bench.counters.window(HOURS, shop=shop).last(hours=1, as_of=as_of).count),
        )
        for shop in SHOPS
    }
