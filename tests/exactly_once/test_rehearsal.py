"""A rehearsal says what a backfill of the same declarations would count, group by group, and what is counted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Average,
    Count,
    Distinct,
    Event,
    Extremes,
    Hierarchy,
    Histogram,
    Items,
    Packed,
    Percentiles,
    Sum,
    Window,
)
from dynamodb_counters._backfill import baseline
from dynamodb_counters._backfill import rehearsal as rehearsing
from dynamodb_counters._backfill.baseline import Totals
from dynamodb_counters._backfill.rehearsal import Changed, Rehearsal
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._control.run_items import Run
from dynamodb_counters._control.run_logs import RunLogs
from dynamodb_counters._declarations import Declarable, Declaration, flatten
from dynamodb_counters._declarations.generations import base_name, generation_number
from dynamodb_counters._fold.item_layout import group_items, group_of_item
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import Number, parse_number
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY, HOUR
from dynamodb_counters.errors import BackfillError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, feeds, fill
from tests.exactly_once.test_backfill_source import BUYERS as BUYERS_OF_SHOP
from tests.exactly_once.test_backfill_source import SPENT, Shop

SALE = Event("sale", key="id", version="revision")
CLICK = Event("click", key=("id", "at"), packed=Packed("at"))
CART = Items("cart", where=Attr("worth").exists())
SALES = Aggregate("sales", SALE, by=("shop", "kind"), sold=Count(), taken=Sum("price"))
BY_SHOP = Aggregate("shops", SALES, by="shop", kinds=Count(), taken=Sum("taken"))
RECENT = Window("recent", SALE, by="shop", time="at", measure=Sum("price"), retention=timedelta(days=40))
BUYERS = Distinct("buyers", SALE, by=("shop", "at:day"), member="buyer")
LEVELS = Hierarchy("levels", SALE, by=("shop", "kind"), sold=Count())
SPREAD = Percentiles("spread", SALE, attribute="price", by="shop", error=0.05)
USERS = ActiveMembers("users", CLICK, by="page", member="user", time="at", longest=timedelta(days=9))
CLICKS = Aggregate("clicks", CLICK, by=("page", "at:day"), clicks=Count(), ms=Sum("ms"))
CARTS = Aggregate("carts", CART, by="shop", worth=Sum("worth"))
DEAREST = Extremes("dearest", SALE, attribute="price", by="shop")
BINS = Histogram("price", [0, 50])
DEAR = Attr("price").gt(50)


def _over(sales: Aggregate, **changes: Any) -> tuple[Aggregate, Aggregate]:
    arguments: dict[str, Any] = {"by": "shop", "kinds": Count(), "taken": Sum("taken"), **changes}
    return sales, Aggregate("shops", sales, **arguments)


def _all(shops: Aggregate) -> Aggregate:
    return Aggregate("all", shops, shops=Count(), taken=Sum("taken"))


def _sales(**changes: Any) -> Aggregate:
    arguments: dict[str, Any] = {"by": ("shop", "kind"), "sold": Count(), "taken": Sum("price"), **changes}
    return Aggregate("sales", arguments.pop("source", SALE), **arguments)


def _buyers(**changes: Any) -> Distinct:
    return Distinct("buyers", SALE, **{"by": ("shop", "at:day"), "member": "buyer", **changes})


def _recent(**changes: Any) -> Window:
    arguments = {"by": "shop", "time": "at", "measure": Sum("price"), "retention": timedelta(days=40), **changes}
    return Window("recent", SALE, **arguments)


CASES: dict[str, tuple[tuple[Declarable, ...], tuple[Declarable, ...]]] = {
    "where": ((SALES,), (_sales(where=DEAR),)),
    "where of what another counts": ((SALES, BY_SHOP), _over(_sales(where=DEAR))),
    "another measure": ((SALES,), (_sales(taken=Sum("fee"), mean=Average("price"), sizes=BINS),)),
    "other fields": ((SALES,), (_sales(by=("buyer", "shop", "kind")),)),
    "fewer fields, and what is over them": ((SALES, BY_SHOP), _over(_sales(by="shop"))),
    "fields in another order": ((SALES,), (_sales(by=("kind", "shop")),)),
    "precision": ((RECENT,), (_recent(precision=timedelta(hours=1)),)),
    "filter of a window": ((RECENT,), (_recent(where=DEAR, retention=timedelta(days=20)),)),
    "member": ((BUYERS,), (_buyers(member="kind"),)),
    "retention": ((BUYERS,), (_buyers(retention=timedelta(days=5)),)),
    "levels": ((LEVELS,), (Hierarchy("levels", SALE, by=("shop", "buyer", "kind"), sold=Count(), where=DEAR),)),
    "percentiles": ((SPREAD,), (Percentiles("spread", SALE, attribute="price", by="kind", error=0.2),)),
    "pages": ((SALES, BY_SHOP), _over(_sales(pages=True, where=DEAR), pages=True)),
    "write shards": ((SALES,), (_sales(write_shards=4, where=DEAR),)),
    "active members": ((USERS,), (replace(USERS, longest=timedelta(days=30)),)),
    "packed events": ((CLICKS,), (Aggregate("clicks", CLICK, by="page", clicks=Count(), ms=Sum("ms", cap=40)),)),
    "condition of items": ((CARTS,), (replace(CARTS, source=replace(CART, where=Attr("worth").gt(5))),)),
    "extremes": ((DEAREST,), (replace(DEAREST, by=("kind",)),)),
    "added": ((CLICKS,), (CLICKS, SALES, BY_SHOP)),
    "three levels": ((*_over(SALES), _all(BY_SHOP)), (*_over(_sales(where=DEAR)), _all(_over(_sales(where=DEAR))[1]))),
    "added over what stays": ((SALES,), (SALES, BY_SHOP)),
    "removed": ((SALES, BY_SHOP, CLICKS), (CLICKS,)),
    "renamed": ((SALES,), (Aggregate("sold", SALE, by=("shop", "kind"), sold=Count(), taken=Sum("price")),)),
    "another event": ((SALES,), (_sales(source=Event("sale", key=("id", "shop"), version="revision"), where=DEAR),)),
}  # fmt: skip


class History:
    """Events of a seed, and corrections and retractions of them, in a table that counts them."""

    def __init__(self, declared: Sequence[Declarable], seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.bench = Workbench(flatten(declared), shards=3)
        self.bench.aggregator.handle({})
        self.stream = Stream(self.bench)
        self.written = 0
        self.incremented = next((each for each in flatten(declared) if each == SALES), None)

    def write(self, times: int) -> None:
        rng, counters, now = self.rng, self.bench.counters, self.bench.clock()
        for _ in range(times):
            self.written += 1
            number = rng.randrange(40)
            at = datetime.fromtimestamp(now - rng.randrange(30 * int(DAY)), UTC).isoformat()
            sale: dict[str, Any] = {
                "id": f"s{number}",
                "shop": rng.choice("ab"),
                "kind": rng.choice("xyz"),
                "buyer": rng.choice("mno"),
            }
            sale |= {"price": rng.randrange(100), "fee": rng.randrange(9), "at": at, "revision": self.written}
            cart = {"pk": {"S": f"CART#{number}"}, "sk": {"S": "CART"}, "shop": {"S": rng.choice("ab")}}
            click = {
                "id": f"c{rng.randrange(400)}",
                "at": at,
                "page": rng.choice("pq"),
                "user": rng.choice("uvw"),
                "ms": 7,
            }
            kind = rng.choice(("sale", "sale", "sale", "click", "cart", "gone", "increment"))
            if kind == "sale":
                counters.accept(SALE, sale)
            elif kind == "click":
                counters.accept(CLICK, click)
            elif kind == "cart":
                cart |= {"worth": {"N": str(rng.randrange(20))}}
                self.bench.table.put_item(TableName=self.bench.table.name, Item=cart)
            elif kind == "gone":
                counters.retract(SALE, {"id": f"s{number}"})
            elif self.incremented is not None:
                counters.increment(self.incremented, shop="a", kind="x", amount={"taken": number})
            self.bench.clock.advance(1)

    def settle(self) -> None:
        for _ in range(4):
            self.stream.deliver()
        self.bench.clock.advance(2)

    def backfilled(self, declared: Sequence[Declarable], names: set[str]) -> dict[Any, dict[str, Number]]:
        """The groups that a backfill of some names counts."""
        if not names:
            return {}
        self.bench.deploy(flatten(declared), as_declared=True)
        self.settle()
        fill(self.bench, self.stream, names=names)
        self.settle()
        folded = last_declarations(self.bench.store, BackfillError, folded=True)
        number = max(generation_number(each.name) for each in folded)
        filled = [each for each in folded if generation_number(each.name) == number > 0]
        return {ref: numbers for each in filled for ref, numbers in self.groups(each).items()}

    def groups(self, declared: Declaration) -> dict[Any, dict[str, Number]]:
        """The groups of the items that the table holds."""
        found: dict[Any, dict[str, Number]] = {}
        for item in self.bench.table.items():
            if item.get(TYPE, {}).get("S") == declared.name:
                for one in group_items(declared, item):
                    group = group_of_item(declared, one)
                    sums = found.setdefault((base_name(declared.name), group), {})
                    for name, number in _numbers(one).items():
                        sums[name] = sums.get(name, 0) + number
        return {ref: numbers for ref, sums in found.items() if (numbers := {n: x for n, x in sums.items() if x})}


def _numbers(item: Image) -> dict[str, Number]:
    return {
        name: parse_number(value["N"])
        for name, value in item.items()
        if "N" in value and name[0] != "_" and name != "ttl"
    }


class Recorded(Rehearsal):
    """A rehearsal that remembers the sums of its groups."""

    every: Totals

    def _changes(self, sums: Totals) -> Iterator[Changed]:
        self.__dict__.setdefault("every", {}).update(sums)
        return super()._changes(sums)

    def side(self, number: int) -> dict[Any, dict[str, Number]]:
        found = {}
        for (name, group), numbers in self.every.items():
            left = {each: number for each, number in numbers.items() if number and each[0] != "_"}
            if generation_number(name) == 999_998 + number and left:
                found[base_name(name), group] = left
        return found


def settled(declared: Sequence[Declarable], times: int = 250) -> History:
    history = History(declared)
    history.write(times)
    history.settle()
    return history


def rehearsal(history: History, declared: Sequence[Declarable], **options: Any) -> Recorded:
    bench = history.bench
    client: Any = bench.table
    return Recorded(
        table=Table(bench.table.name, client, clock=bench.clock, sleep=bench.clock.advance),
        feeds=feeds(bench),
        now=bench.clock,
        declared=flatten(declared),
        most=10**6,
        **options,
    )


@pytest.mark.parametrize("case", CASES)
def test_it_comes_to_what_a_backfill_counts(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CASES[case]
    first, second = settled(before), settled(before)
    # So few are held at a time that nothing is worked off at once.
    monkeypatch.setattr(baseline, "MOST_HELD", 40)
    work = rehearsal(first, after, page_items=7, segments=2)
    for step in work.steps():
        # All that is written from the beginning on comes after the cut.
        first.write(3)
        if step.done % 3 == 0:
            first.stream.deliver()
        if step.phase == "scanning" and first.written % 5 == 0:
            first.bench.table.stream.split(first.bench.table.stream.open_shards()[0])
    assert first.written > 270

    old, new = work.side(0), work.side(1)
    for each in flatten(before):
        if any(name == each.name for name, _ in old):
            assert {ref: numbers for ref, numbers in old.items() if ref[0] == each.name} == second.groups(each)
    assert new == second.backfilled(after, {name for name, _ in new})
    assert new or case == "removed"
    # Each number of a group is compared once, however many parts there are.
    found = [(name, attribute, *sorted(group.items())) for name, group, attribute, *_ in work.largest]
    assert len({*found}) == len(found)


@pytest.mark.parametrize(("phase", "steps"), [("waiting", 3), ("scanning", 4), ("draining", 1), ("comparing", 2)])
def test_it_goes_on_after_a_crash(phase: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CASES["where of what another counts"]
    first, second = settled(before), settled(before)
    monkeypatch.setattr(rehearsing, "_ITEMS_OF_PAGE", 3)
    run = ""
    for step in rehearsal(first, after, page_items=9, segments=1).steps():
        run = step.run
        first.write(2)
        steps -= step.phase == phase
        if not steps:
            break
    assert (steps, step.phase) == (0, phase)
    work = rehearsal(first, after, run=run, page_items=9, segments=1)
    for _ in work.steps():
        first.write(2)
    assert work.side(1) == second.backfilled(after, {"sales", "shops"})


def test_a_process_that_was_left_behind_goes_on_where_another_one_has_ended() -> None:
    before, after = CASES["where of what another counts"]
    first, second = settled(before), settled(before)
    behind = rehearsal(first, after, page_items=9, segments=1)
    steps = behind.steps()
    run = next(step.run for step in steps if step.phase == "scanning")
    list(rehearsal(first, after, run=run).steps())
    list(steps)
    assert behind.side(1) == second.backfilled(after, {"sales", "shops"})


def test_it_goes_on_where_it_had_read_a_part_of_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CASES["where"]
    first, second = settled(before), settled(before)
    monkeypatch.setattr(rehearsing, "_AT_A_TIME", 7)
    write, runs, left = RunLogs.write, list[str](), [5]

    def dies(self: RunLogs, run: Run, *more: Any, **named: Any) -> float:
        left[0] -= 1
        runs.append(run.id)
        if not left[0]:
            raise KeyboardInterrupt
        return write(self, run, *more, **named)

    monkeypatch.setattr(RunLogs, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        [first.write(4) for _ in rehearsal(first, after, page_items=9).steps()]  # type: ignore[func-returns-value]
    work = rehearsal(first, after, run=runs[0])
    for _ in work.steps():
        first.write(4)
    assert work.side(1) == second.backfilled(after, {"sales"})


def test_a_shard_that_comes_out_of_one_that_is_read_no_further_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CASES["where"]
    first, second = settled(before), settled(before)
    monkeypatch.setattr(rehearsing, "_AT_A_TIME", 3)
    work = rehearsal(first, after)
    for step in work.steps():
        if step.phase == "draining" and first.written == 250:
            first.bench.clock.advance(100)
            first.write(80)
            for shard in first.bench.table.stream.open_shards():
                first.bench.table.stream.split(shard)
            first.write(80)
    assert work.side(1) == second.backfilled(after, {"sales"})


def test_a_run_of_other_declarations_is_refused() -> None:
    history = History([SALES])
    run = next(iter(rehearsal(history, [_sales(where=DEAR)]).steps())).run
    with pytest.raises(BackfillError, match=f"invalid run='{run}': expected one of the same declarations"):
        rehearsal(history, [_sales(by="shop")], run=run)


def test_a_run_that_the_stream_forgets_is_void() -> None:
    history = settled([SALES], 20)
    steps = rehearsal(history, [_sales(where=DEAR)], segments=1, page_items=5).steps()
    assert any(step.phase == "scanning" for step in steps)
    history.bench.clock.advance(20 * HOUR)
    with pytest.raises(BackfillError, match="it has taken 20 hours, and streams forget after 24"):
        list(steps)


def test_it_compares_groups_that_begin_since_then() -> None:
    history = settled([CLICKS])
    found = {}
    for days in (0, 12):
        begin = (history.bench.clock() // DAY - 12) * DAY if days else 0.0
        work = rehearsal(history, [Aggregate("clicks", CLICK, by=("page", "at:day"), ms=Sum("ms", cap=3))], begin=begin)
        list(work.steps())
        found[days] = {group["at:day"] for _, group, *_ in work.largest}
        assert work.totals["clicks", "ms"][0] == 7 * sum(
            old or 0 for _, _, name, old, *_ in work.largest if name == "clicks"
        )
    first = datetime.fromtimestamp(begin, UTC).date().isoformat()
    assert found[12] == {day for day in found[0] if day >= first}
    assert len(found[0]) > len(found[12]) > 5


def test_the_largest_differences_come_first() -> None:
    history, declared = settled([SALES]), [_sales(taken=Sum("price", cap=60))]
    every, work = rehearsal(history, declared), rehearsal(history, declared)
    work.most = 3
    assert [[*one.steps()][-1].phase for one in (every, work)] == ["complete", "complete"]
    by = {each[-1] for each in every.largest}
    assert [each[-1] for each in work.largest] == sorted(each[-1] for each in every.largest)[:3]
    assert (work.compared, work.differing, max(by) < 0) == (6, len(every.largest), True)
    assert {name for _, _, name, *_ in every.largest} == {"taken"}
    assert all((new or 0) - (old or 0) == by for *_, old, new, by in every.largest)
    assert set(every.totals) == {("sales", "sold"), ("sales", "taken")}
    assert len({*every.totals["sales", "sold"]}) == 1
    assert every.totals["sales", "taken"][0] == sum(each["taken"] for each in history.groups(SALES).values())


def test_a_declaration_added_or_removed_is_all_new_or_all_gone() -> None:
    work = rehearsal(settled([SALES, CLICKS]), [SALES, CARTS])
    list(work.steps())
    assert {(name, old is None, new is None) for name, _, _, old, new, _ in work.largest} == {
        ("clicks", False, True),
        ("carts", True, False),
    }
    assert (work.totals["clicks", "clicks"][1], work.totals["carts", "worth"][0]) == (None, None)


def test_items_of_a_source_table_are_rehearsed_while_they_change() -> None:
    shop = Shop(flatten([SPENT, BUYERS_OF_SHOP]))
    for number in range(20):
        shop.put(number, number + 1, f"customer{number % 3}")
    shop.sleep(2)
    orders, done = [dict(item) for item in shop.orders.items()], replace(SPENT, where=Attr("cents").gt(9))
    parts = flatten([done, BUYERS_OF_SHOP])
    work = Recorded(**shop.runner(), declared=parts, most=10**6, page_items=4)
    for step in work.steps():
        shop.put(step.done % 20, 100, "customer0")
        shop.put(1000 + step.done, 100, "bob")
    wanted: dict[Any, int] = {}
    for item in orders:
        cents, customer = int(item["cents"]["N"]), item["PK"]["S"].removeprefix("CUSTOMER#")
        wanted[customer] = wanted.get(customer, 0) + (cents if cents > 9 else 0)
    assert {ref[1][0]: numbers["cents"] for ref, numbers in work.side(1).items()} == {
        customer: cents for customer, cents in wanted.items() if cents
    }
