"""Entries that wait in quarantine: whatever is verified, discarded or erased meanwhile, each counts once or never.

What cannot be folded counts neither then nor when its item is deleted; counts never lack what was never added.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from counters_lambda.counting.counted_names import plan_of
from counters_lambda.counting.feeds import Shard
from counters_lambda.counting.run_logs import RunRow
from counters_lambda.counting.runner import Lineage, withheld
from counters_lambda.counting.verification import Verification
from dynamodb_counters import Aggregate, Attr, Count, Event, Packed, Sum, Window
from dynamodb_counters._erasure import Erased, Eraser
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._quarantine import confirm, discard, list_quarantined
from dynamodb_counters._tiers import HOUR
from dynamodb_counters.errors import InvalidArgumentError, UnavailableError
from simulation.faults.hooked_client import HookedClient, once
from simulation.oracle.layout import rows_of
from simulation.world import World, reach
from tests.exactly_once.test_erase import BOTH, OF_EACH_KIND, WRITES
from tests.exactly_once.test_run_commands import command, lines
from tests.exactly_once.test_runs import NUMBER, ORDER, REVENUE, Orders

VIEW = Event("view", pk="URL#{url}", sk="T#{at}#{id}", retention=timedelta(days=35))
PACKED = replace(VIEW, packed=Packed("at", timedelta(minutes=10), future_tolerance=None))
AHEAD = Window("ahead", VIEW, pk="URL#{url}", time="at", precision=timedelta(hours=1), longest=timedelta(hours=3))
VIEWS = Aggregate("views", VIEW, pk="ALL", sk="VIEWS", measures={"n": Count()})
"""Has always counted what the window, which takes nothing ahead of its time, lets wait."""
TAGS = Aggregate("tags", VIEW, pk="TAG#{tags[]}", sk="ALL", measures={"views": Count()}, max_groups=2)
RAISED = replace(TAGS, max_groups=3)
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"n": Count(), "taken": Sum("price")})
KINDS = {"plain": VIEW, "packed": PACKED}


class Views(World):
    """A table whose stream is delivered as it is written."""

    event = VIEW

    @classmethod
    def ahead(cls, kind: str = "plain", on_expiry: Any = "keep") -> Views:
        """Return a window that counts an event once its time has come, and an aggregate that counts it at once."""
        options: Any = {"source": KINDS[kind], "on_expiry": on_expiry}
        world = cls(replace(AHEAD, **options), replace(VIEWS, **options))
        world.event = KINDS[kind]
        return world

    def view(self, *, ahead: float = 0, delivers: bool = True, **values: Any) -> dict[str, Any]:
        view = {"url": "/", "at": int(self.clock() + ahead), "id": 1, **values}
        self.accept(self.event, view)
        if delivers:
            self.deliver_new()
        return view

    def let_it_wait(self) -> None:
        """Accept an event whose count waits, and could be added by now."""
        self.view(ahead=HOUR)
        assert self.waiting() == 1
        self.clock.advance(2 * HOUR)

    def retract(self, view: dict[str, Any]) -> None:
        assert self.counters.retract(self.event, {name: view[name] for name in ("url", "at", "id")})
        self.deliver_new()

    def discard_all(self) -> list[bool]:
        registry = self.registry
        more = plan_of(registry), Origins(self.name, registry.source or None)
        done = [discard(self.store, entry, *more) for entry in list_quarantined(self.store, redriven=False)]
        self.deliver_new()
        return done

    def erase_all(self, counts: Any, client: Any = None) -> Erased:
        return self.erase(self.event, {"url": "/"}, counts, client)

    def finish(self, counts: str) -> None:
        """Redrive what waits, and erase, until nothing is left."""
        for _ in range(6):
            self.redrive()
            with suppress(UnavailableError):
                if self.erase_all(counts) == Erased():
                    return
        pytest.fail("copies are still there")

    def tags(self, tags: str = "abc") -> list[Any]:
        declared: Any = self.registry.entries["tags"].declaration
        return [self.counters.get(declared, {"tags[]": tag})["views"] for tag in tags]

    def counts(self) -> tuple[int, int]:
        """Return counts of the window and of the aggregate."""
        ahead, views, *_ = self.declared
        count = self.counters.window(ahead, url="/").last(timedelta(hours=6)).count  # type: ignore[arg-type]
        return int(count), int(self.counters.get(views, {})["n"])  # type: ignore[arg-type]

    def stored(self) -> str:
        items = [dict(item) for item in self.table.items() if not item["pk"]["S"].startswith("CHECKPOINT#")]
        items = [item for item in items if "WINDOW#" not in item["sk"]["S"]]
        return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in items])

    def is_exact(self, counts: str, on_expiry: str = "keep") -> bool:
        """Return whether counts are as chosen; what has waited may have been counted or not, if counts are kept."""
        window, views = self.counts()
        is_kept = counts == "keep" and on_expiry != "subtract"
        right = views == is_kept and window in {0, int(is_kept)} and "'/'" not in self.stored()
        # What is erased and stays counted is unknown.
        return right and {status for status, _ in self.missing()} <= {"unknown"}


def tagged(declared: Aggregate = TAGS) -> tuple[Views, dict[str, Any]]:
    """Return an event of three tags, more than the groups that were allowed when it came."""
    world = Views(declared)
    world.event = declared.source  # type: ignore[assignment]
    return world, world.view(tags=["a", "b", "c"])


@pytest.mark.parametrize("retention", [None, timedelta(days=35)], ids=["for good", "expires"])
@pytest.mark.parametrize("by", [-2, 0, 5])
def test_a_group_waits_for_the_quarantine_whatever_it_lacks(retention: timedelta | None, by: int) -> None:
    world, _ = tagged(declared := replace(TAGS, source=replace(VIEW, retention=retention)))
    for number in (2, 3):
        world.view(id=number, tags=["a"])
    world.mend(replace(declared, max_groups=3))
    world.spoil(TAGS, "views", by, **{"tags[]": "a"})
    verifying = world.verify()
    assert {(difference.status, difference.reason) for difference in verifying.differences} == {
        ("waits", "1 entry of the quarantine waits for it")
    }
    assert verifying.groups("waits").total() == 3
    assert verifying.repair() == (0, 0)
    assert world.redrive() == 1
    assert world.tags() == [3 + by, 1, 1]
    assert (world.missing() == []) == (by == 0)


def test_an_entry_that_is_redriven_while_groups_are_read_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = tagged()
    world.mend(RAISED)
    read = Verification._read

    def late(self: Any, *arguments: Any) -> Any:
        result = read(self, *arguments)
        for entry in list(world.counters.quarantined()):
            world.counters.redrive(entry)
        return result

    monkeypatch.setattr(Verification, "_read", late)
    verifying = world.verify()
    assert {difference.status for difference in verifying.differences} <= {"waits"}
    verifying.repair()
    world.deliver_new()
    assert world.tags() == [1, 1, 1]


def test_a_group_for_which_nothing_waits_is_repaired_while_others_wait() -> None:
    world, _ = tagged()
    world.mend(RAISED)
    world.view(id=2, tags=["d"])
    world.spoil(TAGS, "views", -4, **{"tags[]": "d"})
    done = command(world, "verify", "--repair", "--yes")
    assert (done.code, lines(done.out)) == (4, ["1 item repaired"])
    result = command(world, "verify")
    assert result.code == 4
    assert lines(result.out)[-1].startswith(
        "4 groups compared: none drifted, 0 cannot be verified, 3 wait for the quarantine; "
    )
    assert world.tags("abcd") == [0, 0, 0, 1]


@OF_EACH_KIND
def test_a_discarded_event_counts_neither_now_nor_when_it_is_deleted(kind: str) -> None:
    world, view = tagged(replace(TAGS, source=KINDS[kind]))
    assert world.discard_all() == [True]
    items = [item for item in world.table.items() if "tags" in item]
    assert not any(name.startswith("_") for item in items for name in item.keys() - {"_type"})
    assert world.missing() == []
    world.retract(view)
    assert world.discard_all() == [True]
    assert world.tags() == [0, 0, 0]
    assert world.missing() == []


@OF_EACH_KIND
def test_an_event_from_the_future_is_not_discarded_while_it_can_be_counted_later(kind: str) -> None:
    """Its deletion would be subtracted, once its time has come."""
    world = Views.ahead(kind)
    view = world.view(ahead=HOUR)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="expected one that cannot be counted: redrive it"):
            world.discard_all()
        world.clock.advance(2 * HOUR)
    world.redrive()
    assert world.counts() == (1, 1)
    world.retract(view)
    assert world.counts() == (0, 0)
    assert world.missing() == []


def test_an_entry_that_can_be_counted_by_now_is_redriven_not_discarded() -> None:
    world, view = tagged()
    world.mend(RAISED)
    world.retract(view)
    assert world.tags() == [-1, -1, -1]
    with pytest.raises(InvalidArgumentError, match="redrive it"):
        world.discard_all()
    world.redrive()
    assert world.tags() == [0, 0, 0]


def test_a_delta_is_redriven_not_discarded() -> None:
    world = Views(SHOPS)
    world.spoil(SHOPS, "taken", 10**38 - 1, shop="a")
    world.accept(SALE, {"id": 1, "shop": "a", "price": 2})
    world.deliver_new()
    with pytest.raises(InvalidArgumentError, match="redrive it"):
        world.discard_all()


def test_what_was_discarded_waits_again_after_a_backfill_and_is_repaired_by_code_that_can_count_it() -> None:
    world, _ = tagged()
    assert world.discard_all() == [True]
    world.deploy(TAGS, other := replace(TAGS, name="labels", pk="LABEL#{tags[]}"))
    world.fill()
    [entry] = world.counters.quarantined()
    assert entry.names == (other.name,)
    assert {status for status, _ in world.missing()} == set()
    assert world.discard_all() == [True]
    world.mend(RAISED, replace(other, max_groups=3))
    world.clock.advance(HOUR)
    verifying = world.verify()
    assert {difference.status for difference in verifying.differences} == {"drifted"}
    assert verifying.repair() == (6, 0)
    assert world.tags() == [1, 1, 1]
    assert world.missing() == []


@pytest.mark.parametrize("on_expiry", ["keep", "subtract"])
@BOTH
@OF_EACH_KIND
def test_nothing_is_erased_while_a_copy_waits(kind: str, counts: str, on_expiry: str) -> None:
    """Its deletion would be subtracted at once, and its counts added once it is redriven, or never."""
    world = Views.ahead(kind, on_expiry)
    world.let_it_wait()
    stored = world.stored()
    with pytest.raises(UnavailableError, match=r"^1 copies wait in quarantine to be counted: redrive or discard them"):
        world.erase_all(counts)
    assert world.stored() == stored
    world.finish(counts)
    assert world.is_exact(counts, on_expiry)


@pytest.mark.parametrize("meanwhile", [False, True])
@BOTH
@OF_EACH_KIND
def test_an_entry_that_comes_after_its_event_is_erased_is_counted(kind: str, counts: str, *, meanwhile: bool) -> None:
    """The aggregator lags: what waits appears after the deletion, which subtracts it."""
    world = Views.ahead(kind)
    world.view(ahead=HOUR, delivers=False)
    world.clock.advance(2 * HOUR)
    result = world.erase_all(counts, HookedClient(world.table, once(WRITES, world.deliver_new)) if meanwhile else None)
    assert result.quarantined == result.left == int(meanwhile)
    world.deliver_new()
    assert world.waiting() == 1
    world.finish(counts)
    assert world.is_exact(counts)


@BOTH
def test_what_cannot_be_counted_is_discarded_and_erased(counts: Any) -> None:
    world, _ = tagged()
    for _ in range(2):
        world.discard_all()
        assert world.erase_all(counts).left == 0
        world.deliver_new()
    world.discard_all()
    assert world.erase_all(counts).left == 0
    assert not any("record" in item for item in world.table.items())
    assert world.tags() == [0, 0, 0]


def test_an_entry_of_a_backfill_that_goes_on_stays_until_that_is_over() -> None:
    world = Views.ahead()
    world.view(ahead=HOUR)
    world.redrive()
    world.deploy(replace(AHEAD, name="soon", pk="SOON#{url}"), VIEWS)
    for step in world.backfill().steps():
        if step.phase == "draining":
            with pytest.raises(UnavailableError, match=r"^2 copies wait"):
                world.erase_all("take_back")
    world.clock.advance(2 * HOUR)
    world.finish("take_back")
    assert world.is_exact("take_back")


@BOTH
@pytest.mark.parametrize(("on_expiry", "then"), [("keep", "keep"), ("subtract", "subtract"), ("subtract", "keep")])
def test_rows_taken_out_of_a_chunk_uncounted_are_redriven_as_they_were_erased(
    on_expiry: Any, then: Any, counts: Any
) -> None:
    declared = replace(TAGS, source=PACKED, on_expiry=on_expiry)
    world, _ = tagged(declared)
    Eraser(world.store, PACKED, {"url": "/"})._sweep_chunks(counts)
    world.deliver_new()
    # The image and its retraction; and both as they are erased, where that counts.
    assert world.waiting() == (1 if counts == "keep" else 2) * (2 if on_expiry == "subtract" else 1)
    world.mend(replace(declared, on_expiry=then, max_groups=3))
    world.redrive()
    assert world.tags() == [int(counts == then == "keep")] * 3
    if then == on_expiry:
        world.clock.advance(HOUR)
        assert {status for status, _ in world.missing()} <= {"unknown"}


@OF_EACH_KIND
def test_what_is_redriven_and_erased_during_a_verification_is_no_drift(kind: str) -> None:
    world = Views.ahead(kind)
    world.let_it_wait()
    verifying = world.verification()
    steps = verifying.steps()
    reach(steps, "scanning")
    for entry in world.counters.quarantined():
        assert world.counters.redrive(entry)
    world.erase_all("keep")
    world.deliver_new()
    list(steps)
    assert {difference.status for difference in verifying.differences} == {"unknown"}
    assert verifying.repair() == (0, 0)
    assert world.counts() == (1, 1)


# Backfills: what one has met waits for nothing, and what it cannot fold waits as ever

PRICED = replace(REVENUE, where=Attr("price").exists())
FEES = Aggregate("fees", ORDER, pk="FEES", sk="ALL", measures={"fees": Sum("price"), "orders": Count()})

COUNTED = (replace(REVENUE, measures={"total": Count()}), replace(FEES, measures={"orders": Count()}))
ORDER_TAGS = Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", measures={"orders": Count()}, max_groups=2)
PHASES = pytest.mark.parametrize("phase", ["scanning", "draining", "adding"])


def entries(world: World) -> list[list[str]]:
    """Return the declarations that each entry waits for."""
    return sorted(entry["declarations"] for entry in command(world, "quarantine", "list", "--json").document["entries"])


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
        self.deploy(NUMBER, ORDER_TAGS)

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
        self.mend(NUMBER, raised := replace(ORDER_TAGS, max_groups=10))
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
    world.fill_with("", bool, run=reach(world.backfill().steps(), phase).run)
    assert world.counts == [2, 1, 1]


def test_events_of_a_chunk_that_a_backfill_cannot_fold_wait_one_by_one() -> None:
    click = Event("click", pk="AD#{ad}", sk="T#{time}#C#{client}", packed=Packed(time="time"))
    clicks = Aggregate("clicks", click, pk="AD#{ad}", sk="ALL", measures={"clicks": Count()})
    costs = Aggregate("costs", click, pk="COSTS", sk="ALL", measures={"cost": Sum("cost")})
    world = World(clicks)
    time = datetime.fromtimestamp(world.clock(), UTC).isoformat()
    world.accept(click, *({"ad": "a", "time": time, "client": str(n), **({"cost": 5} if n else {})} for n in range(3)))
    world.deploy(clicks, costs)
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
    assert [confirm(world.store, *entry) for entry in late] == [False, True]
