"""Backfills and verifications, while writers go on: each guard that keeps them exact, and waits, which end in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import pytest
from botocore.exceptions import ClientError

from counters_cli.accept import Lag, wait_until_counted
from counters_cli.backfill import Backfill
from counters_lambda.counting.feeds import Scan, Source
from counters_lambda.counting.run_logs import RunLogs
from counters_lambda.counting.runner import SCANNING, WAITING, Lineage, Progress
from counters_lambda.counting.verification import Verification
from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, Items, Sum, Window
from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._declarations import Declarable
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, changes_of
from dynamodb_counters._items.schema import PK, SK
from dynamodb_counters._quarantine import Quarantine
from dynamodb_counters._registry import FILLING, Run, typed_runs, write_registry
from dynamodb_counters._tiers import DAY, HOUR
from dynamodb_counters.errors import BackfillError, CommitError
from simulation.faults.hooked_client import HookedClient, failing
from simulation.memory.client_errors import failure
from simulation.world import World, interrupt, reach
from tests.unit.fold.streams import NOW, record

ORDER = Items("order", where=Attr("customer").exists())
NUMBER = Aggregate("orders", ORDER, pk="ORDERS", sk="NUMBER", measures={"orders": Count()})
REVENUE = Aggregate("revenue", ORDER, pk="CUSTOMER#{customer}", sk="REVENUE", measures={"total": Sum("price")})


class Orders(World):
    """A table of orders, of which some are `sold`."""

    number = 0

    def __init__(self, *declared: Any, sold: int = 0, **options: Any) -> None:
        super().__init__(*declared, **options)
        if sold:
            self.sell(sold)

    def order(self, number: int, price: int = 10, customer: str = "ann", **more: Any) -> None:
        self.put(f"ORDER#{number}", "ORDER", customer=customer, price=price, **more)

    def cancel(self, *numbers: int) -> None:
        for number in numbers:
            self.table.delete_item(TableName=self.name, Key={"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}})

    def sell(self, count: int = 1, price: int = 10, customer: str = "ann") -> None:
        """Put orders, and deliver them."""
        for _ in range(count):
            self.number += 1
            self.order(self.number, price, customer)
        self.settle()


def compared_and_ended(world: World) -> tuple[Verification, Iterator[Progress]]:
    """Return a verification that has ended, and the steps left to another process that compares in the same run."""
    first = world.verification()
    steps = first.steps()
    second = world.verification(run=reach(steps, "draining").run).steps()
    reach(second, "comparing")
    list(steps)
    return first, second


@pytest.fixture
def world() -> Orders:
    """Return a table that counts something else already: 20 orders, delivered."""
    world = Orders(REVENUE, shards=3)
    for number in range(20):
        world.order(number)
    world.deliver_all()
    world.skip()
    return world


def described(client: Any, change: Callable[[Any], Any]) -> HookedClient:
    """Return a client of a table that is described otherwise."""
    return HookedClient(client, lambda name, send, _: change(send()) if name == "describe_table" else send())


def older(client: Any, minutes: int, hours: float = 0.0) -> HookedClient:
    """Return a client of a table that is some minutes older than its stream; both began `hours` before the world."""
    began = datetime(2026, 11, 20, 10, 0, 0, 123000, tzinfo=UTC) - timedelta(hours=hours)
    label = (began + timedelta(minutes=minutes)).replace(tzinfo=None).isoformat(timespec="milliseconds")
    times = {"CreationDateTime": began, "LatestStreamLabel": label}
    return described(client, lambda answer: {"Table": answer["Table"] | times})


@pytest.mark.parametrize(("minutes", "hours"), [(60, 0), (0, 0), (0, 22.5), (0, 23.5), (0, 24.5), (0, 5000)])
def test_a_table_that_is_older_than_what_its_stream_shows_is_not_whole(minutes: int, hours: float) -> None:
    world = Orders(NUMBER, founds=False)
    world.order(1)
    world.skip()
    world.order(2)
    world.aggregator = world.process(older(world.table, minutes, hours))
    world.deliver_new()
    is_whole = minutes == 0 and hours < 23
    assert world.read(NUMBER)[1] is is_whole
    if not is_whole:
        world.fill()
        assert world.read(NUMBER) == ({"orders": 2}, True)


def test_a_baseline_that_was_added_before_its_process_died_is_not_added_again(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    world.fill(run=next(step.run for step in world.backfill().steps() if step.phase == "adding" and step.done))
    assert world.read(NUMBER) == ({"orders": 20}, True)


def test_a_count_that_is_right_has_no_differences_while_traffic_flows(world: Orders) -> None:
    verifying = world.verification(segments=2, page_items=5)
    for number, _ in enumerate(verifying.steps()):
        world.order(100 + number, 7, f"customer{number % 3}")
        world.cancel(number % 20)
        if number % 3 == 0:
            world.deliver_new()
    assert (verifying.differences, verifying.compared > 3) == ([], True)


def test_a_run_consumes_no_more_units_a_second_than_it_may(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    begun = world.clock()
    *_, last = world.backfill(units_per_second=0.02).steps()
    assert world.clock() - begun >= last.units / 0.02 > 300


def test_a_sample_of_the_groups_is_compared_and_the_same_one_each_time(world: Orders) -> None:
    for number in range(40):
        world.order(100 + number, 1, f"customer{number}")
        world.spoil(REVENUE, "total", 5, customer=f"customer{number}")
    world.deliver_new()

    runs = [world.verification(sample=sample) for sample in (0.3, 1.0, 0.3)]
    for verifying in runs:
        list(verifying.steps())
    groups = [{str(difference.group) for difference in verifying.differences} for verifying in runs]
    assert (5 < runs[0].compared < 25, runs[1].compared > 40, len(groups[1])) == (True, True, 40)
    assert (runs[0].compared, groups[0]) == (runs[2].compared, groups[2])
    assert groups[0] < groups[1]


def test_a_difference_that_another_process_has_repaired_is_not_repaired_again(world: Orders) -> None:
    world.spoil(REVENUE, "total", 5, customer="ann")
    first, second = world.verify(), world.verify()
    assert (first.repair(), second.repair(), first.repair()) == ((1, 0), (0, 1), (0, 1))
    assert world.missing() == []


def test_events_that_a_scan_takes_for_late_are_no_drift() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), retention=timedelta(days=20))
    assert [tier.name for tier in jobs._kept_tiers] == ["hour", "day"]
    world = World(jobs)
    for number in range(120):
        world.accept(job, {"id": number, "at": int(world.clock())})
        world.deliver_new()
        world.clock.advance(5 * HOUR)
        world.table.expire()
    # The hours of the first day that is kept are late until this one.
    oldest = datetime.fromtimestamp(world.clock(), UTC) - timedelta(days=20)
    bucket = {"_tier": "D", "_bucket": oldest.date().isoformat()}
    [day] = [item for item in world.table.items() if item["sk"]["S"].endswith(bucket["_bucket"])]
    world.write({**day, **{name: {"N": str(int(day.get(name, {"N": "0"})["N"]) + 1)} for name in ("h00", "h20")}})
    verifying = world.verification()
    for _ in verifying.steps():
        world.accept(job, {"id": -int(world.clock()), "at": int(world.clock())})
        world.clock.advance(70)
        world.deliver_new()
    assert [(difference.group, difference.missing) for difference in verifying.differences] == [(bucket, {"h20": -1})]


def test_events_that_a_transaction_counts_long_after_the_cut_are_not_early() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), future_tolerance=timedelta(minutes=5))
    world = World(jobs)
    verifying = world.verification()
    for number, progress in enumerate(verifying.steps()):
        if progress.phase in (WAITING, SCANNING):
            world.counters.record_once(job, {"id": number, "at": int(world.clock())}, [jobs])
            world.clock.advance(400)
        world.deliver_new()
    assert (verifying.differences, verifying.compared > 0) == ([], True)


__all__ = ["world"]

RUN = Run("b1", "backfill", NOW, ("revenue",))
PER_CUSTOMER = Aggregate("per-customer", ORDER, pk="CUSTOMER#{customer}", sk="ORDERS", measures={"orders": Count()})
CUSTOMERS = Aggregate("customers", PER_CUSTOMER, pk="CUSTOMERS", sk="NUMBER", measures={"customers": Count()})


def test_a_scan_goes_on_from_another_that_read_the_same_page(world: Orders) -> None:
    table, run = world.store, Run("b1", "backfill", 0, ("revenue",))
    common: dict[str, Any] = {"table": table, "run": run, "sources": (Source(table, (PK, SK)),), "segments": 1}
    common |= {"plan": Plan((REVENUE,)), "quarantine": Quarantine(table, DAY), "spend": lambda _: None}
    scans = [Scan(**common, page_items=page_items).rounds() for page_items in (3, 5, 7)]
    total = sum("customer" in item or item.get("_type") == {"S": "revenue"} for item in world.table.items())
    # Side by side, each to its end.
    read = {max(scanned) for scanned in zip(*zip_longest(*scans, fillvalue=0), strict=True)}
    pages = [item for item in world.table.items() if item[PK] == {"S": f"CHECKPOINT#run~{run.id}~scan~0"}]
    counted = [int(page["items"]["N"]) for page in pages]
    assert counted == sorted(counted)
    assert (read, total <= counted[-1]) == ({counted[-1]}, True)


def created(*late: float) -> list[Change]:
    """Return changes of an item that follow each other, though they are dated otherwise."""
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "ORDER"}}
    return changes_of([record(100 + place, key, created=NOW + by) for place, by in enumerate(late)])


def test_a_cut_stays_where_it_is_though_times_of_creation_do_not_grow(world: Orders) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html: approximate."""
    first, second, third = created(1, -1, -2)
    assert RunLogs(world.store).cut(RUN, "shard", [first, second]) == first.sequence
    assert RunLogs(world.store).cut(RUN, "shard", [second, third]) == first.sequence


