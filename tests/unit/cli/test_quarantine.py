"""Entries of the quarantine: found by what they say, shown, redriven, given up."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters import _registry as registry
from dynamodb_counters._items.schema import QUARANTINE, TYPE
from dynamodb_counters._quarantine import STATE
from dynamodb_counters._tiers import DAY
from simulation.world import World
from tests.unit.cli.in_process import Done, mistake, run_on

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"n": Count(), "taken": Sum("price")})
TOWNS = Aggregate("towns", SALE, pk="TOWN#{town}", sk="SALES", measures={"n": Count()})


class Sales:
    """Three sales that could not be counted: an old one by both, two by `shops` only."""

    def __init__(self) -> None:
        self.bench = World(SHOPS, TOWNS)
        self.batches: list[list[dict[str, Any]]] = []
        self.sell(id=1, price=1)
        self.bench.clock.advance(DAY)
        self.sell(id=2, town="x", shop="a", price="much")
        self.sell(id=3, town="x", price=3)

    def sell(self, **sale: Any) -> None:
        before = len(self.bench.records())
        self.bench.counters.accept(SALE, sale)
        self.batches.append(self.bench.records()[before:])
        self.bench.deliver(self.batches[-1])

    def run(self, *arguments: str, **outside: Any) -> Done:
        return run_on(self.bench, *arguments, **outside)

    def ids(self, *arguments: str) -> list[str]:
        return [entry["id"] for entry in self.run("quarantine", "list", "--json", *arguments).document["entries"]]

    def states(self) -> list[str]:
        items = self.bench.table.items()
        return sorted(item[STATE]["S"] for item in items if item.get(TYPE) == {"S": QUARANTINE})


@pytest.fixture
def world() -> Sales:
    return Sales()


def test_entries_are_found_by_reason(world: Sales) -> None:
    first, second, third = world.ids()
    assert world.ids("--reason", "'SHOP'") == [first, third]
    assert world.ids("--reason", "towns: ") == [first]
    assert world.ids("--reason", "NOT A NUMBER") == [second]
    assert world.run("quarantine", "list", first, "--json").document["entries"][0]["declarations"] == ["shops", "towns"]


def test_redriven_entries_are_sent_through_the_stream_once(world: Sales) -> None:
    first, second, third = world.ids()
    looked = world.run("quarantine", "redrive", "--all", "--dry-run", "--json")
    assert looked.document == {"would be redriven": [first, second, third]}
    done = world.run("quarantine", "redrive", first, second, "--json")
    assert (done.code, done.document) == (0, {"redriven": [first, second], "refused": {}})
    assert world.states() == ["released", "released", "waiting"]
    assert world.ids() == [third]
    assert world.ids("--state", "redriven") == [first, second]
    again = world.run("quarantine", "redrive", first)
    assert (again.code, again.out) == (0, "0 entries would be redriven\n")


def test_records_that_may_have_been_counted_are_asked_about(world: Sales) -> None:
    for item in [*world.bench.table.items()]:
        if item.get(TYPE) == {"S": QUARANTINE} and "SALE#1" in str(item):
            reason = {"reason": {"S": "it may have been counted"}}
            world.bench.table.put_item(TableName=world.bench.table.name, Item={**item, **reason})
    assert "no terminal to ask at" in mistake(world.run("quarantine", "redrive", "--all"))
    refuse = Mock(return_value=False)
    assert world.run("quarantine", "redrive", "--all", answer=refuse).code == 1
    refuse.assert_called_once_with("1 of 3 records may have been counted already. Redrive them, too?")
    assert world.states() == ["waiting"] * 3


def test_nothing_is_discarded_by_a_version_that_cannot_read_all_definitions(
    world: Sales, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_decoded", lambda _: None)
    assert "this version cannot read" in mistake(world.run("quarantine", "discard", "--all", "--yes"))
    assert world.ids("--state", "discarded") == []


def test_discarded_entries_never_wait_again(world: Sales) -> None:
    first, second, third = world.ids()
    assert world.run("quarantine", "discard", second).code == 2, "no question was asked"
    assert world.run("quarantine", "discard", second, answer=lambda _: False).code == 1
    assert world.run("quarantine", "discard", second, "--dry-run").code == 0
    assert world.states() == ["waiting"] * 3
    done = world.run("quarantine", "discard", second, third, "--yes")
    assert (done.code, done.out) == (0, "2 discarded\n")
    for batch in world.batches[1:]:
        world.bench.deliver(batch, by=world.bench.process())
    assert world.ids() == [first]
    assert world.ids("--state", "discarded") == [second, third]
    assert world.run("quarantine", "list", third, "--json").document["entries"][0]["state"] == "discarded"
    assert [entry.key for entry in world.bench.counters.quarantined(redriven=True)] != []
    assert world.run("quarantine", "redrive", second, "--json").document == {"would be redriven": []}


def test_an_entry_that_changes_meanwhile_is_reported(world: Sales) -> None:
    first, second, _ = world.ids()

    def somebody_else(_: str) -> bool:
        world.run("quarantine", "redrive", first)
        return True

    done = world.run("quarantine", "discard", first, second, answer=somebody_else)
    assert (done.code, done.out) == (1, "1 discarded; 1 refused\n")
    assert done.err == f"{first}: it has changed meanwhile\n"


def test_a_delta_is_shown_with_its_group() -> None:
    bench = World(SHOPS)
    for number in range(2):
        bench.counters.accept(SALE, {"id": number, "shop": "a", "price": 10**38 - 1})
    bench.deliver(bench.records())
    [entry] = bench.counters.quarantined()
    assert "numbers" in entry.content
    [row] = run_on(bench, "quarantine", "list", "--json").document["entries"]
    assert row["declarations"] == ["shops"]
    assert (row["item"], row["content"]["group"]) == ("a", ["a"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("redrive",), "which entries?"),
        (("discard",), "which entries?"),
        (("list", "beef"), "no entry of the quarantine has the id 'beef'"),
        (("list", "--state", "x"), "'x' is not one of"),
    ],
)
def test_wrong_input_is_one_line(world: Sales, arguments: tuple[str, ...], message: str) -> None:
    assert message in mistake(world.run("quarantine", *arguments))
