"""Backfills and the quarantine: what a backfill replaces waits for nothing, and what it cannot fold waits as ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, Packed, Sum
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._quarantine.redrive_entries import settle
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import NUMBER, ORDER, REVENUE, delete, put, read
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


def test_the_recipe_for_a_full_quarantine_ends_with_none_waiting() -> None:
    counters = delivered(REVENUE)
    bench = counters.bench
    assert entries(counters) == [["revenue"], ["revenue"]]
    bench.deploy([PRICED], as_declared=True)
    counters.stream.deliver()
    assert counters("quarantine", "redrive", "--all", "--reason", "missing").code == 0
    counters.stream.deliver()
    # By the old definition still.
    assert entries(counters) == [["revenue"], ["revenue"]]

    done = counters("backfill", "revenue", "--yes")
    assert (done.code, lines(done.out)[1]) == (0, "2 entries of the quarantine settled")
    assert (entries(counters), entries(counters, "settled")) == ([], [["revenue"], ["revenue"]])
    bench.clock.advance(61)
    assert read(bench, PRICED, customer="ann") == ({"total": 20}, True)

    # The old definition is folded for some time yet.
    put_without_price(bench, 20)
    put(bench, 21, 10)
    counters.stream.deliver()
    bench.clock.advance(HOUR)
    put(bench, 22, 10)
    counters.stream.deliver()
    assert entries(counters) == []
    assert read(bench, PRICED, customer="ann") == ({"total": 40}, True)
    assert counters("verify").code == 0
    assert counters("quarantine", "list", "--state", "settled", "--json").document["entries"]


@pytest.mark.parametrize("knows", [True, False], ids=["that knows", "that does not know yet"])
def test_an_entry_that_comes_after_a_backfill_waits_for_nothing_it_replaced(*, knows: bool) -> None:
    counters = delivered(REVENUE)
    bench = counters.bench
    bench.deploy([PRICED], as_declared=True)
    assert counters("backfill", "--yes").code == 0
    put_without_price(bench, 20)
    if knows:
        bench.clock.advance(61)
    counters.stream.deliver()
    assert entries(counters) == ([] if knows else [["revenue"]])

    # Nothing folds it any more: no redrive brings it back.
    bench.clock.advance(HOUR)
    put(bench, 21, 10)
    counters.stream.deliver()
    counters("quarantine", "redrive", "--all")
    counters.stream.deliver()
    counters.stream.deliver()
    assert entries(counters) == []
    assert read(bench, PRICED, customer="ann") == ({"total": 30}, True)


def test_a_delta_of_what_a_backfill_has_replaced_is_settled() -> None:
    bench = Workbench([REVENUE])
    bench.aggregator.handle({})
    counters = Counters(bench)
    for number in range(2):
        put(bench, number, 10**38 - 1)
        counters.stream.deliver()
    assert entries(counters) == [["revenue"]]
    capped = replace(REVENUE, measures={"total": Sum("price", cap=5)})
    bench.deploy([capped], as_declared=True)
    assert counters("quarantine", "redrive", "--all").code == 0
    counters.stream.deliver()
    assert entries(counters) == [["revenue"]]
    assert counters("backfill", "--yes", "--json").document["settled"] == 1
    assert entries(counters) == []
    bench.clock.advance(61)
    assert read(bench, capped, customer="ann") == ({"total": 10}, True)


def test_two_backfills_that_settle_at_once_settle_their_own_entries() -> None:
    counters = delivered(REVENUE, FEES)
    bench = counters.bench
    settled: list[int] = []

    class Hasty:
        """A client whose first update comes just after another backfill has settled the same entry."""

        def __init__(self) -> None:
            self.is_first = True

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.table, name)

        def update_item(self, **request: Any) -> Any:
            if self.is_first:
                self.is_first = False
                settled.append(settle(bench.store, {"revenue", "fees~2"}))
            return bench.table.update_item(**request)

    client: Any = Hasty()
    settled.append(settle(Table(bench.table.name, client, clock=bench.clock), {"fees", "revenue~1"}))
    assert sum(settled) == 2
    assert entries(counters) == []


def test_entries_are_listed_by_the_name_of_a_composite_and_of_every_generation() -> None:
    buyers = Distinct("buyers", ORDER, pk="BUYERS#{customer}", sk="NUMBER", member="price")
    counters = delivered(*buyers._parts)
    assert len(counters("quarantine", "list", "--declaration", "buyers", "--json").document["entries"]) == 2
    assert entries(counters) == [["buyers-members"]] * 2
    assert counters("quarantine", "list", "--declaration", "revenue", "--json").document["entries"] == []


def test_a_run_that_was_killed_before_it_settled_settles_when_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = delivered(REVENUE)
    counters.bench.deploy([PRICED], as_declared=True)
    with monkeypatch.context() as patched:

        def killed(*_: Any) -> int:
            raise KeyboardInterrupt

        patched.setattr("dynamodb_counters._backfill.backfill.settle", killed)
        told = lines(counters("backfill", "--yes").err)[-2]
    assert entries(counters) == [["revenue"]] * 2
    assert counters("backfill", "--run", told.split()[1], "--json").document["settled"] == 2
    assert entries(counters) == []


# Items that a backfill cannot fold


def put_tagged(bench: Workbench, number: int, tags: str) -> None:
    item = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}, "customer": {"S": "ann"}}
    bench.table.put_item(TableName=bench.table.name, Item={**item, "tags": {"L": [{"S": tag} for tag in tags]}})


def tagged(most: int) -> Aggregate:
    return Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", measures={"orders": Count()}, max_groups=most)


def counts(bench: Workbench) -> list[int]:
    bench.clock.advance(61)
    return [read(bench, tagged(2), **{"tags[]": tag})[0].get("orders", 0) for tag in "abc"]


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
    counters.bench.deploy([NUMBER, tagged(10)], as_declared=True)
    # Not before the generation that the backfill has replaced ends.
    counters.bench.clock.advance(HOUR)
    counters.stream.deliver()


def redrive(counters: Counters) -> None:
    assert counters("quarantine", "redrive", "--all").code == 0
    counters.stream.deliver()
    counters.stream.deliver()


def at_phase(counters: Counters, phase: str, then: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something happen once, when a run is in a phase."""
    enter = Backfill._enter

    def entered(self: Backfill, state: Any, before: str, after: str) -> None:
        enter(self, state, before, after)
        if after == phase and state.phase == phase:
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


@pytest.mark.parametrize("phase", ["scanning", "draining", "withholding"])
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


@pytest.mark.parametrize("phase", ["scanning", "draining", "withholding"])
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


@pytest.mark.parametrize("phase", ["scanning", "draining", "withholding", "adding"])
def test_items_that_a_backfill_cannot_fold_wait_once_though_its_run_is_killed(
    over: Counters, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill() -> None:
        raise KeyboardInterrupt

    at_phase(over, phase, kill, monkeypatch)
    told = lines(over("backfill", "--yes").err)[-2]
    assert over("backfill", "--run", told.split()[1], "--json").document["withheld"] == 1
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
    assert entries(counters) == [["costs~1"]]
    bench.clock.advance(61)
    assert read(bench, costs) == ({"cost": 10}, True)