def test_a_record_long_after_the_cut_stays_past_it_though_the_next_one_is_dated_earlier(world: Orders) -> None:
    """The cut is not written when the first of them comes, which may come again."""
    (first, second), logs = created(SKEW + 1, SKEW - 1), RunLogs(world.store)
    assert logs.cut(RUN, "shard", [first]) == first.sequence
    assert logs.cut(RUN, "shard", [second]) == second.sequence
    assert logs.cut(RUN, "shard", [first]) == first.sequence
    assert RunLogs(world.store).cut(RUN, "shard", [first, second]) == first.sequence


def test_a_run_begins_again_if_a_shard_was_split_near_its_cut(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    steps = world.backfill().steps()
    first = next(steps).run
    world.table.stream.split(world.table.stream.open_shards()[0])
    last = [*steps][-1]
    assert (last.phase, last.run != first) == ("complete", True)
    assert world.read(NUMBER) == ({"orders": 20}, True)


def test_a_run_that_is_given_up_leaves_what_another_fills_to_that_one(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER, PER_CUSTOMER)
    first, second = (world.backfill(name).steps() for name in ("orders", "per-customer"))
    run, _ = (reach(steps, SCANNING).run for steps in (first, second))
    world.backfill(run=run).give_up()
    assert [*second][-1].phase == "complete"
    assert world.read(PER_CUSTOMER, customer="ann")[1]
    assert not world.read(NUMBER)[1]
    with pytest.raises(BackfillError, match="is void"):
        list(first)


def test_a_verification_compares_nothing_that_a_backfill_fills_meanwhile(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    works = world.backfill(), world.verification()
    for steps in [work.steps() for work in works]:
        reach(steps, SCANNING)
        world.order(21, 5)
    assert [*steps][-1].phase == "complete"
    assert (works[1].differences, works[1].compared) == ([], 1)


def test_incomplete_groups_are_not_counted_as_if_they_were_whole(world: Orders) -> None:
    world.deploy(REVENUE, PER_CUSTOMER, CUSTOMERS)
    world.fill("customers")
    assert world.read(CUSTOMERS) == ({"customers": 1}, True)
    assert world.read(PER_CUSTOMER, customer="ann") == ({"orders": 20}, True)


def refuse(world: Orders) -> None:
    """Log what is new, as far as it comes to that, and fail to count it; it stays to be delivered."""
    by = world.process(failing(world.table, "update_item", error=failure("UpdateItem", "InternalServerError")))
    for shard, records in world.new().items():
        if records:
            with suppress(CommitError, ClientError):
                world.deliver(records, shard, by=by)


def checkpoint(world: Orders) -> None:
    """Count what is new, to the end of its window; then the group loses its watermarks."""
    for shard, records in world.skip().items():
        if records:
            world.deliver(records, shard)
            world.end_window(records, shard)
    item = world.item(world.group_item(REVENUE, customer="ann")) or {}
    world.write({name: value for name, value in item.items() if not name.startswith("_w")})


@pytest.mark.parametrize("meanwhile", [refuse, checkpoint])
def test_records_that_are_logged_alone_or_that_a_checkpoint_covers_are_no_drift(
    world: Orders, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Orders], None]
) -> None:
    def late() -> None:
        world.order(60, 5)
        meanwhile(world)

    interrupt(monkeypatch, Verification, "_finish", late)
    assert world.missing() == []


