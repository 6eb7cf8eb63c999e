"""The registry: a name keeps its definition, whatever deployments declare, and is complete when nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Counter, Counters, Event, Ranking, Sum, Threshold
from dynamodb_counters._assumptions import LONGEST_INVOCATION
from dynamodb_counters._backfill.backfill import Backfill, Dropping, Emptying
from dynamodb_counters._backfill.feeds import scan_page
from dynamodb_counters._backfill.runner import Progress
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._commit.commit import Committer
from dynamodb_counters._control.registry import (
    COMPLETE,
    FILLING,
    STALE,
    WAITING,
    entry_key,
    read_registry,
    write_registry,
)
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError, CheckpointError, UncountedError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HeldClient, HookedClient, once
from simulation.schedules.housekeeping import narrow_pages
from simulation.workbench import QUARANTINE_SECONDS
from tests.exactly_once.test_backfill import (
    NUMBER,
    ORDER,
    REVENUE,
    Live,
    backfill,
    delete,
    fill,
    put,
    read,
    verification,
)

BIG = replace(NUMBER, where=Attr("price").ge(100))
BY = Aggregate("by", ORDER, by="customer", n=Count())
OVER = Aggregate("over", BY, by=(), customers=Count(), n=Sum("n"))


class World(Live):
    def __init__(self, *declared: Any, founds: bool = True) -> None:
        super().__init__(*flatten(declared), founds=founds)
        self.number = 0

    def put(self, count: int = 1, price: int = 10, customer: str = "ann") -> None:
        for _ in range(count):
            self.number += 1
            put(self.bench, self.number, price, customer)
        self.deliver()

    def state(self, name: str) -> str:
        return read_registry(self.bench.store).entries[name].state

    def read(self, declared: Aggregate, **values: Any) -> Any:
        self.bench.clock.advance(61)
        return read(self.bench, declared, **values)

    def spoil(self, name: str) -> None:
        """Have a name counted by a definition that no version here can read."""
        table, key = self.bench.table, entry_key(name)
        item = table.get_item(TableName=table.name, Key=key)["Item"]
        table.put_item(TableName=table.name, Item={**item, "definition": {"S": '[{"": "Later"}]'}})

    def dropping(self, *names: str) -> Dropping:
        return Dropping(table=self.bench.store, now=self.bench.clock, names=names, segments=2)

    def drop(self, *names: str) -> None:
        for _ in self.dropping(*names).steps():
            pass

    def process(self, *declared: Any, before: Callable[[], object] | None = None) -> Aggregator:
        """A process of some version; something happens before it writes to the registry."""
        client: Any = self.bench.table
        if before is not None:
            client = HookedClient(client, once(["transact_write_items"], before))
        table = Table(self.bench.table.name, client, clock=self.bench.clock, sleep=self.bench.clock.advance)
        return Aggregator(table, flatten(declared), quarantine_retention_seconds=QUARANTINE_SECONDS)

    @property
    def total(self) -> int:
        """What the prices of all orders that there are come to."""
        return sum(int(item["price"]["N"]) for item in self.bench.table.items() if "price" in item)

    def run_to(self, steps: Iterator[Progress], phase: str) -> None:
        assert any(step.phase == phase for step in steps)


def test_a_name_keeps_its_definition_whichever_version_counts() -> None:
    world = World(NUMBER)
    world.put(3)
    for declared in (BIG, NUMBER, BIG):
        world.bench.deploy([declared])
        world.put(2)
        world.put(1, price=500)
    assert world.read(NUMBER) == ({"orders": 12}, True)
    with pytest.raises(UncountedError, match="declare the new one as 'orders_v2'"):
        read(world.bench, BIG)


def test_a_name_that_nothing_declares_counts_on() -> None:
    world = World(NUMBER, REVENUE)
    world.put(2)
    world.bench.deploy([REVENUE])
    world.put(3)
    assert world.read(NUMBER) == ({"orders": 5}, True)
    assert world.bench.aggregator.handle({}).undeclared == ("orders",)


def test_a_later_name_waits_and_counts_everything_after_its_backfill() -> None:
    world = World(NUMBER)
    world.put(3)
    world.bench.deploy([NUMBER, replace(BIG, name="big", sk="BIG", measures={"n": Count()})])
    big = replace(BIG, name="big", sk="BIG", measures={"n": Count()})
    world.put(2, price=500)
    assert (world.state("big"), world.read(big)) == (WAITING, ({"n": 0}, False))
    fill(world.bench, world.stream)
    # Records of before the cut come once more.
    world.bench.aggregator = world.bench.process()
    world.bench.deliver_all()
    assert world.read(big) == ({"n": 2}, True)
    world.put(1, price=900)
    assert (world.state("big"), world.read(big)) == (COMPLETE, ({"n": 3}, True))
    with pytest.raises(BackfillError, match="nothing to backfill"):
        fill(world.bench, world.stream)


def test_a_complete_name_is_filled_anew() -> None:
    world = World(NUMBER, BY, OVER)
    world.put(3)
    world.put(2, customer="bob")
    delete(world.bench, 1)
    world.deliver()
    assert world.read(OVER) == ({"customers": 2, "n": 4}, True)
    fill(world.bench, world.stream, names=["by"])
    world.put(1, customer="cat")
    assert world.read(BY, customer="ann") == ({"n": 2}, True)
    assert world.read(OVER) == ({"customers": 3, "n": 5}, True)


def test_pages_of_a_name_that_is_filled_anew_are_known_anew() -> None:
    """By the process that counts, and by the one that reads."""
    paged = Aggregate("paged", ORDER, pk="PAGED", sk="{customer}", n=Count(), pages=True)
    address = ItemLayout(paged).address
    # Whoever asks the last page first takes it for lost: the first one is said to have split.
    customers = sorted((f"c{number}" for number in range(8)), key=lambda name: address((name,))[1], reverse=True)
    with narrow_pages(1):
        world = World(paged)
        for customer in customers:
            world.put(customer=customer)
        client: Any = world.bench.table
        reader = Counters(world.bench.table.name, client=client, clock=world.bench.clock)
        assert [reader.get(paged, customer=each).measures for each in customers] == [{"n": 1}] * 8
    fill(world.bench, world.stream, names=["paged"])
    world.bench.clock.advance(61)
    assert [reader.get(paged, customer=each).measures for each in customers] == [{"n": 1}] * 8
    for customer in customers:
        world.put(customer=customer)
    assert [world.read(paged, customer=each)[0] for each in customers] == [{"n": 2}] * 8
    assert [reader.get(paged, customer=each).measures for each in customers] == [{"n": 2}] * 8


@pytest.mark.parametrize("ranking", [None, Ranking("n", leaderboard="SHOPS")])
def test_what_was_counted_before_a_name_was_registered_goes_before_it_is_filled(ranking: Ranking | None) -> None:
    sale = Event("sale", pk="SALE#{id}", sk="SALE")
    sales = Aggregate("sales", sale, pk="SHOP#{shop}", sk="SALES", ranking=ranking, n=Count())
    world = World(NUMBER, founds=False)
    counters = world.bench.counters
    counters.record_once(sale, {"id": 1, "shop": "a"}, [sales])
    assert counters.retract(sale, {"id": 1, "shop": "a"})
    world.bench.aggregator.handle({})
    world.deliver()
    world.bench.deploy([NUMBER, sales])
    counters.accept(sale, {"id": 2, "shop": "a"})
    world.deliver()
    with pytest.raises(BackfillError, match="sales was counted in before it was registered: run it again"):
        fill(world.bench, world.stream)
    fill(world.bench, world.stream)
    assert world.read(sales, shop="a") == ({"n": 1}, True)


def test_a_dropped_name_is_gone_and_may_come_back_with_another_meaning() -> None:
    world = World(NUMBER, REVENUE)
    world.put(3)
    world.bench.deploy([REVENUE])
    world.drop("orders")
    world.bench.clock.advance(61)
    with pytest.raises(UncountedError):
        read(world.bench, NUMBER)
    assert not [item for item in world.bench.table.items() if item.get("_type") == {"S": "orders"}]
    world.bench.deploy([REVENUE, BIG])
    world.put(1, price=500)
    assert world.read(BIG) == ({"orders": 0}, False)
    fill(world.bench, world.stream)
    assert world.read(BIG) == ({"orders": 1}, True)


def test_what_something_counts_is_not_dropped() -> None:
    world = World(BY, OVER)
    with pytest.raises(BackfillError, match="'over' counts 'by': drop it, too"):
        world.drop("by")
    world.drop("by", "over")


def test_a_definition_that_a_version_cannot_read_goes_stale_and_the_others_count() -> None:
    world = World(NUMBER, REVENUE)
    world.put(2)
    world.spoil("orders")
    put(world.bench, 99, 10)
    world.bench.clock.advance(61)
    records = world.bench.records()
    for _ in range(3):
        # A reader may have read that it is complete.
        with pytest.raises(CheckpointError, match="orders is counted by a definition that this version cannot read"):
            world.bench.deliver(records)
        assert world.state("orders") == STALE
        world.bench.clock.advance(59)
    world.bench.clock.advance(10)
    world.bench.deliver_all()
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)


def test_what_counts_a_name_that_a_version_cannot_read_goes_stale_with_it() -> None:
    world = World(NUMBER, BY, OVER)
    world.put(3)
    world.spoil("by")
    world.bench.clock.advance(61)
    with pytest.raises(CheckpointError, match="by, over is counted by a definition that this version cannot read"):
        world.put(1)
    world.bench.clock.advance(200)
    world.bench.deliver_all()
    assert (world.state("over"), world.read(OVER)[1]) == (STALE, False)
    assert world.read(NUMBER) == ({"orders": 4}, True)
    world.bench.deploy([NUMBER, OVER, REVENUE])
    assert world.state("revenue") == WAITING


def test_a_counter_is_complete_at_once_and_a_threshold_watches_from_then_on() -> None:
    stock = Counter("stock", by="sku")
    world = World(NUMBER)
    low = Threshold("low", stock, at=[5])
    world.bench.deploy(flatten([NUMBER, stock, low]))
    assert world.state("stock") == COMPLETE
    world.bench.counters.increment(stock, sku="a", amount=7)
    world.bench.deliver_all()
    fired = [item for item in world.bench.table.items() if item.get("_type") == {"S": "_crossing"}]
    assert [item["level"]["S"] for item in fired] == ["5"]
    with pytest.raises(BackfillError, match="not a Counter"):
        fill(world.bench, world.stream, names=["stock"])


def test_names_that_contradict_what_is_counted_are_not_registered() -> None:
    world = World(NUMBER)
    other = Aggregate("other", ORDER, pk=NUMBER.pk, sk=NUMBER.sk, n=Count())
    world.bench.deploy([other])
    report = world.bench.aggregator.handle({})
    assert "other" not in read_registry(world.bench.store).entries
    assert world.bench.aggregator._names.refused.keys() == {"other"} or report.refused


def test_two_backfills_of_one_name_do_not_disturb_each_other() -> None:
    world = World(NUMBER)
    world.put(3)
    world.bench.deploy([NUMBER, REVENUE])
    one, two = (backfill(world.bench, world.stream, names=["revenue"]).steps() for _ in range(2))
    world.run_to(one, "scanning")
    with pytest.raises(BackfillError, match="fills revenue already"):
        list(two)
    assert world.state("revenue") == FILLING
    list(one)
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)
    world.put(customer="bob")
    fill(world.bench, world.stream, names=["revenue"])
    assert world.read(REVENUE, customer="bob") == ({"total": 10}, True)


# Each guard alone


def test_only_one_process_founds_a_table() -> None:
    world = World(NUMBER, founds=False)
    world.process(REVENUE, before=lambda: world.put(2)).handle({})
    assert (world.state("orders"), world.state("revenue")) == (COMPLETE, WAITING)
    assert world.read(REVENUE, customer="ann") == ({"total": 0}, False)


def test_names_that_contradict_each_other_are_not_registered_at_once() -> None:
    world = World(NUMBER)
    other = Aggregate("other", ORDER, pk=REVENUE.pk, sk=REVENUE.sk, n=Count())
    processes = [world.process(NUMBER, each) for each in (REVENUE, other)]
    for each in processes:
        each.handle({})
    # Both have told what they declare; of what was dropped, each registers its own.
    world.drop("revenue")
    world.bench.clock.advance(61)
    first = world.process(NUMBER, REVENUE, before=lambda: processes[1].handle({}))
    first.handle({})
    assert len({"revenue", "other"} & read_registry(world.bench.store).entries.keys()) == 1


def test_a_process_learns_of_a_name_that_is_filled() -> None:
    world = World(NUMBER)
    world.put(3)
    older = world.bench.aggregator
    world.bench.deploy([NUMBER, REVENUE])
    world.bench.aggregator = older
    world.put(1)
    # Without its log, the run would wait for ever.
    for step in islice(backfill(world.bench, world.stream).steps(), 500):
        if step.phase == "scanning":
            put(world.bench, 50, 5)
    assert world.state("revenue") == COMPLETE
    assert world.read(REVENUE, customer="ann") == ({"total": world.total}, True)


def test_who_says_that_a_name_is_complete_has_all_of_it_while_it_is_emptied() -> None:
    world = World(NUMBER)
    world.put(3)
    reader, said = world.bench.counters, {world.bench.counters.get(NUMBER, {}).complete}
    for _ in backfill(world.bench, world.stream, names=["orders"]).steps():
        # A process that has just begun, and a reader that has not.
        world.bench.aggregator = world.bench.process()
        world.put()
        group = reader.get(NUMBER, {}, consistent=True)
        assert group.measures["orders"] == world.number or not group.complete
        said.add(group.complete)
    assert said == {True, False}
    assert world.read(NUMBER) == ({"orders": world.number}, True)


def test_an_update_that_lands_late_is_deleted_with_all_the_others() -> None:
    world = World(NUMBER)
    world.put(3)
    put(world.bench, 50, 5)
    held = HeldClient(world.bench.table, "update_item")
    with pytest.raises(Crashed):
        world.bench.deliver(world.bench.records(), by=world.bench.process(held))
    world.deliver()
    late, lands = world.bench.clock() + LONGEST_INVOCATION, [held.land]
    for step in backfill(world.bench, world.stream, names=["orders"]).steps():
        if lands and (world.bench.clock() > late or step.phase == "scanning"):
            lands.pop()()
    assert not lands
    assert world.read(NUMBER) == ({"orders": 4}, True)


def test_a_stale_mark_is_no_step_back() -> None:
    world = World(NUMBER, REVENUE)
    world.put(2)
    world.bench.clock.advance(61)
    dropping = world.dropping("orders").steps()

    def meanwhile() -> None:
        assert any(step.phase == WAITING for step in dropping)

    process = world.process(NUMBER, REVENUE, before=meanwhile)
    world.spoil("orders")
    with pytest.raises(CheckpointError, match="cannot read"):
        process.handle({})
    assert world.state("orders") == WAITING
    list(dropping)
    assert "orders" not in read_registry(world.bench.store).entries


def test_a_slow_process_deletes_nothing_that_was_counted_since(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(NUMBER)
    world.put(3)
    first = [True]

    def late(*arguments: Any) -> Any:
        if first and first.pop():
            fill(world.bench, world.stream, names=["orders"])
        return scan_page(*arguments)

    monkeypatch.setattr("dynamodb_counters._backfill.backfill.scan_page", late)
    with pytest.raises(BackfillError, match="another process works on the same names"):
        list(backfill(world.bench, world.stream, names=["orders"]).steps())
    assert world.read(NUMBER) == ({"orders": 3}, True)


@pytest.mark.parametrize("phase", ["scanning", "complete"])
def test_a_delete_that_lands_late_takes_nothing_that_was_counted_since(
    monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """A laptop sleeps between two deletes, and another process fills the name meanwhile."""
    world = World(NUMBER)
    world.put(3)
    world.put(1, customer="bob")
    if phase == "complete":
        # Its item has no watermark, only a baseline.
        fill(world.bench, world.stream, names=["orders"])
    delete_item = Emptying._delete

    def late(self: Emptying, item: Any) -> None:
        monkeypatch.setattr(Emptying, "_delete", delete_item)
        steps = backfill(world.bench, world.stream, names=["orders"]).steps()
        world.run_to(steps, phase)
        world.put()
        delete_item(self, item)
        assert all(step.phase for step in steps)

    monkeypatch.setattr(Emptying, "_delete", late)
    with pytest.raises(BackfillError, match="another process works on the same names"):
        list(backfill(world.bench, world.stream, names=["orders"]).steps())
    assert world.read(NUMBER) == ({"orders": 5}, True)


def test_a_slow_process_opens_nothing_that_another_has_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(NUMBER, REVENUE)
    world.put(3)
    opened = Backfill._open

    def late(self: Backfill) -> Any:
        monkeypatch.setattr(Backfill, "_open", opened)
        fill(world.bench, world.stream, names=["revenue"])
        world.put(2, customer="bob")
        return opened(self)

    monkeypatch.setattr(Backfill, "_open", late)
    with pytest.raises(BackfillError, match="another process works on the same names"):
        list(backfill(world.bench, world.stream, names=["revenue"]).steps())
    assert world.read(REVENUE, customer="bob") == ({"total": 20}, True)


@pytest.mark.parametrize(("step", "phase"), [("_open", "deleting"), ("_try_to_open", "stale")])
def test_a_slow_process_opens_nothing_over_a_name_that_another_has_emptied(
    monkeypatch: pytest.MonkeyPatch, step: str, phase: str
) -> None:
    world = World(BY)
    world.put(3)
    world.bench.deploy([BY, OVER])
    opened = getattr(Backfill, step)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(Backfill, step, opened)
        world.run_to(backfill(world.bench, world.stream, names=["by"]).steps(), phase)
        return opened(*arguments)

    monkeypatch.setattr(Backfill, step, late)
    with pytest.raises(BackfillError, match="another process works on the same names"):
        list(backfill(world.bench, world.stream, names=["over"]).steps())
    world.put(1, customer="bob")
    fill(world.bench, world.stream)
    assert world.read(OVER) == ({"customers": 2, "n": 4}, True)


def test_a_name_is_folded_as_long_as_what_is_counted_over_it() -> None:
    world = World(BY, OVER)
    world.put(3)
    emptying = Emptying(table=world.bench.store, now=world.bench.clock)
    with pytest.raises(BackfillError, match="'over' counts 'by'"):
        list(emptying.empty(["by"]))
    world.put(2, customer="bob")
    assert world.read(OVER) == ({"customers": 2, "n": 5}, True)


def test_a_run_that_was_given_up_adds_nothing_to_what_another_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(NUMBER)
    world.put(3)
    world.bench.deploy([NUMBER, REVENUE])
    steps = backfill(world.bench, world.stream).steps()
    run = next(step.run for step in steps if step.phase == "draining")
    require = Backfill._require_open

    def late(self: Backfill) -> None:
        if self.state.phase != "adding":
            return
        monkeypatch.setattr(Backfill, "_require_open", require)
        backfill(world.bench, world.stream, run=run).give_up()
        for number in range(1, 4):
            delete(world.bench, number)
        fill(world.bench, world.stream)
        require(self)

    monkeypatch.setattr(Backfill, "_require_open", late)
    with pytest.raises(BackfillError, match="is void"):
        list(steps)
    world.put()
    assert world.read(REVENUE, customer="ann") == ({"total": 10}, True)


def test_a_name_that_goes_stale_while_it_is_filled_stays_so() -> None:
    world = World(NUMBER)
    world.put(3)
    world.bench.deploy([NUMBER, REVENUE])
    steps = backfill(world.bench, world.stream).steps()
    world.run_to(steps, "adding")
    registry = read_registry(world.bench.store)
    entry = registry.entries["revenue"]
    assert write_registry(world.bench.store, registry, [(entry, entry.entering(STALE, world.bench.clock()))])
    with pytest.raises(BackfillError, match="is void"):
        list(steps)
    assert (world.state("revenue"), world.read(REVENUE, customer="ann")[1]) == (STALE, False)
    fill(world.bench, world.stream)
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)


def test_a_reader_relies_on_what_it_has_read_for_a_minute() -> None:
    world = World(NUMBER)
    world.put(2)
    reader = world.bench.counters
    assert reader.get(NUMBER, {}).complete
    registry = read_registry(world.bench.store)
    entry = registry.entries["orders"]
    assert write_registry(world.bench.store, registry, [(entry, entry.entering(STALE, world.bench.clock()))])
    assert reader.get(NUMBER, {}).complete
    world.bench.clock.advance(60)
    assert not reader.get(NUMBER, {}).complete


def test_an_old_write_of_a_names_item_puts_no_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(NUMBER, REVENUE)
    bench, stream = world.bench, world.stream
    put(bench, 1, 10)
    stream.deliver()  # The write of the item of `orders` is in the stream, and not delivered: the shard has a backlog.
    put(bench, 2, 10)
    deliver: list[Any] = []
    still: Any = type("Still", (), {"deliver": lambda _: [each() for each in deliver]})()
    steps = backfill(bench, still, names=["orders"]).steps()
    step = next(step for step in steps if step.phase == "deleting")
    put(bench, 3, 10)  # Before `since`, and near it.
    older = bench.process()
    older.handle({})  # It relies on this copy for a minute: the name waits.
    while not step.run:
        step = next(steps)
    [(shard, records)] = [each for each in stream.skip().items() if each[1]]
    event = {"Records": records, "shardId": shard}
    commit = Committer.commit

    def crash(self: Any, deltas: Any, part: Any) -> Any:
        if deltas:
            raise TimeoutError
        return commit(self, deltas, part)

    with monkeypatch.context() as context:
        context.setattr(Committer, "commit", crash)
        with pytest.raises(TimeoutError):
            bench.process().handle(event)  # Knows of the run: puts the cut, logs, and dies before it counts.
    older.handle(event)  # The retry, by a process that does not know of the run yet, succeeds.
    deliver.append(stream.deliver)
    list(steps)
    bench.clock.advance(61)
    assert read(bench, NUMBER) == ({"orders": 3}, True)


def test_a_verification_of_a_name_that_goes_stale_is_void_and_holds_nothing_up() -> None:
    world = World(NUMBER, REVENUE)
    world.put(3)
    steps = verification(world.bench, world.stream).steps()
    next(step for step in steps if step.phase == "scanning")
    fill(world.bench, world.stream, names=["orders"])
    world.put(2)
    assert world.read(REVENUE, customer="ann") == ({"total": 50}, True)
    with pytest.raises(BackfillError, match="void"):
        list(steps)


def test_the_rest_of_a_run_whose_other_name_is_dropped_can_be_filled_again() -> None:
    world = World(NUMBER)
    world.put(3)
    world.bench.deploy([NUMBER, REVENUE, BY])
    steps = backfill(world.bench, world.stream).steps()
    next(step for step in steps if step.phase == "scanning")
    world.drop("by")
    with pytest.raises(BackfillError, match="void"):
        list(steps)
    assert world.state("revenue") == STALE
    fill(world.bench, world.stream, names=["revenue"])
    assert world.read(REVENUE, customer="ann") == ({"total": 30}, True)


def test_a_name_over_one_that_is_being_dropped_is_not_filled_and_holds_nothing_up() -> None:
    world = World(NUMBER, BY)
    world.put(3)
    table = backfill(world.bench, world.stream).table
    steps = Dropping(table=table, now=world.bench.clock, names=["by"], segments=2).steps()
    next(steps)
    world.bench.deploy([NUMBER, BY, OVER])
    with pytest.raises(BackfillError, match="'over' counts 'by', which nothing counts, or which is being dropped"):
        fill(world.bench, world.stream, names=["over"])
    list(steps)
    world.put(2)
    assert world.read(NUMBER) == ({"orders": 5}, True)


def test_a_drop_that_broke_off_ends_although_something_counts_the_name_since() -> None:
    world = World(NUMBER, BY)
    world.put(3)
    table = backfill(world.bench, world.stream).table
    next(Dropping(table=table, now=world.bench.clock, names=["by"], segments=2).steps())
    world.bench.deploy([NUMBER, BY, OVER])
    world.drop("by")
    # The next batch registers it anew.
    world.put(1)
    fill(world.bench, world.stream)
    assert world.read(OVER) == ({"customers": 1, "n": 4}, True)
