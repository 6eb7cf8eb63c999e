"""Guards that keep runs exact, one at a time: each of these tests fails without its guard."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count
from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._backfill.feeds import Scan, Source
from dynamodb_counters._backfill.runner import SCANNING, Lineage
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.registry import read_registry, write_registry
from dynamodb_counters._control.run_items import Run, RunLogs, typed_runs
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import BackfillError, CommitError
from simulation.faults.hooked_client import failing
from simulation.memory.client_errors import failure
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import (
    NUMBER,
    ORDER,
    REVENUE,
    Stream,
    backfill,
    before_the_end,
    bench,
    compared_and_ended,
    feeds,
    fill,
    put,
    read,
    verification,
    verify,
)
from tests.unit.fold.streams import NOW, record

__all__ = ["bench"]

RUN = Run("b1", "backfill", NOW, ("revenue",))
PER_CUSTOMER = Aggregate("per-customer", ORDER, pk="CUSTOMER#{customer}", sk="ORDERS", measures={"orders": Count()})
CUSTOMERS = Aggregate("customers", PER_CUSTOMER, pk="CUSTOMERS", sk="NUMBER", measures={"customers": Count()})


def test_a_scan_goes_on_from_another_that_read_the_same_page(bench: Workbench) -> None:
    run = Run("b1", "backfill", 0, ("revenue",))
    table = bench.store
    scans = [
        Scan(
            table=table,
            sources=(Source(table, (PK, SK)),),
            run=run,
            plan=Plan((REVENUE,)),
            segments=1,
            page_items=page_items,
            quarantine=Quarantine(table, DAY),
            spend=lambda _: None,
        ).rounds()
        for page_items in (3, 5, 7)
    ]
    total = sum("customer" in item or item.get("_type") == {"S": "revenue"} for item in bench.table.items())
    for scan in scans:
        next(scan)
    read: dict[int, int] = {}
    while scans:
        for scan in list(scans):
            scanned = next(scan, None)
            if scanned is None:
                scans.remove(scan)
            else:
                read[id(scan)] = scanned
    held = [item for item in bench.table.items() if item[PK] == {"S": f"CHECKPOINT#run~{run.id}~scan~0"}]
    counted = [int(page["items"]["N"]) for page in held]
    items = counted[-1]
    assert counted == sorted(counted)
    assert (set(read.values()), total <= items) == ({items}, True)


def test_a_cut_stays_where_it_is_though_times_of_creation_do_not_grow(bench: Workbench) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html: approximate."""
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "ORDER"}}
    late = (1, -1, -2)
    first, second, third = changes_of([record(100 + place, key, created=NOW + by) for place, by in enumerate(late)])
    assert RunLogs(bench.store).cut(RUN, "shard", [first, second]) == first.sequence
    assert RunLogs(bench.store).cut(RUN, "shard", [second, third]) == first.sequence


def test_a_record_long_after_the_cut_stays_past_it_though_the_next_one_is_dated_earlier(bench: Workbench) -> None:
    """The cut is not written when the first of them comes, which may come again."""
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "ORDER"}}
    first, second = changes_of([record(100 + place, key, created=NOW + SKEW + by) for place, by in enumerate((1, -1))])
    logs = RunLogs(bench.store)
    assert logs.cut(RUN, "shard", [first]) == first.sequence
    assert logs.cut(RUN, "shard", [second]) == second.sequence
    assert logs.cut(RUN, "shard", [first]) == first.sequence
    assert RunLogs(bench.store).cut(RUN, "shard", [first, second]) == first.sequence


def test_a_run_begins_again_if_a_shard_was_split_near_its_cut(bench: Workbench) -> None:
    bench.deploy([REVENUE, NUMBER])
    stream = Stream(bench)
    stream.deliver()
    steps = backfill(bench, stream).steps()
    first = next(steps).run
    bench.table.stream.split(bench.table.stream.open_shards()[0])
    last = [*steps][-1]
    assert (last.phase, last.run != first) == ("complete", True)
    bench.clock.advance(61)
    assert read(bench, NUMBER) == ({"orders": 20}, True)


