"""Records that cannot be counted are kept, block nothing, and count once when they are redriven."""

from __future__ import annotations

import base64
import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum, Window
from dynamodb_counters._quarantine.quarantine import Quarantined
from simulation.engines import Engine
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import NOW, Record, image, record
from tests.unit.writes.clients import fault

_EVENT = Event("sale", pk="SHOP#{shop}", sk="ID#{id}")
_SALES = Aggregate("sales", _EVENT, pk="SHOP#{shop}", sk="SALES", measures={"n": Count(), "sum": Sum("amount")})
_HOURS = Window("hours", _EVENT, pk="SHOP#{shop}", time="at")

_AT = "2026-09-21T13:00:00Z"


def _sale(sequence: int, **values: Any) -> Record:
    return record(sequence, image("sale", **{"shop": "a", "id": str(sequence), "amount": 1, "at": _AT, **values}))


def _without(sequence: int, name: str) -> Record:
    sale = _sale(sequence)
    del sale["dynamodb"]["NewImage"][name]
    return sale


def _with(sequence: int, name: str, value: dict[str, Any]) -> Record:
    sale = _sale(sequence)
    sale["dynamodb"]["NewImage"][name] = value
    return sale


POISON: dict[str, Record] = {
    "missing group attribute": _without(1, "shop"),
    "missing measure": _without(2, "amount"),
    "missing time": _without(3, "at"),
    "a string for a number": _with(4, "amount", {"S": "12"}),
    "a map in the key": _with(5, "shop", {"M": {}}),
    "a null": _with(6, "amount", {"NULL": True}),
    "infinity": _with(7, "amount", {"N": "Infinity"}),
    "not a number": _with(8, "amount", {"N": "NaN"}),
    "no time at all": _sale(9, at="yesterday"),
    "a time without an offset": _sale(10, at="2026-09-21T13:00:00"),
    "a time far ahead": _sale(11, at="2036-01-01T00:00:00Z"),
    "microseconds": _with(12, "at", {"N": str(NOW * 10**6)}),
    "no image": record(13),
    "a huge item": _with(14, "amount", {"S": "x" * 390_000}),
    "bytes": _with(15, "shop", {"B": base64.b64encode(b"\xff").decode()}),
    "a group too long for an item": _sale(16, shop="x" * 390_000),
    "a group too long for an item with watermarks": _sale(17, shop="".join(map(chr, range(33, 126))) * 4_380),
    "a huge item that cannot be compressed": _with(18, "amount", {"S": random.Random(1).randbytes(190_000).hex()}),
}


_NOT_COUNTED_IN = {
    **dict.fromkeys(
        (
            "missing measure",
            "a string for a number",
            "a null",
            "infinity",
            "not a number",
            "a huge item",
            "a huge item that cannot be compressed",
        ),
        ("sales",),
    ),
    **dict.fromkeys(
        ("missing time", "no time at all", "a time without an offset", "a time far ahead", "microseconds"), ("hours",)
    ),
    "no image": (),
}
"""The declarations that cannot count a poisoned record, unless neither can; none where they are unknown."""


def _redriven(store: Store, entry: Quarantined, sequence: int = 9) -> Record:
    """Redrive an entry; return the record that the stream would carry of it."""
    before = store.item(*entry.key)
    assert store.counters.redrive(entry)
    return record(sequence, store.item(*entry.key), before, created=store.clock())


def _count(store: Store, measure: str = "n") -> Any:
    return store.counters.get(_SALES, {"shop": "a"}, consistent=True).measures[measure]


def _hours(store: Store) -> Any:
    return store.counters.window(_HOURS, shop="a").last(timedelta(days=1), consistent=True).count


@pytest.mark.parametrize("kind", POISON)
def test_a_poisoned_record_is_kept_and_its_neighbours_are_counted(store: Store, kind: str) -> None:
    batch = [_sale(100), {**POISON[kind]}, _sale(200)]
    batch[1]["dynamodb"] = {**POISON[kind]["dynamodb"], "SequenceNumber": "150"}

    report = store.deliver(batch, _SALES, _HOURS)

    assert report.quarantined == 1
    [entry] = store.counters.quarantined()
    # The declarations that can count it, do.
    assert entry.names == _NOT_COUNTED_IN.get(kind, ("hours", "sales"))
    declared = ("sales", "hours")
    uncounted = entry.names or declared
    assert (_count(store), _hours(store)) == tuple(2 if name in uncounted else 3 for name in declared)
    assert (entry.shard, int(entry.sequence), entry.redriven) == (SHARD, 150, False)
    assert entry.reason
    assert entry.content["dynamodb"]["SequenceNumber"] == "150"

    again = store.deliver(batch, _SALES, _HOURS)

    assert (again.quarantined, again.updated) == (0, 0)
    assert len(list(store.counters.quarantined())) == 1


