"""Backfills and the quarantine: what a backfill has met waits for nothing, and what it cannot fold waits as ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Packed, Sum
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.feeds import Shard
from dynamodb_counters._backfill.runner import Lineage, withheld
from dynamodb_counters._control.run_items import RunRow
from dynamodb_counters._quarantine.quarantine import confirm
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import NUMBER, ORDER, REVENUE, delete, mend, put, read
from tests.exactly_once.test_run_commands import Counters, lines

PRICED = replace(REVENUE, where=Attr("price").exists())
FEES = Aggregate("fees", ORDER, pk="FEES", sk="ALL", measures={"fees": Sum("price"), "orders": Count()})


def put_without_price(bench: Workbench, number: int) -> None:
    item = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}, "customer": {"S": "ann"}}
    bench.table.put_item(TableName=bench.table.name, Item=item)


def delivered(*declared: Any) -> Counters:
    """Two orders, and two without a price, which wait in quarantine."""
    bench = Workbench(declared)
    bench.aggregator.handle({})
    counters = Counters(bench)
    for number in range(2):
        put(bench, number, 10)
        put_without_price(bench, 10 + number)
    counters.stream.deliver()
    return counters


def entries(counters: Counters, state: str = "waiting") -> list[list[str]]:
    """The declarations that each entry of a state waits for."""
    listed = counters("quarantine", "list", "--state", state, "--json").document["entries"]
    return sorted(entry["declarations"] for entry in listed)


def test_what_waits_for_records_of_before_a_cut_counts_in_other_names_only() -> None:
    counters = delivered(REVENUE, FEES)
    bench = counters.bench
    assert entries(counters) == [["fees", "revenue"]] * 2
    done = counters("backfill", "revenue", "--yes")
    # What the scan has met of the same items waits for it instead.
    assert "; 2 entries wait in quarantine" in done.out
    mend(bench, PRICED, replace(FEES, where=Attr("price").exists()))
    assert counters("backfill", "revenue", "--yes", "--json").document["withheld"] == 0
    mend(bench, replace(REVENUE, measures={"total": Count()}), replace(FEES, measures={"orders": Count()}))
    redrive(counters)
    assert entries(counters) == []
    assert read(bench, replace(REVENUE, measures={"total": Count()}), customer="ann") == ({"total": 20}, True)
    assert read(bench, replace(FEES, measures={"orders": Count()})) == ({"orders": 4}, True)


def test_a_sum_that_its_group_cannot_take_waits_while_the_others_are_filled() -> None:
    counters = Counters(bench := Workbench([NUMBER]))
    bench.aggregator.handle({})
    for number, price in enumerate((10**38 - 1, 10**38 - 1, 10)):
        put(bench, number, price, "bob" if price == 10 else "ann")
    bench.deploy([NUMBER, REVENUE])
    counters.stream.deliver()
    assert counters("backfill", "--yes", "--json").document["withheld"] == 1
    assert entries(counters) == [["revenue"]]
    bench.clock.advance(61)
    assert read(bench, REVENUE, customer="bob") == ({"total": 10}, True)


def test_a_delta_of_what_a_backfill_has_replaced_is_not_counted() -> None:
    bench = Workbench([REVENUE])
    bench.aggregator.handle({})
    counters = Counters(bench)
    for number in range(2):
        put(bench, number, 10**38 - 1)
        counters.stream.deliver()
    capped = replace(REVENUE, measures={"total": Sum("price", cap=5)})
    mend(bench, capped)
    assert counters("backfill", "revenue", "--yes").code == 0
    assert entries(counters) == [["revenue"]]
    redrive(counters)
    assert entries(counters) == []
    bench.clock.advance(61)
    assert read(bench, capped, customer="ann") == ({"total": 10}, True)


def put_tagged(bench: Workbench, number: int, tags: str) -> None:
    item = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}, "customer": {"S": "ann"}}
    bench.table.put_item(TableName=bench.table.name, Item={**item, "tags": {"L": [{"S": tag} for tag in tags]}})


def tagged(most: int) -> Aggregate:
    return Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", measures={"orders": Count()}, max_groups=most)


def counts(bench: Workbench) -> list[int]:
    bench.clock.advance(61)
    return [read(bench, tagged(10), **{"tags[]": tag})[0].get("orders", 0) for tag in "abc"]


@pytest.fixture
def over() -> Counters:
    """Two orders from before the aggregate, one of which has more tags than it takes."""
    bench = Workbench([NUMBER])
    put_tagged(bench, 1, "a")
    put_tagged(bench, 2, "abc")
    bench.deliver_all()
    bench.deploy([NUMBER, tagged(2)])
    counters = Counters(bench)
    counters.stream.deliver()
    return counters


def raise_limit(counters: Counters) -> None:
    mend(counters.bench, NUMBER, tagged(10))
    counters.stream.deliver()


def redrive(counters: Counters) -> None:
    assert counters("quarantine", "redrive", "--all").code == 0
    counters.stream.deliver()
    counters.stream.deliver()


def at_phase(counters: Counters, phase: str, then: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something happen once, when a run is in a phase."""
    enter = Backfill._enter

    def entered(self: Backfill, before: str, after: str) -> None:
        enter(self, before, after)
        if after == phase and self.state.phase == phase:
            monkeypatch.setattr(Backfill, "_enter", enter)
            then()
            counters.stream.deliver()

    monkeypatch.setattr(Backfill, "_enter", entered)