def test_a_run_that_is_given_up_leaves_what_another_fills_to_that_one(bench: Workbench) -> None:
    stream = Stream(bench)
    bench.deploy([REVENUE, NUMBER, PER_CUSTOMER])
    stream.deliver()
    first, second = (backfill(bench, stream, names=[name]).steps() for name in ("orders", "per-customer"))
    runs = [next(step.run for step in steps if step.phase == "scanning") for steps in (first, second)]
    backfill(bench, stream, run=runs[0]).give_up()
    assert [*second][-1].phase == "complete"
    bench.clock.advance(61)
    assert read(bench, PER_CUSTOMER, customer="ann")[1]
    assert not read(bench, NUMBER)[1]
    with pytest.raises(BackfillError, match="is void"):
        list(first)


def test_a_verification_compares_nothing_that_a_backfill_fills_meanwhile(bench: Workbench) -> None:
    stream = Stream(bench)
    bench.deploy([REVENUE, NUMBER])
    stream.deliver()
    works = backfill(bench, stream), verification(bench, stream)
    for steps in [work.steps() for work in works]:
        while next(steps).phase != SCANNING:
            pass
        put(bench, 21, 5)
    assert [*steps][-1].phase == "complete"
    assert (works[1].differences, works[1].compared) == ([], 1)


def test_incomplete_groups_are_not_counted_as_if_they_were_whole(bench: Workbench) -> None:
    bench.deploy([REVENUE, PER_CUSTOMER, CUSTOMERS])
    stream = Stream(bench)
    stream.deliver()
    fill(bench, stream, names=["customers"])
    assert read(bench, CUSTOMERS) == ({"customers": 1}, True)
    assert read(bench, PER_CUSTOMER, customer="ann") == ({"orders": 20}, True)


def refuse(bench: Workbench, stream: Stream) -> None:
    """Log what is new, as far as it comes to that, and fail to count it; it stays to be delivered."""
    by = bench.process(failing(bench.table, "update_item", error=failure("UpdateItem", "InternalServerError")))
    for shard, records in stream.new().items():
        if records:
            with suppress(CommitError, ClientError):
                bench.deliver(records, shard, by=by)


