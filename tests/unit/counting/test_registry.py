"""The registry: what it says of a name, who may change it, and what processes make of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from counters_lambda.counting.counted_names import CountedNames, plan_of
from dynamodb_counters import Aggregate, Attr, Count, Counter, Event, Sum, Threshold, UncountedError, Window
from dynamodb_counters._assumptions import FRESH, MOST_NAMES
from dynamodb_counters._declarations import Declaration, flatten
from dynamodb_counters._declarations.codec import decode, definition, encode, same_definition
from dynamodb_counters._fold.records import Change
from dynamodb_counters._registry import (
    COMPLETE,
    FILLING,
    STALE,
    WAITING,
    Entry,
    NameStates,
    Registry,
    Run,
    State,
    entries_of,
    write_registry,
)
from dynamodb_counters.errors import CheckpointError
from simulation.world import World
from tests.unit.fold.streams import image, record

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, by="shop", sales=Count(), taken=Sum("price"))
OVER = Aggregate("over", SHOPS, shops=Count())
HOURS = Window("hours", SALE, by="shop", time="at")
STOCK = Counter("stock", by="sku")
MANY = Threshold("many", SHOPS, at=[5], measure="sales")
SHOP = {"shop": "a"}
LATER = '[{"": "Later"}]'
"""A definition of a later version."""


def registry_of(*declared: Any, state: State = COMPLETE, since: int = 0) -> Registry:
    entries = {
        entry.name: replace(entry, at=7, since=since) if entry.watches else replace(entry, at=7, state=state)
        for entry in entries_of(flatten(declared))
    }
    return Registry(entries=entries)


@pytest.mark.parametrize(
    "entry",
    [
        Entry("shops", encode((SHOPS,)), COMPLETE),
        Entry("shops", encode((SHOPS,)), STALE, 1.5, 3, "b1", dropped=True, fresh=True).entering(FILLING, 2.5),
        *entries_of(flatten([SHOPS, MANY])),
    ],
)
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert Entry.of(entry.item()) == entry


def test_a_definition_that_cannot_be_read_is_none_and_nothing_folds_it() -> None:
    registry = registry_of(SHOPS, HOURS, MANY)
    spoiled = {name: replace(registry.entries[name], definition=LATER) for name in ("hours", "threshold many")}
    registry = Registry(entries={**registry.entries, **spoiled})
    assert registry.entries["hours"].declaration is None
    assert registry.entries["threshold many"].threshold is None
    assert registry.names.keys() == {"shops", "hours"}
    assert registry.declarations == (SHOPS,)
    assert plan_of(registry).programs.keys() == {"shops"}
    assert plan_of(registry).armed == {}


def test_a_change_of_what_is_not_as_it_was_read_is_refused_with_all_that_goes_with_it() -> None:
    world = World(SHOPS, HOURS)
    before = world.registry
    world.enter("shops", STALE)
    after = world.registry
    hours, shops = before.entries["hours"], before.entries["shops"]
    for changed in ((shops, None), (shops, shops.entering(WAITING, 9))):
        assert not write_registry(world.store, before, [(hours, hours.entering(STALE, 9)), changed])
    assert not write_registry(world.store, before, [(None, hours)])
    assert world.registry == after


def test_a_first_deployment_has_a_limit_of_names_and_a_later_one_has_none() -> None:
    many = [replace(SHOPS, name=f"shops{number}", pk=f"S{number}#{{shop}}") for number in range(MOST_NAMES + 2)]
    with pytest.raises(CheckpointError, match=f"at most {MOST_NAMES} names, not {MOST_NAMES + 2}"):
        World(*many)
    world = World(many[0])
    for _ in range(2):
        # So many at once.
        world.deploy(*many)
    assert len(world.registry.entries) == MOST_NAMES + 2


def test_names_that_are_filled_together_are_a_run_that_scans_what_none_of_them_counts() -> None:
    entries = registry_of(SHOPS, OVER, HOURS).entries.values()
    filling = [entry.entering(FILLING, 8, since=9, run="b1") for entry in entries]
    [run] = Registry(entries={entry.name: entry for entry in filling}).backfills
    assert run == Run("b1", "backfill", 9, ("hours", "shops"))


def test_a_plan_has_what_counts_with_the_thresholds_that_watch_it() -> None:
    registry = registry_of(SHOPS, HOURS, STOCK, MANY, since=9)
    waiting = registry.entries["hours"].entering(WAITING, 8)
    registry = Registry(entries={**registry.entries, "hours": waiting})
    plan = plan_of(registry)
    assert plan.programs.keys() == {"shops", "stock"}
    [watched] = plan.armed.values()
    assert [threshold.name for threshold in watched.declaration._thresholds] == ["many"]  # type: ignore[union-attr]
    assert plan_of(registry, frozenset({"shops"})).programs.keys() == {"stock"}
    dropped = replace(registry.entries["threshold many"], dropped=True)
    assert plan_of(Registry(entries={**registry.entries, dropped.name: dropped})).armed == {}


def test_each_change_is_in_one_portion_of_the_names_whose_cut_it_is_past(monkeypatch: pytest.MonkeyPatch) -> None:
    names = CountedNames(World(SHOPS, founds=False).store, ())
    entries = registry_of(SHOPS, HOURS, STOCK).entries
    filled = {name: replace(entries[name], run=run, since=5) for name, run in (("shops", "b1"), ("hours", "b2"))}
    names.registry = Registry(entries={**entries, **filled})
    cuts = {"b1": f"{2:040}", "b2": f"{4:040}"}
    monkeypatch.setattr(names._logs, "cut", lambda run, *_: cuts[run.id])
    changes = [Change(record(number, image("sale"), created=9)) for number in range(1, 6)]
    portions, actual = names.portions("shard", changes)
    assert actual == cuts
    assert [change for _, some in portions for change in some] == changes
    counted = [({*plan.programs}, len(some)) for plan, some in portions]
    assert counted == [({"stock"}, 1), ({"stock", "shops"}, 2), ({"stock", "shops", "hours"}, 2)]


def test_a_reader_sees_a_name_as_soon_as_it_is_registered() -> None:
    world = World(SHOPS)
    states = NameStates(world.store)
    with pytest.raises(UncountedError):
        states.complete(HOURS)
    assert write_registry(world.store, world.registry, [(None, registry_of(HOURS).entries["hours"])])
    assert states.complete(HOURS)


@pytest.mark.parametrize(
    ("name", "advice"), [("shops", "shops_v2"), ("shops_v2", "shops_v3"), ("a_v9", "a_v10"), ("_v1x", "_v1x_v2")]
)
def test_a_changed_definition_is_refused_with_the_name_to_take(name: str, advice: str) -> None:
    assert f"declare the new one as {advice!r}, deploy, and run `counters backfill {advice}`" in str(
        UncountedError(name, is_changed=True)
    )


def test_a_reader_of_another_definition_is_refused_and_one_of_an_unreadable_one_is_not() -> None:
    world = World(SHOPS)
    with pytest.raises(UncountedError, match="'shops'"):
        world.counters.get(replace(SHOPS, on_expiry="subtract"), SHOP)
    world.enter("shops", COMPLETE, definition=LATER)
    world.clock.advance(FRESH)
    assert world.counters.get(SHOPS, SHOP).complete


def test_a_definition_lacks_thresholds_and_what_its_event_only_asks_of_writers() -> None:
    asking = replace(SALE, retention=timedelta(days=7), attributes={"id": int, "shop": str, "price": int})
    shops = replace(SHOPS, source=asking)
    watched: Any = flatten([shops, replace(MANY, aggregate=shops)])[0]
    assert definition(watched) == SHOPS
    assert definition(replace(OVER, source=watched)) == OVER
    assert same_definition(watched, SHOPS)
    [read] = decode(encode((watched,)))
    assert read._thresholds == watched._thresholds != ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "other",
    [
        replace(SHOPS, where=Attr("price").eq(1)),
        replace(SHOPS, on_expiry="subtract"),
        replace(SHOPS, measures={"sales": Count()}),
        replace(SHOPS, source=replace(SALE, sk="S")),
        replace(SHOPS, source=Event("order", pk="SALE#{id}", sk="SALE")),
    ],
)
def test_what_counts_otherwise_is_another_definition(other: Aggregate) -> None:
    is_of_one_event = other.source.name == "sale" and other.source != SALE
    assert same_definition(SHOPS, other) == is_of_one_event


def test_the_order_of_measures_does_not_matter_but_true_is_not_1() -> None:
    turned = replace(SHOPS, measures=dict(reversed([*SHOPS.measures.items()])))
    assert same_definition(SHOPS, turned)
    paid: list[Declaration] = [replace(SHOPS, where=Attr("paid").eq(value)) for value in (True, 1)]
    assert not same_definition(*paid)
    assert same_definition(paid[0], replace(SHOPS, where=Attr("paid").eq(True)))


def test_a_name_over_one_that_is_not_folded_is_not_folded_either() -> None:
    registry = registry_of(SHOPS, OVER)
    waiting = replace(registry.entries["shops"], state=WAITING)
    assert Registry(entries={**registry.entries, "shops": waiting}).counting == ()
    assert not plan_of(registry, frozenset(("shops",))).programs