def test_records_before_the_cut_are_counted_before_a_heartbeat_acknowledges_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Orders(REVENUE, sold=1)
    waited, verifying = 0, world.verification()
    for step in verifying.steps():
        if step.phase == "waiting" and not waited:
            world.order(2, 5)
            monkeypatch.setattr(world, "deliver_new", lambda: refuse(world))
            waited = 1
        waited += step.phase == "draining"
        if waited == 6:
            monkeypatch.undo()
    assert (waited, verifying.differences) == (6, [])


def test_expired_items_are_no_drift(world: Orders) -> None:
    world.order(99, 9, ttl=int(world.clock()) + 5)
    world.clock.advance(6)
    world.cancel(99)
    world.deliver_new()
    assert world.missing() == [("unknown", {"total": -9})]


def test_a_verification_that_another_process_has_ended_reports_nothing(world: Orders) -> None:
    first, second = compared_and_ended(world)
    assert first.differences == []
    world.clock.advance(61)
    world.order(60, 5)
    world.deliver_new()
    with pytest.raises(BackfillError, match="another process has ended run"):
        list(second)


def test_a_backfill_waits_until_the_log_is_past_its_scan(world: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(REVENUE, NUMBER)
    steps = world.backfill().steps()
    reach(steps, "draining")
    for number in range(60, 80):
        world.order(number, 5)
    # Logged records may be from before the end of the scan, by the clocks.
    world.deliver_new()
    with monkeypatch.context() as context:
        context.setattr(world, "deliver_new", lambda: None)
        assert {next(steps).phase for _ in range(5)} == {"draining"}
    assert [*steps][-1].phase == "complete"
    assert world.read(NUMBER) == ({"orders": 40}, True)


def test_a_shard_of_few_keys_is_met_by_a_heartbeat_before_long(world: Orders) -> None:
    stream = world.table.stream
    for _ in range(10):
        # The last one open owns half the keys of the one before; no order's key is left to it.
        stream.split(stream.open_shards()[-1])
    world.deploy(REVENUE, NUMBER)
    begun = world.clock()
    world.fill(NUMBER.name)
    assert world.clock() - begun < 2 * HOUR


def test_a_run_that_waits_long_writes_ever_fewer_heartbeats(world: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(REVENUE, NUMBER)
    steps = world.backfill().steps()
    reach(steps, "draining")
    begun = world.clock()
    with monkeypatch.context() as stopped:
        stopped.setattr(world, "deliver_new", lambda: None)
        while world.clock() < begun + HOUR:
            next(steps)
    assert sum("~beat~" in item["pk"]["S"] for item in world.table.items()) < 10_000
    assert [*steps][-1].phase == "complete"


def test_the_slowest_shard_is_waited_for() -> None:
    """Children of one that has acknowledged the run need not."""
    assert Lineage({"one": "", "two": ""}, frozenset({"one", "two"})).waiting({"one": True, "two": False}) == ["two"]
    lineage = Lineage({"parent": "", "child": "parent", "grandchild": "child"}, frozenset({"grandchild"}))
    assert lineage.waiting({"parent": True}) == []


def test_the_second_of_two_writes_of_the_registry_is_refused(world: Orders) -> None:
    registry = world.registry
    run = Run("v1", "verify", 10**10, ("revenue",))
    assert write_registry(world.store, registry, (), attributes=typed_runs([run]))
    assert not write_registry(world.store, registry, (), attributes=typed_runs([]))
    assert world.registry.runs == (run,)


@pytest.mark.parametrize("times", [1, 10])
def test_shards_that_split_while_groups_are_read_make_no_drift_and_are_not_read_for_ever(
    world: Orders, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    read, splits = Verification._read, iter(range(times))

    def late(self: Any, refs: Any) -> Any:
        if next(splits, None) is not None:
            for shard in world.table.stream.open_shards():
                world.table.stream.split(shard)
            world.order(60, 5)
            world.deliver_new()
        return read(self, refs)

    monkeypatch.setattr(Verification, "_read", late)
    endless = pytest.raises(BackfillError, match="splitting its shards all the time")
    with endless if times == 10 else nullcontext():
        verifying = world.verify()
        assert (verifying.differences, verifying.compared) == ([], 1)


_DECLARED: dict[str, Declarable] = {
    "one group": Aggregate("orders", ORDER),
    "groups": Aggregate("spent", ORDER, by="customer", spent=Sum("price")),
    "pages": Aggregate("paged", ORDER, by="customer", pages=True),
    "write shards": Aggregate("sharded", ORDER, by="customer", write_shards=3),
    "members": Distinct("customers", ORDER, by=(), member="customer"),
}


def wait(world: World, *, delivers: bool = False) -> None:
    wait_until_counted(world.reached(sleep=world.sleep if delivers else None), world.feeds, 60)


@pytest.mark.parametrize("kind", _DECLARED)
def test_a_wait_ends_once_all_is_counted(kind: str) -> None:
    world = Orders(_DECLARED[kind])
    for number in range(60):
        world.order(number, number, f"c{number % 7}")
    world.cancel(*range(0, 60, 9))
    with pytest.raises(TimeoutError, match="groups have not counted all that came before, after 60 s"):
        wait(world)
    wait(world, delivers=True)
    world.skip()
    assert world.missing() == []
    wait(world)


def test_each_group_is_waited_for_up_to_its_last_record() -> None:
    world = Orders(_DECLARED["groups"])
    for number in range(20):
        world.order(number, 1, f"c{number % 2}")
    # Nothing counts it, so nothing waits for it.
    world.put("other", "code")
    lag = Lag(world.store, world.feeds)
    assert lag.settle() > 0
    world.deliver([entry for entry in world.records() if entry["dynamodb"]["Keys"]["pk"]["S"] != "ORDER#19"][:19])
    assert lag.settle() > 0
    world.settle()
    # What comes later is not waited for.
    world.order(20, 1, "c0")
    assert lag.settle() == 0


def test_a_table_that_nothing_counts_is_refused() -> None:
    with pytest.raises(BackfillError, match="nothing counts the table"):
        wait(Orders(REVENUE, founds=False))


def test_a_name_that_a_backfill_fills_is_not_waited_for() -> None:
    world = Orders(REVENUE)
    world.order(1)
    world.deploy(REVENUE, NUMBER)
    next(world.run(Backfill, sleep=world.clock.advance).steps())
    assert world.state("orders") == FILLING
    # It came before the cut: the scan counts it, and no delivery does.
    lag = Lag(world.store, world.feeds)
    world.deliver_new()
    assert lag.settle() == 0