@pytest.mark.parametrize("engine", ["dynamodb_local"], indirect=True)  # moto and ministack round such a sum
def test_a_sum_of_more_than_38_digits_is_quarantined_with_the_watermark(store: Store) -> None:
    large = _sale(1, amount=10**37)
    batch = [_sale(2, amount=Decimal("0.5"))]
    store.deliver([large], _SALES)

    report = store.deliver(batch, _SALES)

    assert (report.quarantined, _count(store)) == (1, 1)
    assert store.deliver(batch, _SALES).quarantined == 0
    [entry] = store.counters.quarantined()
    assert entry.content["numbers"] == {"n": "1", "sum": "0.5"}

    store.deliver([record(3, old=large["dynamodb"]["NewImage"])], _SALES)
    change = _redriven(store, entry)
    for _ in range(2):
        store.deliver([change], _SALES, shard=OTHER_SHARD)
    assert (_count(store), _count(store, "sum")) == (1, Decimal("0.5"))


def test_groups_of_one_record_whose_keys_have_the_same_checksum_wait_side_by_side(store: Store) -> None:
    # Their keys have the same CRC-32.
    tags = ("29685295", "32060020")
    tagged = Aggregate("tagged", _EVENT, pk="TAG#{tags[]}", sk="SALES", measures={"n": Count()})
    sale = _with(1, "tags", {"L": [{"S": tag} for tag in tags]})
    store.client.before = fault("update_item", "ValidationException", "TAG#")

    assert store.deliver([sale], tagged).quarantined == 2
    assert len(list(store.counters.quarantined())) == 2


def test_an_entry_that_is_there_stays_as_it_is(store: Store) -> None:
    event = {"Records": [_without(2, "amount")], "shardId": SHARD}
    aggregator = store.aggregator(_SALES)
    aggregator.handle(event)
    [entry] = store.counters.quarantined()
    before = store.item(*entry.key)
    store.clock.now += 60

    # This process puts it again; another knows from the quarantine that it is there.
    assert aggregator.handle(event).quarantined == 0
    assert store.aggregator(_SALES).handle(event).quarantined == 0

    puts = [put["Item"]["_type"]["S"] for name, put in store.client.calls if name == "put_item"]
    assert puts.count("quarantine") == 2
    assert store.item(*entry.key) == before


def test_a_batch_whose_own_sum_has_more_than_38_digits_is_quarantined_and_holds_nothing_up(store: Store) -> None:
    batch = [_sale(1, amount=10**37), _sale(2, amount=Decimal("1E-30"))]

    assert [store.deliver(batch, _SALES).quarantined for _ in range(2)] == [1, 0]
    assert _count(store) == 0
    [entry] = store.counters.quarantined()
    assert entry.content["group"] == ["a"]

    store.deliver([_sale(3), _sale(4, shop="b")], _SALES)
    groups = store.counters.get_many([(_SALES, {"shop": shop}) for shop in "ab"], consistent=True)
    assert [group.measures for group in groups] == [{"n": 1, "sum": 1}] * 2


def test_an_attribute_that_was_made_no_number_blocks_nothing_else(engine: Engine, store: Store) -> None:
    if engine.name == "moto":
        pytest.skip("moto keeps the first part of an update whose second part it refuses")
    store.deliver([_sale(1), _sale(2, shop="b")], _SALES)
    store.client.update_item(
        TableName=store.name,
        Key={"pk": {"S": "SHOP#a"}, "sk": {"S": "SALES"}},
        UpdateExpression="SET n = :text",
        ExpressionAttributeValues={":text": {"S": "three"}},
    )

    report = store.deliver([_sale(3), _sale(4, shop="b")], _SALES)

    assert report.quarantined == 1
    assert store.counters.get(_SALES, {"shop": "b"}, consistent=True).measures["n"] == 2