def redriven_after(counters: Counters, phase: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts and entries once what a backfill has withheld is redriven, with a change in one of its phases."""
    at_phase(counters, phase, change, monkeypatch)
    assert counters("backfill", "--yes", "--json").document["withheld"] == 1
    raise_limit(counters)
    redrive(counters)
    return counts(counters.bench), entries(counters)


@pytest.mark.parametrize("phase", ["scanning", "draining", "adding"])
@pytest.mark.parametrize("becomes", ["", "a", "bcd"], ids=["deleted", "mended", "as bad"])
def test_an_item_that_changes_meanwhile_waits_as_it_was_at_the_cut(
    over: Counters, phase: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        delete(over.bench, 2)
        if becomes:
            put_tagged(over.bench, 2, becomes)

    assert redriven_after(over, phase, change, monkeypatch) == (
        [1 + ("a" in becomes), "b" in becomes, "c" in becomes],
        [],
    )


@pytest.mark.parametrize("phase", ["scanning", "draining", "adding"])
def test_an_item_that_goes_bad_meanwhile_waits_once(
    over: Counters, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        put_tagged(over.bench, 1, "abc")
        put_tagged(over.bench, 3, "abc")
        over.stream.deliver()
        put_tagged(over.bench, 1, "bca")
        over.stream.deliver()

    assert redriven_after(over, phase, change, monkeypatch) == ([3, 3, 3], [])


@pytest.mark.parametrize("phase", ["scanning", "draining", "adding"])
def test_items_that_a_backfill_cannot_fold_wait_once_though_its_run_is_killed(
    over: Counters, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill() -> None:
        raise KeyboardInterrupt

    at_phase(over, phase, kill, monkeypatch)
    told = lines(over("backfill", "--yes").err)[-2]
    assert over("backfill", "--run", told.split()[1], "--json").document["withheld"] == 1
    raise_limit(over)
    redrive(over)
    assert (counts(over.bench), entries(over)) == ([2, 1, 1], [])


def test_events_of_a_chunk_that_a_backfill_cannot_fold_wait_one_by_one() -> None:
    click = Event("click", pk="AD#{ad}", sk="T#{time}#C#{client}", packed=Packed(time="time"))
    clicks = Aggregate("clicks", click, pk="AD#{ad}", sk="ALL", measures={"clicks": Count()})
    costs = Aggregate("costs", click, pk="COSTS", sk="ALL", measures={"cost": Sum("cost")})
    bench = Workbench([clicks])
    time = datetime.fromtimestamp(bench.clock(), UTC).isoformat()
    bench.counters.accept_many(
        click, [{"ad": "a", "time": time, "client": str(n), **({"cost": 5} if n else {})} for n in range(3)]
    )
    bench.deliver_all()
    bench.deploy([clicks, costs])
    counters = Counters(bench)
    counters.stream.deliver()
    assert counters("backfill", "--yes", "--json").document["withheld"] == 1
    assert entries(counters) == [["costs"]]
    bench.clock.advance(61)
    assert read(bench, costs) == ({"cost": 10}, True)


def test_an_image_waits_once_though_the_run_learns_of_a_change_of_its_item_afterward() -> None:
    bench = Workbench([])
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
        bench.table.put_item(TableName=bench.table.name, Item={**key, "state": {"S": "provisional"}})
    # The process that knew of no change dies after the first of two.
    assert confirm(bench.store, *early[0])
    assert [confirm(bench.store, *one) for one in late] == [False, True]
