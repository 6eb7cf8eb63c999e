"""Records count by the declarations of their time: each guard in the worst case it is there for."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.control import history_key
from dynamodb_counters._declarations import Aggregate, Count, Event, Sum
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._table import Table
from simulation.aws.sigv4 import LANDING_SECONDS, SKEW_SECONDS
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HeldClient
from simulation.schedules.sandbox import LONGEST_INVOCATION
from simulation.workbench import QUARANTINE_SECONDS, Workbench

SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE", retention=timedelta(days=30))
ONE = Aggregate("sales", SALE, pk="ONE", sk="ALL", measures={"n": Count()}, on_change="keep")
TWO = Aggregate("sales", SALE, pk="TWO", sk="ALL", measures={"n": Count()}, on_change="keep")
"""The same, elsewhere."""
OTHER = Aggregate("other", SALE, pk="OTHER", sk="ALL", measures={"n": Count()})
SUM = replace(ONE, measures={"n": Count(), "amount": Sum("amount")})
"""Folds less than `ONE`: events without amount go to quarantine."""


def _sell(bench: Workbench, number: int, **values: Any) -> None:
    assert bench.counters.accept(SALE, {"shop": "x", "id": number, **values}).status == "accepted"


def _counts(bench: Workbench, *aggregates: Aggregate) -> list[int]:
    """Counts under the keys of each: readers use those of the last deployment."""
    keys = [ItemLayout(aggregate).keys(group_key(aggregate, {}))[0] for aggregate in aggregates]
    items = [bench.table.get_item(TableName=bench.table.name, Key=key).get("Item", {}) for key in keys]
    return [int(item.get("n", {"N": "0"})["N"]) for item in items]


def _process(
    bench: Workbench, *declarations: Aggregate, client: Any = None, skew: float = 0.0, **more: Any
) -> Aggregator:
    """A process of a deployment that need not be the newest."""
    reached: Any = client or bench.table
    table = Table(
        bench.table.name,
        reached,
        clock=lambda: bench.clock.now + skew,
        sleep=bench.clock.advance,
    )
    return Aggregator(table, declarations, quarantine_retention_seconds=QUARANTINE_SECONDS, **more)


def _half_written(bench: Workbench) -> None:
    """A sale that one of two aggregates has counted, by a process that died."""
    _sell(bench, 1)
    held = HeldClient(bench.table, "update_item")
    with contextlib.suppress(Crashed):
        bench.deliver(bench.records(), by=bench.process(held))
    held.land()


def test_a_batch_half_written_is_finished_by_the_declarations_it_was_begun_by() -> None:
    bench = Workbench([ONE, OTHER])
    _half_written(bench)
    assert sorted(_counts(bench, ONE, OTHER)) == [0, 1]

    bench.deploy([SUM, OTHER])
    _sell(bench, 2, amount=5)
    bench.deliver_all()

    assert _counts(bench, ONE, OTHER) == [2, 2]
    assert bench.counters.get(SUM, {}).measures["amount"] == 5
    assert list(bench.counters.quarantined()) == []


def test_a_process_that_does_not_know_of_a_takeover_folds_nothing_that_comes_after_it() -> None:
    bench = Workbench([ONE])
    bench.aggregator.handle({})
    # Taken over at the last moment by a clock that is behind, which lands as late as it can...
    held = HeldClient(bench.table, "transact_write_items")
    newer = _process(bench, TWO, client=held, skew=-SKEW_SECONDS)
    with contextlib.suppress(Crashed):
        newer.handle({})
    bench.clock.advance(LONGEST_INVOCATION + LANDING_SECONDS)
    older = bench.process()
    older.handle({})
    held.land()
    # ...while one that knows nothing of it counts as long as it may.
    bench.clock.advance(FRESH - 1)
    _sell(bench, 1)
    bench.deliver(bench.records(), by=older)

    bench.deliver(bench.records(), by=_process(bench, TWO))
    assert _counts(bench, ONE, TWO) == [1, 0]


def test_a_warm_process_learns_of_a_takeover() -> None:
    bench = Workbench([ONE])
    older = bench.aggregator
    older.handle({})
    bench.deploy([TWO])
    _sell(bench, 1)

    bench.deliver(bench.records(), by=older)

    assert _counts(bench, ONE, TWO) == [0, 1]


def test_a_lost_history_leaves_in_doubt_what_was_begun() -> None:
    bench = Workbench([ONE, OTHER])
    bench.aggregator.handle({})
    bench.deploy([TWO, OTHER])
    _half_written(bench)
    bench.table.delete_item(TableName=bench.table.name, Key=history_key())

    report = bench.deliver(bench.records(), by=_process(bench, SUM, OTHER))

    # No item shows any more which process has begun to count it, and how.
    assert (report.checkpoint_lost, report.updated) == (True, 0)
    assert sorted(_counts(bench, TWO, OTHER)) == [0, 1]
    waiting = list(bench.counters.quarantined())
    assert sorted(entry.names for entry in waiting) == [("other",), ("sales",)]
    assert all("may have been counted" in entry.reason for entry in waiting)


def test_declarations_that_the_code_cannot_read_any_more_leave_in_doubt_and_double_nothing() -> None:
    bench = Workbench([ONE])
    _sell(bench, 1)
    _sell(bench, 2)
    bench.deliver(bench.records())
    for item in list(bench.table.items()):
        if item["sk"]["S"].startswith("DEPLOYMENT#"):
            bench.table.put_item(TableName=bench.table.name, Item={**item, "version": {"N": "0"}})
    _sell(bench, 3)
    bench.deploy([ONE, OTHER])
    report = bench.deliver(bench.records())
    assert "may have been counted" in next(iter(bench.counters.quarantined())).reason
    assert report.quarantined == 3
    _sell(bench, 4)
    bench.deliver_all()
    assert _counts(bench, ONE, OTHER) == [3, 1]
