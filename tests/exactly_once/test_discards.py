"""Discarded images never count, and are never taken back: the item says so, or both of its images are discarded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Items
from dynamodb_counters._erase.discards import Discards
from dynamodb_counters._quarantine.redrive_entries import list_quarantined
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import InvalidArgumentError
from tests.exactly_once.test_backfill import Live, mend, spoil
from tests.exactly_once.test_waiting_entries import AHEAD, PACKED, SALE, SHOPS, TAGS, VIEW, redrive_all, tags

RAISED = replace(TAGS, max_groups=3)
ORDER = Items("order", where=Attr("customer").exists())
ORDERS = Aggregate("orders", ORDER, pk="TAG#{tags[]}", sk="ORDERS", measures={"orders": Count()}, max_groups=2)


class World(Live):
    """A table whose stream is delivered as it is written."""

    def view(self, event: Event = VIEW, ahead: float = 0, **values: Any) -> dict[str, Any]:
        view = {"url": "/", "at": int(self.bench.clock() + ahead), "id": 1, **values}
        self.bench.counters.accept_many(event, [view])
        self.stream.deliver()
        return view

    def retract(self, view: dict[str, Any]) -> None:
        assert self.bench.counters.retract(VIEW, {name: view[name] for name in ("url", "at", "id")})
        self.stream.deliver()

    def discard_all(self) -> list[bool]:
        discards = Discards(self.bench.store)
        done = [discards.discard(entry) for entry in list_quarantined(self.bench.store, redriven=False)]
        self.stream.deliver()
        return done

    def is_right(self) -> bool:
        return not self.verify().differences

    def waiting(self) -> int:
        return sum(1 for _ in self.bench.counters.quarantined())


def test_a_discarded_event_from_the_future_is_not_taken_back_when_it_is_retracted() -> None:
    world = World(AHEAD)
    view = world.view(ahead=HOUR)
    world.view(id=2)
    assert world.discard_all() == [True]
    world.bench.clock.advance(2 * HOUR)
    assert world.is_right()
    world.retract(view)
    assert world.bench.counters.window(AHEAD, url="/").last(hours=3).count == 1
    assert world.is_right()


@pytest.mark.parametrize("in_place", [True, False])
def test_a_correction_of_a_discarded_item_counts(*, in_place: bool) -> None:
    world = World(ORDERS)
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "ORDER"}}
    order = {**key, "customer": {"S": "ann"}, "tags": {"SS": ["a", "b", "c"]}, "photo": {"B": b"\x00\xff"}}
    table: Any = world.bench.table
    table.put_item(TableName=table.name, Item=order)
    world.stream.deliver()
    assert world.discard_all() == [True]
    mend(world.bench, raised := replace(ORDERS, max_groups=3))
    if in_place:
        table.update_item(
            TableName=table.name,
            Key=key,
            UpdateExpression="SET tags = :two",
            ExpressionAttributeValues={":two": {"SS": ["a", "b"]}},
        )
    else:
        table.put_item(TableName=table.name, Item={**order, "tags": {"SS": ["a", "b"]}})
    world.stream.deliver()
    counts = [world.bench.counters.get(raised, {"tags[]": tag}).measures["orders"] for tag in "abc"]
    assert counts == [1, 1, 0]
    assert world.is_right()
    table.delete_item(TableName=table.name, Key=key)
    world.stream.deliver()
    counts = [world.bench.counters.get(raised, {"tags[]": tag}).measures["orders"] for tag in "abc"]
    assert counts == [0, 0, 0]


def test_entries_that_were_taken_back_already_are_redriven_not_discarded() -> None:
    world = World(TAGS)
    view = world.view(tags=["a", "b", "c"])
    mend(world.bench, RAISED)
    world.retract(view)
    assert tags(world.bench) == [-1, -1, -1]
    with pytest.raises(
        InvalidArgumentError, match="that its item still shows, or whose other side waits, too: redrive it"
    ):
        world.discard_all()
    redrive_all(world.bench, world.stream)
    assert tags(world.bench) == [0, 0, 0]


def test_an_image_that_only_leaves_is_redriven_not_discarded() -> None:
    world = World(RAISED)
    view = world.view(tags=["a", "b", "c"])
    mend(world.bench, TAGS)
    world.retract(view)
    assert world.waiting() == 1
    with pytest.raises(InvalidArgumentError, match="redrive it"):
        world.discard_all()


def test_entries_that_cannot_be_marked_are_not_discarded() -> None:
    packed = World(replace(AHEAD, source=PACKED))
    packed.view(PACKED, ahead=HOUR)
    with pytest.raises(InvalidArgumentError, match="expected an item of its own"):
        packed.discard_all()

    overflow = World(SHOPS)
    spoil(overflow.bench, SHOPS, "taken", 10**38 - 1, shop="a")
    overflow.bench.counters.accept(SALE, {"id": 1, "shop": "a", "price": 2})
    overflow.stream.deliver()
    with pytest.raises(InvalidArgumentError, match="expected an image"):
        overflow.discard_all()


def test_an_item_that_changes_while_it_is_marked_is_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(TAGS)
    world.view(tags=["a", "b", "c"])
    table: Any = world.bench.table
    send = table.transact_write_items

    def late(**request: Any) -> Any:
        [item] = [item for item in table.items() if "tags" in item]
        table.put_item(TableName=table.name, Item={**item, "tags": {"SS": ["d"]}})
        return send(**request)

    monkeypatch.setattr(table, "transact_write_items", late)
    [entry] = world.bench.counters.quarantined()
    assert not Discards(world.bench.store).discard(entry)
    assert world.waiting() == 1
