"""Backfills and the quarantine: what a backfill has met waits for nothing, and what it cannot fold waits as ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Packed, Sum
from dynamodb_counters._backfill.feeds import Shard
from dynamodb_counters._backfill.runner import Lineage, withheld
from dynamodb_counters._control.run_items import RunRow
from dynamodb_counters._quarantine.quarantine import confirm
from simulation.world import World, reach
from tests.exactly_once.test_backfill import NUMBER, ORDER, REVENUE, Orders
from tests.exactly_once.test_run_commands import command

PRICED = replace(REVENUE, where=Attr("price").exists())
FEES = Aggregate("fees", ORDER, pk="FEES", sk="ALL", measures={"fees": Sum("price"), "orders": Count()})


COUNTED = (replace(REVENUE, measures={"total": Count()}), replace(FEES, measures={"orders": Count()}))
TAGS = Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", measures={"orders": Count()}, max_groups=2)
PHASES = pytest.mark.parametrize("phase", ["scanning", "draining", "adding"])


def entries(world: World) -> list[list[str]]:
    """The declarations that each entry waits for."""
    listed = command(world, "quarantine", "list", "--json").document["entries"]
    return sorted(entry["declarations"] for entry in listed)


def redrive(world: World) -> None:
    assert command(world, "quarantine", "redrive", "--all").code == 0
    world.settle()
    assert entries(world) == []


def test_what_waits_for_records_of_before_a_cut_counts_in_other_names_only() -> None:
    world = Orders(REVENUE, FEES)
    for number in range(2):
        world.order(number)
        world.put(f"ORDER#{10 + number}", "ORDER", customer="ann")
    world.deliver_new()
    assert entries(world) == [["fees", "revenue"]] * 2
    # What the scan has met of the same items waits for it instead.
    assert "; 2 entries wait in quarantine" in command(world, "backfill", "revenue", "--yes").out
    world.mend(PRICED, replace(FEES, where=Attr("price").exists()))
    assert command(world, "backfill", "revenue", "--yes", "--json").document["withheld"] == 0
    world.mend(*COUNTED)
    redrive(world)
    assert world.read(COUNTED[0], customer="ann") == ({"total": 20}, True)
    assert world.read(COUNTED[1]) == ({"orders": 4}, True)


def test_a_sum_that_its_group_cannot_take_waits_while_the_others_are_filled() -> None:
    world = Orders(NUMBER)
    for number, price in enumerate((10**38 - 1, 10**38 - 1, 10)):
        world.order(number, price, "bob" if price == 10 else "ann")
    world.deploy(NUMBER, REVENUE)
    world.deliver_new()
    world.fill()
    assert entries(world) == [["revenue"]]
    assert world.read(REVENUE, customer="bob") == ({"total": 10}, True)


def test_a_delta_of_what_a_backfill_has_replaced_is_not_counted() -> None:
    world = Orders(REVENUE)
    for _ in range(2):
        world.sell(1, 10**38 - 1)
    world.mend(capped := replace(REVENUE, measures={"total": Sum("price", cap=5)}))
    world.fill("revenue")
    assert entries(world) == [["revenue"]]
    redrive(world)
    assert world.read(capped, customer="ann") == ({"total": 10}, True)


class Tagged(World):
    """Two orders from before an aggregate, one of which has more tags than it takes."""

    def __init__(self) -> None:
        super().__init__(NUMBER)
        self.tag(1, "a")
        self.tag(2, "abc")
        self.deploy(NUMBER, TAGS)
        self.deliver_new()

    def tag(self, number: int, tags: str) -> None:
        self.put(f"ORDER#{number}", "ORDER", customer="ann", tags=[*tags])

    def fill_with(self, phase: str, change: Callable[[], object], **options: Any) -> None:
        """Fill, with a change in one of the phases; then redrive what was withheld, as more tags are taken."""
        changes, filling = [change], self.backfill(**options)
        for step in filling.steps():
            if step.phase == phase and changes:
                changes.pop()()
                self.deliver_new()
        assert filling.withheld == 1
        self.mend(NUMBER, raised := replace(TAGS, max_groups=10))
        redrive(self)
        self.counts = [self.read(raised, **{"tags[]": tag})[0]["orders"] for tag in "abc"]


@PHASES
@pytest.mark.parametrize("becomes", ["", "a", "bcd"], ids=["deleted", "mended", "as bad"])
def test_an_item_that_changes_meanwhile_waits_as_it_was_at_the_cut(phase: str, becomes: str) -> None:
    world = Tagged()

    def change() -> None:
        world.table.delete_item(TableName=world.name, Key={"pk": {"S": "ORDER#2"}, "sk": {"S": "ORDER"}})
        if becomes:
            world.tag(2, becomes)

    world.fill_with(phase, change)
    assert world.counts == [1 + ("a" in becomes), "b" in becomes, "c" in becomes]


@PHASES
def test_an_item_that_goes_bad_meanwhile_waits_once(phase: str) -> None:
    world = Tagged()

    def change() -> None:
        world.tag(1, "abc")
        world.tag(3, "abc")
        world.deliver_new()
        world.tag(1, "bca")

    world.fill_with(phase, change)
    assert world.counts == [3, 3, 3]


@PHASES
def test_items_that_a_backfill_cannot_fold_wait_once_though_its_run_is_killed(phase: str) -> None:
    world = Tagged()
    run = reach(world.backfill().steps(), phase).run
    world.fill_with("", bool, run=run)
    assert world.counts == [2, 1, 1]


def test_events_of_a_chunk_that_a_backfill_cannot_fold_wait_one_by_one() -> None:
    click = Event("click", pk="AD#{ad}", sk="T#{time}#C#{client}", packed=Packed(time="time"))
    clicks = Aggregate("clicks", click, pk="AD#{ad}", sk="ALL", measures={"clicks": Count()})
    costs = Aggregate("costs", click, pk="COSTS", sk="ALL", measures={"cost": Sum("cost")})
    world = World(clicks)
    time = datetime.fromtimestamp(world.clock(), UTC).isoformat()
    world.accept(click, *({"ad": "a", "time": time, "client": str(n), **({"cost": 5} if n else {})} for n in range(3)))
    world.deploy(clicks, costs)
    world.deliver_new()
    world.fill()
    assert entries(world) == [["costs"]]
    assert world.read(costs) == ({"cost": 10}, True)


def test_an_image_waits_once_though_the_run_learns_of_a_change_of_its_item_afterward() -> None:
    world = World()
    lineage = Lineage()
    lineage.meet([Shard("shard", "", is_open=True)])
    scanned = [RunRow("d1", {}, ("1#d1#NewImage#1", "1#d1#NewImage#2"))]
    logged: list[tuple[str, RunRow]] = []
    pages: Any = SimpleNamespace(
        scanned=lambda: scanned, logged=lambda: logged, lineage=lineage, run=SimpleNamespace(id="1r0")
    )
    early = [*withheld(pages)]
    logged.append(("shard", RunRow("d1", {}, ("7#1r0#NewImage#1", "7#1r0#NewImage#2"), f"{7:040}")))
    late = [*withheld(pages)]
    for key, _ in (*early, *late):
        world.write({**key, "state": {"S": "provisional"}})
    # The process that knew of no change dies after the first of two.
    assert confirm(world.store, *early[0])
    assert [confirm(world.store, *one) for one in late] == [False, True]