def test_records_logged_but_not_counted_yet_are_no_drift(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(bench)

    def late() -> None:
        put(bench, 60, 5)
        refuse(bench, stream)

    before_the_end(monkeypatch, Verification, late)
    assert verify(bench, stream).differences == []


def test_records_that_a_checkpoint_covers_need_no_watermark(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(bench)

    def late() -> None:
        put(bench, 60, 5)
        for shard, records in stream.skip().items():
            if records:
                bench.deliver(records, shard)
                bench.end_window(records, shard)
        [key] = ItemLayout(REVENUE).keys(group_key(REVENUE, {"customer": "ann"}))
        item = bench.table.get_item(TableName=bench.table.name, Key=key)["Item"]
        pruned = {name: value for name, value in item.items() if not name.startswith("_w")}
        bench.table.put_item(TableName=bench.table.name, Item=pruned)

    before_the_end(monkeypatch, Verification, late)
    assert verify(bench, stream).differences == []


def test_records_before_the_cut_are_counted_before_a_heartbeat_acknowledges_it() -> None:
    bench = Workbench([REVENUE])
    put(bench, 1, 10)
    bench.deliver_all()
    stream = Stream(bench)
    stream.deliver()
    is_broken, waited = False, 0

    def sleep(seconds: float) -> None:
        bench.clock.advance(seconds)
        if is_broken:
            refuse(bench, stream)
        else:
            stream.deliver()

    client: Any = bench.table
    table = Table(bench.table.name, client, clock=bench.clock, sleep=sleep)
    verifying = Verification(table=table, feeds=feeds(bench), now=bench.clock)
    for step in verifying.steps():
        if step.phase == "waiting" and not is_broken:
            put(bench, 2, 5)
            is_broken = True
        waited += step.phase == "draining"
        is_broken = is_broken and waited < 5
    assert (waited, verifying.differences) == (5, [])


def test_expired_items_are_no_drift(bench: Workbench) -> None:
    key = {"pk": {"S": "ORDER#99"}, "sk": {"S": "ORDER"}}
    item = {**key, "customer": {"S": "ann"}, "price": {"N": "9"}, "ttl": {"N": str(int(bench.clock()) + 5)}}
    bench.table.put_item(TableName=bench.table.name, Item=item)
    bench.clock.advance(6)
    bench.table.delete_item(TableName=bench.table.name, Key=key)
    stream = Stream(bench)
    stream.deliver()
    verifying = verify(bench, stream)
    assert [(each.verdict, each.missing) for each in verifying.differences] == [("unknown", {"total": -9})]


def test_a_verification_that_another_process_has_ended_reports_nothing(bench: Workbench) -> None:
    stream = Stream(bench)
    first, second = compared_and_ended(bench, stream)
    assert first.differences == []
    bench.clock.advance(61)
    put(bench, 60, 5)
    stream.deliver()
    with pytest.raises(BackfillError, match="another process has ended run"):
        list(second)


def test_a_backfill_waits_until_the_log_is_past_its_scan(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.deploy([REVENUE, NUMBER])
    stream = Stream(bench)
    stream.deliver()
    steps = backfill(bench, stream).steps()
    next(step for step in steps if step.phase == "draining")
    for number in range(60, 80):
        put(bench, number, 5)
    # Logged records may be from before the end of the scan, by the clocks.
    stream.deliver()
    with monkeypatch.context() as held:
        held.setattr(stream, "deliver", lambda: None)
        assert {next(steps).phase for _ in range(5)} == {"draining"}
    assert [*steps][-1].phase == "complete"
    assert read(bench, NUMBER) == ({"orders": 40}, True)


def test_the_slowest_shard_is_waited_for() -> None:
    lineage = Lineage({"one": "", "two": ""}, frozenset({"one", "two"}))
    assert lineage.waiting({"one": True, "two": False}) == ["two"]


def test_children_of_a_shard_that_has_acknowledged_a_run_need_not() -> None:
    lineage = Lineage({"parent": "", "child": "parent", "grandchild": "child"}, frozenset({"grandchild"}))
    assert lineage.waiting({"parent": True}) == []


def test_the_second_of_two_writes_of_the_registry_is_refused(bench: Workbench) -> None:
    seen = read_registry(bench.store)
    run = Run("v1", "verify", 10**10, ("revenue",))
    assert write_registry(bench.store, seen, (), attributes=typed_runs([run]))
    assert not write_registry(bench.store, seen, (), attributes=typed_runs([]))
    assert read_registry(bench.store).runs == (run,)


def split_while_groups_are_read(bench: Workbench, stream: Stream, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Have a shard split, and its children counted, each time before groups are read."""
    read_groups, splits = Verification._read, iter(range(times))

    def late(self: Any, refs: Any) -> Any:
        if next(splits, None) is not None:
            for shard in bench.table.stream.open_shards():
                bench.table.stream.split(shard)
            put(bench, 60, 5)
            stream.deliver()
        return read_groups(self, refs)

    monkeypatch.setattr(Verification, "_read", late)


def test_records_of_a_shard_that_began_while_groups_were_read_are_no_drift(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(bench)
    split_while_groups_are_read(bench, stream, monkeypatch, times=1)
    verifying = verify(bench, stream)
    assert (verifying.differences, verifying.compared) == ([], 1)


def test_a_verification_does_not_read_for_ever_while_shards_split(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(bench)
    split_while_groups_are_read(bench, stream, monkeypatch, times=10)
    with pytest.raises(BackfillError, match="splitting its shards all the time"):
        list(verification(bench, stream).steps())
