"""Records that cannot be counted are kept, block nothing, count once when they are redriven, and go with their events.

Nor do items that cannot take a delta, nor even a watermark: what they cannot take waits, once, and the shard goes on.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from counters_lambda.counting.batch import Aggregator
from dynamodb_counters import Aggregate, Count, Event, Packed, Ranking, Sum, Window
from dynamodb_counters._fold.fold import InvalidImage
from dynamodb_counters._items.schema import item_bytes
from dynamodb_counters._quarantine import Quarantine
from dynamodb_counters.exactly_once import Watermark
from simulation.engines import Engine
from simulation.faults.hooked_client import failing
from simulation.memory.client_errors import failure
from simulation.oracle.layout import rows_of
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import NOW, Record, image, record

_EVENT = Event("sale", pk="SHOP#{shop}", sk="ID#{id}")
_SALES = Aggregate("sales", _EVENT, pk="SHOP#{shop}", sk="SALES", measures={"n": Count(), "sum": Sum("amount")})
_HOURS = Window("hours", _EVENT, pk="SHOP#{shop}", time="at")

_AT = "2026-09-21T13:00:00Z"


def _sale(sequence: int, **values: Any) -> Record:
    return record(sequence, image("sale", **{"shop": "a", "id": str(sequence), "amount": 1, "at": _AT, **values}))


def _with(sequence: int, name: str, value: dict[str, Any]) -> Record:
    sale = _sale(sequence)
    sale["dynamodb"]["NewImage"][name] = value
    return sale


POISON: dict[str, Record] = {
    "a map in the key": _with(5, "shop", {"M": {}}),
    "infinity": _with(7, "amount", {"N": "Infinity"}),
    "no time at all": _sale(9, at="yesterday"),
    "no image": record(13),
    "a huge item": _with(14, "amount", {"S": "x" * 390_000}),
    "bytes": _with(15, "shop", {"B": base64.b64encode(b"\xff").decode()}),
    "a group too long for an item": _sale(16, shop="x" * 390_000),
    "a group too long for an item with watermarks": _sale(17, shop="".join(map(chr, range(33, 126))) * 4_380),
    "a huge item that cannot be compressed": _with(18, "amount", {"S": random.Random(1).randbytes(190_000).hex()}),
}
"""What else cannot be folded: tests/unit/fold/test_fold_records.py."""
_NOT_COUNTED_IN: dict[str, tuple[str, ...]] = {"no time at all": ("hours",), "no image": ()}
_NOT_COUNTED_IN |= dict.fromkeys(("infinity", "a huge item", "a huge item that cannot be compressed"), ("sales",))
"""The declarations that cannot count a poisoned record, unless neither can; none where they are unknown."""


def _redrive_all(store: Store, first: int = 1000) -> list[Record]:
    """Redrive all entries; return the records that the stream would carry of them."""
    records = []
    for place, entry in enumerate(list(store.counters.quarantined()), first):
        before = store.item(*entry.key)
        assert store.counters.redrive(entry)
        records.append(record(place, store.item(*entry.key), before, created=store.clock()))
    return records


def _count(store: Store, measure: str = "n") -> Any:
    return store.counters.get(_SALES, {"shop": "a"}, consistent=True).measures[measure]


def _hours(store: Store) -> Any:
    return store.counters.window(_HOURS, shop="a").last(timedelta(days=1), consistent=True).count


@pytest.mark.parametrize("kind", POISON)
def test_a_poisoned_record_is_kept_and_its_neighbours_are_counted(store: Store, kind: str) -> None:
    batch = [_sale(100), {**POISON[kind]}, _sale(200)]
    batch[1]["dynamodb"] = {**POISON[kind]["dynamodb"], "SequenceNumber": "150"}
    assert store.deliver(batch, _SALES, _HOURS).quarantined == 1
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
    assert (store.deliver(batch, _SALES).quarantined, _count(store)) == (1, 1)
    assert store.deliver(batch, _SALES).quarantined == 0
    [entry] = store.counters.quarantined()
    assert entry.content["numbers"] == {"n": "1", "sum": "0.5"}
    store.deliver([record(3, old=large["dynamodb"]["NewImage"])], _SALES)
    again = _redrive_all(store, 9)
    for _ in range(2):
        store.deliver(again, _SALES, shard=OTHER_SHARD)
    assert (_count(store), _count(store, "sum")) == (1, Decimal("0.5"))


def test_groups_of_one_record_whose_keys_have_the_same_checksum_wait_side_by_side(store: Store) -> None:
    # Their keys have the same CRC-32.
    tags = ("29685295", "32060020")
    tagged = Aggregate("tagged", _EVENT, pk="TAG#{tags[]}", sk="SALES", measures={"n": Count()})
    sale = _with(1, "tags", {"L": [{"S": tag} for tag in tags]})

    refused = failure("UpdateItem", "ValidationException")
    store.hook = failing(store.client, "update_item", lambda update: "TAG#" in repr(update), refused)._hook
    assert store.deliver([sale], tagged).quarantined == 2
    assert len(list(store.counters.quarantined())) == 2


def test_an_entry_that_is_there_stays_as_it_is(store: Store) -> None:
    event, puts = {"Records": [_with(2, "amount", {"NULL": True})], "shardId": SHARD}, list[str]()

    def note(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "put_item":
            puts.append(request["Item"]["_type"]["S"])
        return send()

    store.hook = note
    aggregator = store.aggregator(_SALES)
    aggregator.handle(event)
    [entry] = store.counters.quarantined()
    before = store.item(*entry.key)
    store.clock.now += 60
    # This process puts it again; another knows from the quarantine that it is there.
    assert aggregator.handle(event).quarantined == 0
    assert store.aggregator(_SALES).handle(event).quarantined == 0
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
    assert store.deliver([_sale(3), _sale(4, shop="b")], _SALES).quarantined == 1
    assert store.counters.get(_SALES, {"shop": "b"}, consistent=True).measures["n"] == 2


_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_MOST_BYTES = 400 * 1024
_KEY = {"pk": {"S": "URL#a"}, "sk": {"S": "STATISTICS"}}
_ITEM: dict[str, Any] = {**_KEY, "_type": {"S": "views"}, "n": {"N": "10"}}
_BATCH = [record(n, image("view", url=url, id=str(n))) for n, url in ((1, "a"), (2, "b"), (3, "a"))]


def _counts_by_url(store: Store, views: Aggregate = _VIEWS) -> list[Any]:
    groups = store.counters.get_many([(views, {"url": url}) for url in "ab"], consistent=True)
    return [group.measures["n"] for group in groups]


def _waits_record_by_record(store: Store) -> None:
    # The item takes nothing: each record of it has an entry, however often and cut however they are delivered.
    before = store.item("URL#a", "STATISTICS")
    deliveries = [_BATCH, _BATCH[:2], _BATCH, [*_BATCH, record(4, image("view", url="b", id="4"))]]
    assert [store.deliver(batch, _VIEWS).quarantined for batch in deliveries] == [2, 0, 0, 0]
    assert store.item("URL#a", "STATISTICS") == before
    assert _counts_by_url(store) == [10, 2]
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
    assert _counts_by_url(store) == [12, 2]


@pytest.mark.parametrize("spoiled", [{"N": "7"}, {"M": {}}, {"S": "7"}, {"S": "0"}, {"B": b"\x05x"}], ids=str)
def test_a_spoiled_watermark_holds_nothing_up(engine: Engine, store: Store, spoiled: dict[str, Any]) -> None:
    if engine.name == "moto" and "B" not in spoiled:
        pytest.skip("moto compares values of two types with a TypeError")
    store.client.put_item(TableName=store.name, Item={**_ITEM, Watermark(SHARD).name: spoiled})
    _waits_record_by_record(store)
    again = _redrive_all(store)
    for _ in range(2):
        store.deliver(again, _VIEWS, shard=OTHER_SHARD)
    assert _counts_by_url(store) == [12, 2]


def test_a_score_that_is_a_text_holds_nothing_up(engine: Engine, store: Store) -> None:
    if engine.name == "moto":
        pytest.skip("moto takes a text in an index of numbers")
    ranked = replace(_VIEWS, ranking=Ranking("n", "TOP"))
    store.client.put_item(TableName=store.name, Item={**_ITEM, "_score": {"S": "taken"}})
    assert [store.deliver(_BATCH, ranked).quarantined for _ in range(3)] == [2, 0, 0]
    assert _counts_by_url(store, ranked) == [10, 1]


DAY = 86_400
SALE = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", retention=timedelta(days=7))
PACKED = replace(SALE, packed=Packed("at"))


def _sums(event: Event) -> Aggregate:
    return Aggregate("sums", event, pk="SUMS", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})


def _bought(client: str, number: int = 1, amount: Any = 5) -> dict[str, Any]:
    return {"client": client, "at": NOW, "id": number, "amount": amount}


def _accept(store: Store, event: Event, *sales: dict[str, Any]) -> None:
    assert {outcome.status for outcome in store.counters.accept_many(event, sales)} == {"accepted"}


def _stored(store: Store) -> str:
    return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in store.items()])


@pytest.mark.parametrize(
    ("ttl", "retention", "seconds"),
    [
        *((NOW + 7 * DAY, 90 * DAY, 7 * DAY), (NOW + 400 * DAY, 90 * DAY, 90 * DAY), (NOW + 900, 90 * DAY, 2 * DAY)),
        # Of times, one that deletes nothing is none.
        *((NOW + 7 * DAY, 3600, 3600), (5, 90 * DAY, 90 * DAY), (10**14, 90 * DAY, 90 * DAY)),
        (NOW - 5 * 365 * DAY + 9, 90 * DAY, 2 * DAY),
    ],
)
def test_an_entry_is_kept_no_longer_than_its_event_or_was_asked_for(
    store: Store, ttl: int, retention: float, seconds: int
) -> None:
    aggregator = Aggregator(store.table, (_sums(SALE),), quarantine_retention_seconds=retention)
    bad = record(10**21, {**image("sale", amount="much"), "ttl": {"N": str(ttl)}})
    assert aggregator.handle({"Records": [bad], "shardId": SHARD}).quarantined == 1
    [entry] = store.items()
    assert int(entry["ttl"]["N"]) == NOW + seconds


def test_rows_of_others_stay_in_a_whole_chunk_in_quarantine(store: Store) -> None:
    _accept(store, PACKED, _bought("ann", 1), _bought("bob", 2), _bought("ann", 3))
    [chunk] = [item for item in store.items() if "_chunk" in item]
    unreadable = InvalidImage(f"{10**21:040}", "NewImage", record(10**21, chunk), "a later version reads it")
    assert Quarantine(store.table, 90.0 * DAY).keep(SHARD, [unreadable]) == 1
    [entry] = store.counters.quarantined()
    assert store.counters.redrive(entry)
    result = store.counters.erase(PACKED, {"client": "ann"}, counts="take_back")
    assert (result.packed, result.quarantined, result.left) == (2, 2, 0)
    [entry] = store.counters.quarantined(redriven=True)
    assert [values["client"] for _, values in rows_of(entry.content["dynamodb"]["NewImage"])] == ["bob"]
    [item] = [item for item in store.items() if item["pk"]["S"].startswith("QUARANTINE#")]
    store.deliver([record(10**21 + 5, item, {**item, "state": {"S": "waiting"}})], _sums(PACKED))
    assert store.counters.get(_sums(PACKED), {}).measures == {"sales": 1, "amount": 5}


def test_a_record_of_which_only_the_key_was_kept_is_found(store: Store) -> None:
    _accept(store, SALE, _bought("ann", 1, "much") | {"note": "x"})
    [item] = store.items()
    keys = {name: item[name] for name in ("pk", "sk")}
    bare = record(10**21)
    bare["dynamodb"]["Keys"] = keys
    assert store.deliver([bare], _sums(SALE)).quarantined == 1
    assert all(map(store.counters.redrive, store.counters.quarantined()))
    assert store.counters.erase(SALE, {"client": "ann"}, counts="keep").quarantined == 1
    assert "ann" not in _stored(store)
