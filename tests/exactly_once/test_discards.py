"""Discarded entries never count: what cannot be folded counts neither then nor when its item is deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Event
from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._quarantine.quarantine import Quarantined, discard, list_quarantined
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import InvalidArgumentError
from tests.exactly_once.test_backfill import Live, backfill, mend, spoil
from tests.exactly_once.test_waiting_entries import AHEAD, PACKED, SALE, SHOPS, TAGS, VIEW, redrive_all, tags

RAISED = replace(TAGS, max_groups=3)
KINDS = {"plain": VIEW, "packed": PACKED}
OF_EACH_KIND = pytest.mark.parametrize("kind", KINDS)


class World(Live):
    """A table whose stream is delivered as it is written."""

    def view(self, event: Event = VIEW, ahead: float = 0, **values: Any) -> dict[str, Any]:
        view = {"url": "/", "at": int(self.bench.clock() + ahead), "id": 1, **values}
        self.bench.counters.accept_many(event, [view])
        self.stream.deliver()
        return view

    def retract(self, view: dict[str, Any], event: Event = VIEW) -> None:
        assert self.bench.counters.retract(event, {name: view[name] for name in ("url", "at", "id")})
        self.stream.deliver()

    def discard(self, entry: Quarantined) -> bool:
        registry = read_registry(self.bench.store)
        origins = Origins(self.bench.store.name, registry.source or None)
        return discard(self.bench.store, entry, plan_of(registry), origins)

    def discard_all(self) -> list[bool]:
        done = [self.discard(entry) for entry in list_quarantined(self.bench.store, redriven=False)]
        self.stream.deliver()
        return done

    def is_right(self) -> bool:
        return not self.verify().differences

    def waiting(self) -> int:
        return sum(1 for _ in self.bench.counters.quarantined())


@OF_EACH_KIND
def test_a_discarded_event_counts_neither_now_nor_when_it_is_deleted(kind: str) -> None:
    declared = replace(TAGS, source=KINDS[kind])
    world = World(declared)
    view = world.view(KINDS[kind], tags=["a", "b", "c"])
    assert world.discard_all() == [True]
    items = [item for item in world.bench.table.items() if "tags" in item]
    assert not any(name.startswith("_") for item in items for name in item.keys() - {"_type"})
    assert world.is_right()
    world.retract(view, KINDS[kind])
    assert world.discard_all() == [True]
    assert tags(world.bench) == [0, 0, 0]
    assert world.is_right()


@OF_EACH_KIND
def test_an_event_from_the_future_is_not_discarded_while_it_can_be_counted_later(kind: str) -> None:
    """Its deletion would be subtracted, once its time has come."""
    ahead = replace(AHEAD, source=KINDS[kind])
    world = World(ahead)
    view = world.view(KINDS[kind], ahead=HOUR)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="expected one that cannot be counted: redrive it"):
            world.discard_all()
        world.bench.clock.advance(2 * HOUR)
    redrive_all(world.bench, world.stream)
    assert world.bench.counters.window(ahead, url="/").last(timedelta(hours=6)).count == 1
    world.retract(view, KINDS[kind])
    assert world.bench.counters.window(ahead, url="/").last(timedelta(hours=6)).count == 0
    assert world.is_right()


def test_an_entry_that_can_be_counted_by_now_is_redriven_not_discarded() -> None:
    world = World(TAGS)
    view = world.view(tags=["a", "b", "c"])
    mend(world.bench, RAISED)
    world.retract(view)
    assert tags(world.bench) == [-1, -1, -1]
    with pytest.raises(InvalidArgumentError, match="redrive it"):
        world.discard_all()
    redrive_all(world.bench, world.stream)
    assert tags(world.bench) == [0, 0, 0]


def test_a_delta_is_redriven_not_discarded() -> None:
    world = World(SHOPS)
    spoil(world.bench, SHOPS, "taken", 10**38 - 1, shop="a")
    world.bench.counters.accept(SALE, {"id": 1, "shop": "a", "price": 2})
    world.stream.deliver()
    with pytest.raises(InvalidArgumentError, match="redrive it"):
        world.discard_all()


def test_a_backfill_puts_what_was_discarded_into_quarantine_again() -> None:
    world = World(TAGS)
    world.view(tags=["a", "b", "c"])
    assert world.discard_all() == [True]
    world.bench.deploy([TAGS, other := replace(TAGS, name="labels", pk="LABEL#{tags[]}")])
    world.stream.deliver()
    list(backfill(world.bench, world.stream).steps())
    [entry] = world.bench.counters.quarantined()
    assert entry.names == (other.name,)
    assert world.is_right()


def test_code_that_can_count_what_was_discarded_has_a_repair_count_it() -> None:
    world = World(TAGS)
    world.view(tags=["a", "b", "c"])
    assert world.discard_all() == [True]
    mend(world.bench, RAISED)
    world.bench.clock.advance(HOUR)
    verifying = world.verify()
    assert {each.verdict for each in verifying.differences} == {"drifted"}
    assert verifying.repair() == (3, 0)
    assert tags(world.bench) == [1, 1, 1]
    assert world.is_right()
