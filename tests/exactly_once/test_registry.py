"""The registry: a name keeps its definition, whatever deployments declare; and direct counts, which ask it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from counters_cli import backfill
from counters_cli.backfill import Backfill, Emptying
from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.commit import Committer
from dynamodb_counters import Aggregate, Attr, Count, Counter, Event, InvalidArgumentError, Ranking, Sum, Threshold
from dynamodb_counters._assumptions import LONGEST_INVOCATION
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.layouts import ItemLayout
from dynamodb_counters._registry import COMPLETE, FILLING, STALE, WAITING, entry_key, header_key
from dynamodb_counters.errors import (
    BackfillError,
    CheckpointError,
    RejectedEventError,
    UnavailableError,
    UncountedError,
)
from simulation.faults.hooked_client import HookedClient, once
from simulation.pairs.housekeeping import narrow_pages
from simulation.world import REFRESH, World, interrupt, reach
from tests.exactly_once.test_runs import NUMBER, ORDER, REVENUE, Orders

BIG = replace(NUMBER, where=Attr("price").ge(100))
BY = Aggregate("by", ORDER, by="customer", n=Count())
OVER = Aggregate("over", BY, by=(), customers=Count(), n=Sum("n"))
UNREADABLE = '[{"": "Later"}]'


def process(world: Orders, *declared: Any, before: Callable[[], object]) -> Aggregator:
    """Return a process; something happens before it writes to the registry."""
    return world.process(HookedClient(world.table, once(["transact_write_items"], before)), declared=declared)


def test_a_name_keeps_its_definition_whichever_version_counts() -> None:
    world = Orders(NUMBER, sold=3)
    for declared in (BIG, NUMBER, BIG):
        world.deploy(declared)
        world.sell(2)
        world.sell(1, price=500)
    assert world.read(NUMBER) == ({"orders": 12}, True)
    with pytest.raises(UncountedError, match="declare the new one as 'orders_v2'"):
        world.read(BIG)


def test_a_name_that_nothing_declares_counts_on() -> None:
    world = Orders(NUMBER, REVENUE, sold=2)
    world.deploy(REVENUE)
    world.sell(3)
    assert world.read(NUMBER) == ({"orders": 5}, True)
    assert world.aggregator.handle({}).undeclared == ("orders",)


def test_a_later_name_waits_and_counts_everything_after_its_backfill() -> None:
    world = Orders(NUMBER, sold=3)
    world.deploy(NUMBER, replace(BIG, name="big", sk="BIG", measures={"n": Count()}))
    big = replace(BIG, name="big", sk="BIG", measures={"n": Count()})
    world.sell(2, price=500)
    assert (world.state("big"), world.read(big)) == (WAITING, ({"n": 0}, False))
    world.fill()
    # Records of before the cut come once more.
    world.aggregator = world.process()
    world.deliver_all()
    assert world.read(big) == ({"n": 2}, True)
    world.sell(1, price=900)
    assert (world.state("big"), world.read(big)) == (COMPLETE, ({"n": 3}, True))
    with pytest.raises(BackfillError, match="nothing to backfill"):
        world.fill()


def test_a_complete_name_is_filled_anew() -> None:
    world = Orders(NUMBER, BY, OVER, sold=3)
    world.sell(2, customer="bob")
    world.cancel(1)
    world.settle()
    assert world.read(OVER) == ({"customers": 2, "n": 4}, True)
    world.fill("by")
    world.sell(1, customer="cat")
    assert world.read(BY, customer="ann") == ({"n": 2}, True)
    assert world.read(OVER) == ({"customers": 3, "n": 5}, True)


def test_pages_of_a_name_that_is_filled_anew_are_known_anew() -> None:
    """By the process that counts, and by the one that reads."""
    paged = Aggregate("paged", ORDER, pk="PAGED", sk="{customer}", n=Count(), pages=True)
    address = ItemLayout(paged).address
    # Whoever asks the last page first takes it for lost: the first one is said to have split.
    customers = sorted((f"c{number}" for number in range(8)), key=lambda name: address((name,))[1], reverse=True)
    with narrow_pages(1):
        world = Orders(paged)
        for customer in customers:
            world.sell(customer=customer)
        reader = world.reader()
        assert [reader.get(paged, customer=name).measures for name in customers] == [{"n": 1}] * 8
    world.fill("paged")
    world.clock.advance(REFRESH)
    assert [reader.get(paged, customer=name).measures for name in customers] == [{"n": 1}] * 8
    for customer in customers:
        world.sell(customer=customer)
    assert [world.read(paged, customer=name)[0] for name in customers] == [{"n": 2}] * 8
    assert [reader.get(paged, customer=name).measures for name in customers] == [{"n": 2}] * 8


@pytest.mark.parametrize("ranking", [None, Ranking("n", leaderboard="SHOPS")])
def test_what_was_counted_before_a_name_was_registered_goes_before_it_is_filled(ranking: Ranking | None) -> None:
    sale = Event("sale", pk="SALE#{id}", sk="SALE")
    sales = Aggregate("sales", sale, pk="SHOP#{shop}", sk="SALES", ranking=ranking, n=Count())
    world = Orders(NUMBER, founds=False)
    counters = world.counters
    counters.record_once(sale, {"id": 1, "shop": "a"}, [sales])
    assert counters.retract(sale, {"id": 1, "shop": "a"})
    world.aggregator.handle({})
    world.settle()
    world.deploy(NUMBER, sales)
    counters.accept(sale, {"id": 2, "shop": "a"})
    world.settle()
    with pytest.raises(BackfillError, match="sales was counted in before it was registered: run it again"):
        world.fill()
    world.fill()
    assert world.read(sales, shop="a") == ({"n": 1}, True)


def test_a_dropped_name_is_gone_and_may_come_back_with_another_meaning() -> None:
    world = Orders(NUMBER, REVENUE, sold=3)
    world.deploy(REVENUE)
    world.drop("orders")
    world.clock.advance(REFRESH)
    with pytest.raises(UncountedError):
        world.read(NUMBER)
    assert world.items("orders") == []
    world.deploy(REVENUE, BIG)
    world.sell(1, price=500)
    assert world.read(BIG) == ({"orders": 0}, False)
    world.fill()
    assert world.read(BIG) == ({"orders": 1}, True)


def test_what_something_counts_is_neither_dropped_nor_emptied() -> None:
    world = Orders(BY, OVER, sold=3)
    with pytest.raises(BackfillError, match="'over' counts 'by': drop it, too"):
        world.drop("by")
    with pytest.raises(BackfillError, match="'over' counts 'by'"):
        list(Emptying(table=world.store, now=world.clock).empty(["by"]))
    world.sell(2, customer="bob")
    assert world.read(OVER) == ({"customers": 2, "n": 5}, True)
    world.drop("by", "over")


def test_a_definition_that_a_version_cannot_read_goes_stale_with_what_counts_it_and_the_others_count() -> None:
    world = Orders(NUMBER, BY, OVER, sold=3)
    world.redefine("by", UNREADABLE)
    world.order(99, 10)
    world.clock.advance(REFRESH)
    records = world.records()
    for _ in range(3):
        # A reader may have read that it is complete.
        with pytest.raises(CheckpointError, match="by, over is counted by a definition that this version cannot read"):
            world.deliver(records)
        assert (world.state("by"), world.state("over")) == (STALE, STALE)
        world.clock.advance(59)
    world.clock.advance(10)
    world.deliver_all()
    assert not world.read(OVER)[1]
    assert world.read(NUMBER) == ({"orders": 4}, True)
    world.deploy(NUMBER, OVER, REVENUE)
    assert world.state("revenue") == WAITING


def test_a_counter_is_complete_at_once_and_a_threshold_watches_from_then_on() -> None:
    """It is neither verified nor backfilled."""
    stock = Counter("stock", by="sku")
    world = Orders(NUMBER)
    world.deploy(NUMBER, stock, Threshold("low", stock, at=[5]))
    assert world.state("stock") == COMPLETE
    world.counters.increment(stock, sku="a", amount=7)
    world.deliver_all()
    assert [item["level"]["S"] for item in world.items("_crossing")] == ["5"]
    assert world.missing() == []
    for run in (world.verification(names=["stock"]), world.backfill("stock")):
        with pytest.raises(BackfillError, match=r"invalid name='stock': .*, not a Counter"):
            next(run.steps())


def test_names_that_contradict_what_is_counted_are_not_registered() -> None:
    world = Orders(NUMBER)
    world.deploy(Aggregate("other", ORDER, pk=NUMBER.pk, sk=NUMBER.sk, n=Count()))
    report = world.aggregator.handle({})
    assert "other" not in world.registry.entries
    assert world.aggregator._names.refused.keys() == {"other"} or report.refused
    # Until another process registers it.
    world.drop("orders")
    world.process(declared=[*world.declared]).handle({})
    world.clock.advance(REFRESH)
    assert (world.state("other"), world.aggregator.handle({}).refused) == (WAITING, {})


def test_two_backfills_of_one_name_do_not_disturb_each_other() -> None:
    world = Orders(NUMBER, sold=3)
    world.deploy(NUMBER, REVENUE)
    steps, other = (world.backfill("revenue").steps() for _ in range(2))
    reach(steps, "scanning")
    with pytest.raises(BackfillError, match="fills revenue already"):
        list(other)
    assert world.state("revenue") == FILLING
    list(steps)
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)
    world.sell(customer="bob")
    world.fill("revenue")
    assert world.read(REVENUE, customer="bob") == ({"total": 10}, True)


def test_only_one_process_founds_a_table() -> None:
    world = Orders(NUMBER, founds=False)
    process(world, REVENUE, before=lambda: world.sell(2)).handle({})
    assert (world.state("orders"), world.state("revenue")) == (COMPLETE, WAITING)
    assert world.read(REVENUE, customer="ann") == ({"total": 0}, False)


def test_names_that_contradict_each_other_are_not_registered_at_once() -> None:
    world = Orders(NUMBER)
    other = Aggregate("other", ORDER, pk=REVENUE.pk, sk=REVENUE.sk, n=Count())
    processes = [world.process(declared=(NUMBER, aggregate)) for aggregate in (REVENUE, other)]
    for aggregator in processes:
        aggregator.handle({})
    # Both have told what they declare; of what was dropped, each registers its own.
    world.drop("revenue")
    world.clock.advance(REFRESH)
    process(world, NUMBER, REVENUE, before=lambda: processes[1].handle({})).handle({})
    assert len({"revenue", "other"} & world.registry.entries.keys()) == 1


def test_a_process_learns_of_a_name_that_is_filled() -> None:
    world = Orders(NUMBER, sold=3)
    older = world.aggregator
    world.deploy(NUMBER, REVENUE)
    world.aggregator = older
    world.sell(1)
    # Without its log, the run would wait for ever.
    for step in islice(world.backfill().steps(), 500):
        if step.phase == "scanning":
            world.order(50, 5)
    assert world.state("revenue") == COMPLETE
    assert world.read(REVENUE, customer="ann") == ({"total": 45}, True)


def test_who_says_that_a_name_is_complete_has_all_of_it_while_it_is_emptied() -> None:
    world = Orders(NUMBER, sold=3)
    reader, answers = world.counters, {world.counters.get(NUMBER, {}).complete}
    for _ in world.backfill("orders").steps():
        # A process that has just begun, and a reader that has not.
        world.aggregator = world.process()
        world.sell()
        group = reader.get(NUMBER, {}, consistent=True)
        assert group.measures["orders"] == world.number or not group.complete
        answers.add(group.complete)
    assert answers == {True, False}
    assert world.read(NUMBER) == ({"orders": world.number}, True)


def test_an_update_that_lands_late_is_deleted_with_all_the_others() -> None:
    world = Orders(NUMBER, sold=3)
    world.order(50, 5)
    client = world.freeze(world.records())
    world.settle()
    late, lands = world.clock() + LONGEST_INVOCATION, [client.land]
    for step in world.backfill("orders").steps():
        if lands and (world.clock() > late or step.phase == "scanning"):
            lands.pop()()
    assert not lands
    assert world.read(NUMBER) == ({"orders": 4}, True)


def test_a_stale_mark_is_no_step_back() -> None:
    world = Orders(NUMBER, REVENUE, sold=2)
    world.clock.advance(REFRESH)
    dropping = world.dropping("orders")
    slow = process(world, NUMBER, REVENUE, before=lambda: reach(dropping, WAITING))
    world.redefine("orders", UNREADABLE)
    with pytest.raises(CheckpointError, match="cannot read"):
        slow.handle({})
    assert world.state("orders") == WAITING
    list(dropping)
    assert "orders" not in world.registry.entries


# Slow processes: another one works on the same names meanwhile.


def fail(world: Orders, name: str) -> None:
    with pytest.raises(BackfillError, match="another process works on the same names"):
        list(world.backfill(name).steps())


def test_a_slow_process_deletes_nothing_that_was_counted_since(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Orders(NUMBER, sold=3)
    interrupt(monkeypatch, backfill, "scan_page", lambda: world.fill("orders"))
    fail(world, "orders")
    assert world.read(NUMBER) == ({"orders": 3}, True)


@pytest.mark.parametrize("phase", ["scanning", "complete"])
def test_a_delete_that_lands_late_takes_nothing_that_was_counted_since(
    monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """A laptop sleeps between two deletes, and another process fills the name meanwhile."""
    world = Orders(NUMBER, sold=3)
    world.sell(1, customer="bob")
    if phase == "complete":
        # Its item has no watermark, only a baseline.
        world.fill("orders")
    delete_item = Emptying._delete

    def late(self: Emptying, item: Any) -> None:
        monkeypatch.setattr(Emptying, "_delete", delete_item)
        steps = world.backfill("orders").steps()
        reach(steps, phase)
        world.sell()
        delete_item(self, item)
        assert all(step.phase for step in steps)

    monkeypatch.setattr(Emptying, "_delete", late)
    fail(world, "orders")
    assert world.read(NUMBER) == ({"orders": 5}, True)


def test_a_slow_process_opens_nothing_that_another_has_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Orders(NUMBER, REVENUE, sold=3)

    def then() -> None:
        world.fill("revenue")
        world.sell(2, customer="bob")

    interrupt(monkeypatch, Backfill, "_open", then)
    fail(world, "revenue")
    assert world.read(REVENUE, customer="bob") == ({"total": 20}, True)


@pytest.mark.parametrize(("step", "phase"), [("_open", "deleting"), ("_try_to_open", "stale")])
def test_a_slow_process_opens_nothing_over_a_name_that_another_has_emptied(
    monkeypatch: pytest.MonkeyPatch, step: str, phase: str
) -> None:
    world = Orders(BY, sold=3)
    world.deploy(BY, OVER)
    interrupt(monkeypatch, Backfill, step, lambda: reach(world.backfill("by").steps(), phase))
    fail(world, "over")
    world.sell(1, customer="bob")
    world.fill()
    assert world.read(OVER) == ({"customers": 2, "n": 4}, True)


def test_a_run_that_was_given_up_adds_nothing_to_what_another_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Orders(NUMBER, sold=3)
    world.deploy(NUMBER, REVENUE)
    steps = world.backfill().steps()
    run = reach(steps, "draining").run

    def then() -> None:
        world.backfill(run=run).give_up()
        world.cancel(1, 2, 3)
        world.fill()

    interrupt(monkeypatch, Backfill, "_require_open", then, lambda work: work.state.phase == "adding")
    with pytest.raises(BackfillError, match="is void"):
        list(steps)
    world.sell()
    assert world.read(REVENUE, customer="ann") == ({"total": 10}, True)


@pytest.mark.parametrize(("phase", "names"), [("scanning", ["revenue"]), ("adding", [])])
def test_names_of_a_run_of_which_one_goes_are_stale_and_can_be_filled_again(phase: str, names: list[str]) -> None:
    world = Orders(NUMBER, sold=3)
    world.deploy(NUMBER, REVENUE, BY)
    steps = world.backfill().steps()
    reach(steps, phase)
    if phase == "scanning":
        world.drop("by")
    else:
        world.enter("revenue", STALE)
    with pytest.raises(BackfillError, match="is void"):
        list(steps)
    assert (world.state("revenue"), world.read(REVENUE, customer="ann")[1]) == (STALE, False)
    world.fill(*names)
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)


def test_a_name_over_one_that_is_dropped_while_it_is_filled_goes_stale() -> None:
    world = Orders(NUMBER, BY, sold=3)
    world.deploy(NUMBER, BY, OVER)
    steps = world.backfill("over").steps()
    reach(steps, "adding")
    world.enter("by", STALE, dropped=True)  # By a version that cannot read what `over` counts.
    with pytest.raises(BackfillError, match="is void"):
        list(steps)
    assert (world.state("by"), world.state("over")) == (STALE, STALE)


def test_a_reader_relies_on_what_it_has_read_for_a_minute() -> None:
    world = Orders(NUMBER, sold=2)
    reader = world.counters
    assert reader.get(NUMBER, {}).complete
    world.enter("orders", STALE)
    assert reader.get(NUMBER, {}).complete
    world.clock.advance(60)
    assert not reader.get(NUMBER, {}).complete


def crash(committer: Any, deltas: Any, part: Any, commit: Any = Committer.commit) -> Any:
    if deltas:
        raise TimeoutError
    return commit(committer, deltas, part)


def test_an_old_write_of_a_names_item_puts_no_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Orders(NUMBER, REVENUE)
    world.order(1)
    world.deliver_new()  # The write of the item of `orders` is in the stream, and not delivered.
    world.order(2)
    monkeypatch.setattr(world, "deliver_new", lambda: None)
    steps = world.backfill("orders").steps()
    step = reach(steps, "deleting")
    world.order(3)  # Before `since`, and near it.
    older = world.process()
    older.handle({})  # It relies on this copy for a minute: the name waits.
    while not step.run:
        step = next(steps)
    [(shard, records)] = [item for item in world.skip().items() if item[1]]
    with monkeypatch.context() as context:
        context.setattr(Committer, "commit", crash)
        with pytest.raises(TimeoutError):
            # Knows of the run: puts the cut, logs, and dies before it counts.
            world.deliver(records, shard, world.process())
    world.deliver(records, shard, older)  # The retry, by a process that does not know of the run yet, succeeds.
    monkeypatch.undo()
    list(steps)
    assert world.read(NUMBER) == ({"orders": 3}, True)


def test_a_verification_of_a_name_that_goes_stale_is_void_and_holds_nothing_up() -> None:
    world = Orders(NUMBER, REVENUE, sold=3)
    steps = world.verification().steps()
    reach(steps, "scanning")
    world.fill("orders")
    world.sell(2)
    assert world.read(REVENUE, customer="ann") == ({"total": 50}, True)
    with pytest.raises(BackfillError, match="void"):
        list(steps)


def test_a_name_over_one_that_is_being_dropped_is_not_filled_and_holds_nothing_up() -> None:
    world = Orders(NUMBER, BY, sold=3)
    steps = world.dropping("by", sleep=world.sleep)
    next(steps)
    world.deploy(NUMBER, BY, OVER)
    with pytest.raises(BackfillError, match="'over' counts 'by', which nothing counts, or which is being dropped"):
        world.fill("over")
    list(steps)
    world.sell(2)
    assert world.read(NUMBER) == ({"orders": 5}, True)


def test_a_drop_that_broke_off_ends_although_something_counts_the_name_since() -> None:
    world = Orders(NUMBER, BY, sold=3)
    next(world.dropping("by"))
    world.deploy(NUMBER, BY, OVER)
    world.drop("by")
    # The next batch registers it anew.
    world.sell(1)
    world.fill()
    assert world.read(OVER) == ({"customers": 1, "n": 4}, True)


# Direct counts: what counts without the stream asks the registry, and touches no item of another name

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
ROWS = Aggregate("rows", SALE, pk="ROW#{shop}", sk="ALL", measures={"n": Count()})
TOTAL = Aggregate("total", SHOPS, pk="TOTAL", sk="ALL", measures={"n": Sum("n"), "shops": Count()})
STOCK = Counter("stock", pk="STOCK#{shop}", sk="ALL", n=Count())
NAMES = ("a", "b", "c")


class Market(World):
    """A table whose sales are counted, and its stream."""

    def __init__(self, *declared: Declaration) -> None:
        super().__init__(*declared)
        self._sold = 0
        for _ in range(2):
            self.sell(*NAMES)

    def sell(self, *shops: str) -> None:
        for shop in shops:
            self._sold += 1
            self.counters.accept(SALE, {"id": self._sold, "shop": shop})
        self.settle()

    def counts(self, declared: Aggregate) -> list[Any]:
        return [self.read(declared, shop=name)[0].get("n", 0) for name in NAMES]


def test_a_direct_count_never_changes_an_item_of_another_name() -> None:
    market = Market(SHOPS, TOTAL)
    counters = market.counters
    # Without the registry, nothing says which names are counted.
    for key in (header_key(), *map(entry_key, ("shops", "total"))):
        market.delete(key)
    stock = Counter("stock", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())
    stores = Aggregate("stores", SALE, pk=SHOPS.pk, sk=SHOPS.sk, measures={"n": Count()})
    expected = r"invalid aggregate='stock': expected 'shops', which has written the item of this group"
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.increment(stock, {"shop": "a"})
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.reset(stock, {"shop": "a"})
    with pytest.raises(RejectedEventError, match=r"'stores' cannot count it: an item of its group is of 'shops'"):
        counters.record_once(SALE, {"id": 99, "shop": "a"}, [stores])
    assert market.counts(SHOPS) == [2, 2, 2]


def test_what_the_stream_counts_takes_no_increment() -> None:
    market = Market(SHOPS)
    for declared in (SHOPS, Counter("shops", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())):
        for change in (market.counters.increment, market.counters.reset):
            with pytest.raises(InvalidArgumentError, match=r"expected (a Counter: what the str|the definition)"):
                change(declared, shop="a")  # type: ignore[arg-type]
    assert market.counts(SHOPS) == [2, 2, 2]


def test_a_direct_count_in_a_name_that_nothing_counts_is_refused_until_it_is_registered() -> None:
    market = Market(SHOPS)
    counters, sold = market.counters, {"id": 99, "shop": "d"}
    with pytest.raises(UnavailableError, match="invalid declaration='rows'"):
        counters.record_once(SALE, sold, [ROWS])
    for change in (counters.increment, counters.reset):
        with pytest.raises(UncountedError, match="invalid declaration='stock'"):
            change(STOCK, shop="d")
    market.declared = (SHOPS, ROWS, STOCK)
    market.process().handle({})
    # Whoever was refused does not wait until what it has read is old.
    assert counters.increment(STOCK, shop="d") == {"n": 1}
    assert counters.record_once(SALE, sold, [SHOPS, ROWS]).status == "accepted"
    market.settle()
    market.fill()
    assert market.read(ROWS, shop="d") == ({"n": 1}, True)


def test_a_transaction_leaves_to_the_stream_what_is_not_complete() -> None:
    market = Market(SHOPS)
    market.deploy(SHOPS, ROWS)
    market.settle()
    phases = set[str]()
    for step in market.backfill().steps():
        if step.phase not in phases:
            phases.add(step.phase)
            market.counters.record_once(SALE, {"id": f"in {step.phase}", "shop": "a"}, [SHOPS, ROWS])
    market.settle()
    assert phases >= {"waiting", "scanning", "draining", "adding"}
    for declared in (SHOPS, ROWS):
        assert market.counts(declared) == [2 + len(phases), 2, 2]
    assert market.missing() == []
