"""Each safety mechanism alone, in the situation it is there for."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters._declarations import Aggregate, Count, Event, Items, Sum
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient, failing
from simulation.faults.process import in_disorder
from simulation.memory.client_errors import failure
from simulation.schedules.sandbox import fail_for
from simulation.world import World

SALE = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}", retention=timedelta(days=30))
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})
COUNTED = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count()})
"""As a later version may count them: without the amount."""
HOUR = 3600


@pytest.fixture
def world() -> World:
    return World(SALES)


def _sell(world: World, *ids: int, amount: Any = 1) -> None:
    for number in ids:
        assert world.counters.accept(SALE, {"shop": "x", "id": number, "amount": amount}).status == "accepted"


def _sell_and_deliver(world: World, number: int, amount: Any = 1) -> None:
    _sell(world, number, amount=amount)
    world.deliver_all()


def _sales(world: World, declared: Aggregate = SALES) -> int:
    return int(world.counters.get(declared, {"shop": "x"}).measures["sales"])


def test_a_sum_of_zero_takes_back_what_a_failed_delivery_has_counted(world: World) -> None:
    _sell(world, 1)
    # The delivery ended after the first of two records.
    world.deliver(world.records())
    assert _sales(world) == 1
    sale = world.records()[0]
    world.counters.retract(SALE, {"shop": "x", "id": 1})
    taken_back = world.records()[-1]
    world.deliver([sale, taken_back])
    assert _sales(world) == 0


def test_a_checkpoint_moves_after_what_cannot_be_counted_is_in_quarantine(world: World) -> None:
    _sell(world, 1, amount="much")
    dying = failing(world.table, "put_item", lambda put: put["Item"]["pk"]["S"].startswith("QUARANTINE#"))
    with pytest.raises(Crashed):
        world.deliver(world.records(), by=world.process(dying))
    world.deliver(world.records())

    [entry] = world.counters.quarantined()
    assert entry.names == ("sales",)


def test_a_redrive_counts_once_however_often_it_is_asked_for(world: World) -> None:
    _sell_and_deliver(world, 1, amount="much")
    world.end_window(world.records())
    world.mend(COUNTED)
    [record] = world.counters.quarantined()
    assert world.counters.redrive(record)
    assert not world.counters.redrive(record)
    world.deliver_all()
    world.deliver_all()
    assert _sales(world, COUNTED) == 1
    assert world.waiting() == 0


def test_a_batch_of_before_is_looked_up_again(world: World) -> None:
    _sell(world, 1)
    world.counters.accept(SALE, {"shop": "y", "id": 2, "amount": 1})
    former, mended = world.process(), world.process()
    fail_for(former, "sales")
    first, second = world.records()[:2]
    world.deliver([first], by=former)

    world.deliver([second], by=mended)
    world.deliver([first, second], by=mended)

    assert _sales(world) == 0
    assert world.redrive() == 1
    assert _sales(world) == 1


def test_images_that_one_declaration_cannot_fold_wait_for_it_alone() -> None:
    total = Aggregate("total", SALE, pk="TOTAL", sk="ALL", measures={"amount": Sum("amount")})
    numbers = Aggregate("numbers", SALE, pk="NUMBERS", sk="ALL", measures={"sales": Count()})
    world = World(total, numbers)
    _sell_and_deliver(world, 1, amount="much")
    _sell_and_deliver(world, 2)
    [entry] = world.counters.quarantined()
    assert entry.names == ("total",)
    assert world.counters.get(numbers, {}).measures == {"sales": 2}
    assert world.counters.get(total, {}).measures == {"amount": 1}

    # An aggregate that is added later does not count what waits for another.
    added = Aggregate("added", SALE, pk="ADDED", sk="ALL", measures={"sales": Count()})
    world.mend(replace(total, where=Attr("amount").ge(0)), numbers, added)
    assert world.counters.redrive(entry)
    world.deliver_all()
    assert world.counters.get(numbers, {}).measures == {"sales": 2}
    assert world.counters.get(added, {}).measures == {"sales": 0}
    assert [*world.counters.quarantined()] == []


def test_events_that_a_transaction_has_counted_are_only_corrected_and_taken_back() -> None:
    versioned = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}", version="version")
    sales = Aggregate("sales", versioned, pk="SALES#{shop}", sk="ALL", measures={"amount": Sum("amount")})
    world = World(sales)

    def amount() -> Any:
        world.deliver_all()
        return world.counters.get(sales, {"shop": "x"}).measures["amount"]

    values = {"shop": "x", "id": 1, "version": 1, "amount": 5}
    world.counters.record_once(versioned, values, [sales])
    assert amount() == 5
    world.counters.accept(versioned, {**values, "version": 2, "amount": 7})
    assert amount() == 7
    world.counters.record_once(versioned, {**values, "id": 2}, [sales])
    assert amount() == 12
    world.counters.retract(versioned, {**values, "id": 2})
    assert amount() == 7


def test_a_change_that_concerns_no_measure_writes_nothing(world: World) -> None:
    _sell_and_deliver(world, 1)
    records = len(world.records())
    [item] = world.items("sale")
    world.write({**item, "note": {"S": "seen"}})
    world.deliver_all()
    assert len(world.records()) == records + 1


def test_a_batch_that_no_invocation_can_write_is_written_by_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Threads that the machine lets wait would leave more to be written again.
    disorder = in_disorder(random.Random(0))
    monkeypatch.setattr(Table, "side_by_side", lambda _, work, items: disorder(work, items))
    tagged = Aggregate("tagged", SALE, pk="TAG#{tags[]}", sk="ALL", measures={"sales": Count()})
    tags = [f"tag-{number}" for number in range(500)]
    world = World(tagged)
    assert world.counters.accept(SALE, {"shop": "x", "id": 1, "tags": tags}).status == "accepted"
    updates = 0

    def slow(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        nonlocal updates
        if name == "batch_execute_statement":
            # Else all that was written before would be refused in a few requests.
            raise failure("BatchExecuteStatement", "ThrottlingException")
        updates += name == "update_item"
        world.clock.advance(0.5 if name == "update_item" else 0.0)
        return send()

    deliveries, process = 0, world.process(HookedClient(world.table, slow))
    while deliveries < 10:
        deadline = world.clock.now + 112
        deliveries += 1
        with contextlib.suppress(CommitError):
            event = {"shardId": world.shards()[0], "Records": world.records()[:1]}
            process.handle(event, lambda: deadline - world.clock())  # noqa: B023
            break

    # 200 in each, of which the last few may be written in vain.
    assert deliveries in (3, 4)
    assert updates < 600
    counts = world.counters.get_many([(tagged, {"tags[]": tag}) for tag in tags])
    assert {group.measures["sales"] for group in counts} == {1}


def test_an_item_whose_watermark_is_spoiled_stops_nothing(world: World) -> None:
    _sell_and_deliver(world, 1)
    [item] = [dict(item) for item in world.table.items() if item["pk"] == {"S": "SALES#x"}]
    [watermark] = [name for name in item if name.startswith("_w")]
    world.write({**item, watermark: {"N": "7"}})
    _sell(world, 2, 3)
    assert world.counters.accept(SALE, {"shop": "y", "id": 4, "amount": 1}).status == "accepted"

    for _ in range(2):
        world.deliver(world.records()[-3:])

    assert _sales(world) == 1
    assert world.counters.get(SALES, {"shop": "y"}).measures["sales"] == 1
    waiting = [*world.counters.quarantined()]
    assert [entry.content["numbers"]["sales"] for entry in waiting] == ["1", "1"]
    assert all("may have been counted" in entry.reason for entry in waiting)

    world.end_window(world.records()[-1:])
    world.write(item)
    assert world.redrive() == 2
    assert _sales(world) == 3


def test_items_that_are_not_counted_for_their_type_are_reported() -> None:
    paths = Aggregate(
        "paths", Items("path", where=Attr("path").exists()), pk="PATH#{path}", sk="ALL", measures={"n": Count()}
    )
    world = World(paths)
    for number, more in enumerate(({}, {"_type": {"S": "Path"}}, {"_type": {"S": "Path"}})):
        world.write({"pk": {"S": f"ITEM#{number}"}, "sk": {"S": "ITEM"}, "path": {"S": "/"}, **more})
    report = world.deliver(world.records())
    assert (report.updated, report.skipped_types) == (1, {"Path": 2})
