"""The tally: increments, resets and erasures with kept counts add to a group's sources, in every generation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Histogram, Packed, Sum, Window
from dynamodb_counters._backfill.backfill import Dropping
from dynamodb_counters._backfill.runner import SCANNING
from dynamodb_counters._control.control import read_control
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.table_schema import TALLY_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import BackfillError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, backfill, fill, verification, verify

PLAIN = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}")
PACKED = Event("sale", pk="CLIENT#{client}", sk="SALE#{at}#{id}", packed=Packed("at", timedelta(minutes=10)))
EVENTS = {"plain": PLAIN, "packed": PACKED}


def shop(event: Event) -> Aggregate:
    measures: Any = {"sales": Count(), "amount": Sum("amount")}
    return Aggregate("sold", event, pk="SHOP#{shop}", sk="SOLD", measures=measures)


def hours(event: Event) -> Window:
    return Window("recent", event, pk="SHOP#{shop}", time="at")


class Shop:
    """A table in memory whose stream is delivered whenever its clock sleeps."""

    def __init__(self, event: Event, *declarations: Declaration) -> None:
        self.event = event
        self.bench = Workbench(declarations, shards=2)
        self.counters = self.bench.counters
        self.stream = Stream(self.bench)

    def sell(self, *numbers: int, client: str = "ann", shop: str = "oslo") -> None:
        at = int(self.bench.clock.now)
        sales = [{"client": client, "id": number, "shop": shop, "amount": 10, "at": at} for number in numbers]
        assert all(outcome.status == "accepted" for outcome in self.counters.accept_many(self.event, sales))
        self.stream.deliver()

    def erase(self, client: str, counts: Any = "keep") -> None:
        Eraser(self.store(), self.event, {"client": client}).erase(counts)

    def store(self) -> Table:
        return backfill(self.bench, self.stream).table

    def redefine(self, *declarations: Declaration) -> None:
        self.bench.deploy(declarations, as_declared=True)
        self.stream.deliver()

    def backfill(self) -> None:
        fill(self.bench, self.stream)
        self.stream.deliver()
        self.stream.deliver()

    def settle(self) -> None:
        self.bench.clock.advance(61)
        self.stream.deliver()
        self.stream.deliver()

    def sold(self, declaration: Aggregate, shop: str = "oslo") -> Any:
        group = self.counters.get(declaration, {"shop": shop}, consistent=True)
        assert group.complete
        return group.measures["sales"], group.measures.get("amount")

    def verified(self) -> dict[str, str]:
        """The verdicts on groups that differ."""
        found = verify(self.bench, self.stream)
        assert found.compared
        return {f"{each.name} {each.group}": each.verdict for each in found.differences}


def filtered(declaration: Aggregate) -> Aggregate:
    return replace(declaration, where=Attr("amount").ge(1))


@pytest.fixture
def plain() -> Shop:
    shop_ = Shop(PLAIN, shop(PLAIN))
    shop_.sell(1, 2, 3)
    return shop_


def test_increments_survive_a_redefinition(plain: Shop) -> None:
    plain.counters.increment(shop(PLAIN), {"shop": "oslo"}, amount={"sales": 1000})
    assert plain.sold(shop(PLAIN)) == (1003, 30)
    plain.redefine(filtered(shop(PLAIN)))
    plain.backfill()
    assert plain.sold(filtered(shop(PLAIN))) == (1003, 30)
    assert plain.verified() == {}


def test_a_reset_survives_a_redefinition(plain: Shop) -> None:
    plain.counters.reset(shop(PLAIN), {"shop": "oslo"})
    plain.redefine(filtered(shop(PLAIN)))
    plain.backfill()
    assert plain.sold(filtered(shop(PLAIN))) == (0, 0)
    plain.sell(4)
    assert plain.sold(filtered(shop(PLAIN))) == (1, 10)
    assert plain.verified() == {}


@pytest.fixture(params=EVENTS)
def erased(request: pytest.FixtureRequest) -> Shop:
    """Five events of 25 are erased and stay counted."""
    event = EVENTS[request.param]
    world = Shop(event, shop(event), hours(event))
    world.sell(*range(20))
    world.sell(*range(20, 25), client="bob")
    world.erase("bob")
    world.stream.deliver()
    return world


def test_verification_knows_of_erased_events_whose_counts_are_kept(erased: Shop) -> None:
    assert erased.sold(shop(erased.event)) == (25, 250)
    assert erased.verified() == {}


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("phase", ["waiting", "scanning", "draining", "adding"])
def test_an_erasure_during_a_backfill_is_kept_once(kind: str, phase: str) -> None:
    event = EVENTS[kind]
    world = Shop(event, shop(event))
    world.sell(*range(20))
    world.sell(*range(20, 25), client="bob")
    world.redefine(filtered(shop(event)))
    erased = False
    for step in backfill(world.bench, world.stream).steps():
        if step.phase == phase and not erased:
            world.erase("bob")
            erased = True
            world.stream.deliver()
    assert erased
    world.settle()
    assert world.sold(filtered(shop(event))) == (25, 250)
    assert world.verified() == {}


@pytest.mark.parametrize("phase", ["waiting", "scanning", "draining", "adding", "complete"])
def test_an_increment_of_the_old_generation_reaches_the_next(plain: Shop, phase: str) -> None:
    plain.redefine(filtered(shop(PLAIN)))
    incremented = False
    for step in backfill(plain.bench, plain.stream).steps():
        if step.phase == phase and not incremented:
            # Once complete, this process relies for a minute on the status that it read before.
            plain.counters.increment(shop(PLAIN), {"shop": "oslo"}, amount={"sales": 100})
            incremented = True
        elif phase == "complete":
            plain.counters.get(shop(PLAIN), {"shop": "oslo"})
    assert incremented
    plain.settle()
    assert plain.sold(filtered(shop(PLAIN))) == (103, 30)
    assert plain.verified() == {}


def test_dropping_the_old_generation_leaves_what_was_carried(plain: Shop) -> None:
    plain.counters.increment(shop(PLAIN), {"shop": "oslo"}, amount={"sales": 1000})
    plain.redefine(filtered(shop(PLAIN)))
    plain.backfill()
    plain.bench.clock.advance(3 * DAY)
    plain.sell(4)
    dropping = Dropping(table=plain.store(), now=plain.bench.clock)
    assert [*dropping.steps()]
    assert sum(dropping.dropped.values())
    plain.settle()
    assert plain.sold(filtered(shop(PLAIN))) == (1004, 40)


def test_tallies_of_finer_groups_add_up_in_coarser_ones(plain: Shop) -> None:
    fine = Aggregate("by", PLAIN, pk="SHOP#{shop}", sk="CLIENT#{client}", measures={"sales": Count()})
    world = Shop(PLAIN, fine)
    world.sell(1, 2)
    for client in ("ann", "bob"):
        world.counters.increment(fine, {"shop": "oslo", "client": client}, amount=10)
    coarse = replace(fine, sk="ALL")
    world.redefine(coarse)
    world.backfill()
    assert world.sold(coarse)[0] == 22


def test_bins_that_change_leave_their_tally_behind_alone() -> None:
    declared = Aggregate(
        "sold",
        PLAIN,
        pk="SHOP#{shop}",
        sk="SOLD",
        measures={"sales": Count(), "sizes": Histogram("amount", at_least=(5, 20))},
    )
    world = Shop(PLAIN, declared)
    world.sell(1, 2)
    world.counters.increment(declared, {"shop": "oslo"}, amount={"sales": 5})
    world.erase("ann")
    world.stream.deliver()
    changed = replace(declared, measures={"sales": Count(), "sizes": Histogram("amount", at_least=(5, 30))})
    world.redefine(changed)
    world.backfill()
    group = world.counters.get(changed, {"shop": "oslo"}, consistent=True)
    assert group.measures["sales"] == 7
    assert sum(group.measures["sizes"].values()) == 0


def test_an_expiry_that_moves_counts_into_the_tally_can_be_verified() -> None:
    event = replace(PLAIN, retention=timedelta(hours=1))
    declared = replace(shop(event), on_expiry="tally")
    world = Shop(event, declared)
    world.sell(1, 2, 3)
    world.bench.clock.advance(7200)
    world.bench.table.expire()
    world.stream.deliver()
    world.sell(4)
    assert world.sold(declared) == (4, 40)
    assert world.verified() == {}


def test_tallies_of_an_aggregate_over_another_survive_a_redefinition_of_both(plain: Shop) -> None:
    base = shop(PLAIN)
    totals = Aggregate("all", base, pk="ALL", sk="SOLD", measures={"shops": Count(), "sales": Sum("sales")})
    world = Shop(PLAIN, base, totals)
    world.sell(1, 2, 3)
    world.sell(4, shop="rome")
    world.counters.increment(base, {"shop": "oslo"}, amount={"sales": 100})
    world.counters.increment(totals, {}, amount={"shops": 0, "sales": 1000})
    world.stream.deliver()
    changed = filtered(base)
    over = replace(totals, source=changed)
    world.redefine(changed, over)
    incremented = False
    for step in backfill(world.bench, world.stream).steps():
        if step.phase == "scanning" and not incremented:
            world.counters.increment(totals, {}, amount={"shops": 0, "sales": 1000})
            world.sell(5, shop="rome")
            incremented = True
    world.settle()
    found = world.counters.get(over, {}, consistent=True)
    assert (found.complete, found.measures) == (True, {"shops": 2, "sales": 2105})
    assert world.verified() == {}


def test_a_backfill_waits_until_the_generation_before_the_last_is_not_counted_any_more(plain: Shop) -> None:
    """Else an erasure that it tallies late would not be carried to the newest generation, which was relieved of it."""
    plain.redefine(filtered(shop(PLAIN)))
    plain.backfill()
    [*_, last] = read_control(plain.store()).history.eras  # type: ignore[union-attr]
    assert last.valid_from > plain.bench.clock.now
    second = backfill(plain.bench, plain.stream, names=["sold"])
    assert next(second.steps()).phase == "waiting"
    [run] = read_control(plain.store()).runs
    assert run.since == last.valid_from


CLIENTS = Aggregate("clients", PLAIN, pk="CLIENT#{client}", sk="SOLD", measures={"sales": Count()})


@pytest.fixture
def switched() -> Shop:
    """Readers have just switched to the next generation of one of two aggregates; the one before is counted on."""
    world = Shop(PLAIN, shop(PLAIN), CLIENTS)
    world.sell(1, 2, 3)
    world.redefine(filtered(shop(PLAIN)), CLIENTS)
    world.backfill()
    return world


def test_a_run_whose_cut_lies_ahead_keeps_it_when_another_one_opens(switched: Shop) -> None:
    """Else what is folded would begin by times of creation, and what is logged at the cut."""
    for name in ("sold", "clients"):
        assert next(backfill(switched.bench, switched.stream, names=[name]).steps()).phase == "waiting"
    seen = read_control(switched.store())
    eras = seen.history.eras  # type: ignore[union-attr]
    assert {run.id: run.since for run in seen.runs}.items() <= {era.run: era.valid_from for era in eras}.items()


def test_an_increment_after_a_takeover_reaches_the_next_generation(plain: Shop) -> None:
    other = Aggregate("clients", PLAIN, pk="CLIENT#{client}", sk="SOLD", measures={"sales": Count()})
    plain.redefine(filtered(shop(PLAIN)))
    incremented = False
    for step in backfill(plain.bench, plain.stream).steps():
        if step.phase == "complete" and not incremented:
            plain.bench.deploy([filtered(shop(PLAIN)), other], as_declared=True)
            late = Update(ItemLayout(shop(PLAIN)), ("oslo",), {"sales": 100, TALLY_PREFIX + "sales": 100}, "")
            plain.bench.table.update_item(**late.request(plain.bench.table.name))
            incremented = True
    plain.settle()
    assert plain.sold(filtered(shop(PLAIN))) == (103, 30)


def test_a_complete_backfill_voids_a_later_one_of_the_same_name(plain: Shop) -> None:
    """It carries the tally of a generation that is not used any more."""
    plain.redefine(filtered(shop(PLAIN)))
    first, second = (backfill(plain.bench, plain.stream, names=["sold"]).steps() for _ in range(2))
    next(first), next(second)
    assert [*first][-1].phase == "complete"
    plain.settle()
    plain.counters.increment(filtered(shop(PLAIN)), {"shop": "oslo"}, amount={"sales": 100})
    with pytest.raises(BackfillError, match="is void"):
        list(second)
    plain.settle()
    assert plain.sold(filtered(shop(PLAIN))) == (103, 30)


def test_an_increment_before_the_era_of_a_declaration_that_changes_again_reaches_its_backfill() -> None:
    other = Aggregate("clients", PLAIN, pk="CLIENT#{client}", sk="SOLD", measures={"sales": Count()})
    world = Shop(PLAIN, other)
    world.sell(1, 2, 3)
    by_client = replace(shop(PLAIN), sk="CLIENT#{client}")
    world.bench.declare([other, by_client])
    world.counters.increment(by_client, {"shop": "oslo", "client": "ann"}, amount={"sales": 1000})
    world.bench.declare([other, shop(PLAIN)])
    world.backfill()
    assert world.sold(shop(PLAIN)) == (1003, 30)


def test_a_declaration_comes_back_to_its_own_tally_after_a_run_that_began_before_it() -> None:
    """The run's first era has the run's generation alone, which readers never used."""
    other = Aggregate("clients", PLAIN, pk="CLIENT#{client}", sk="SOLD", measures={"sales": Count()})
    world = Shop(PLAIN, other)
    world.sell(1, 2, 3)
    world.bench.declare([other, shop(PLAIN)])
    next(backfill(world.bench, world.stream).steps())
    world.counters.increment(shop(PLAIN), {"shop": "oslo"}, amount={"sales": 1000})
    world.redefine(other)
    world.redefine(other, shop(PLAIN))
    world.backfill()
    assert world.sold(shop(PLAIN)) == (1003, 30)


def test_a_verification_compares_no_generation_that_a_backfill_fills_meanwhile(plain: Shop) -> None:
    plain.redefine(filtered(shop(PLAIN)))
    filling = backfill(plain.bench, plain.stream).steps()
    while next(filling).phase != SCANNING:
        pass
    found = verification(plain.bench, plain.stream)
    steps = found.steps()
    while next(steps).phase != SCANNING:
        pass
    plain.erase("ann")
    assert [*steps][-1].phase == "complete"
    assert (found.differences, found.compared) == ([], 1)
