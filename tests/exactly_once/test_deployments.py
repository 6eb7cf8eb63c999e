"""Deployments of other declarations, each in the situation in which it once miscounted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import CountersError
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Aggregate, Count, Declaration, Event, Sum
from dynamodb_counters._table import Table
from simulation.faults.actors import Crashed
from simulation.workbench import QUARANTINE_SECONDS, Workbench

SALE = Event("sale", pk="SALE#{id}", sk="SALE", retention=timedelta(days=300))
BY_SHOP = Aggregate("by_shop", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
TOTAL = Aggregate("total", SALE, pk="TOTAL", sk="ALL", measures={"n": Count()})
REVENUE = Aggregate("revenue", SALE, pk="REVENUE", sk="ALL", measures={"amount": Sum("amount")})
FEES = replace(TOTAL, measures={"n": Count(), "fees": Sum("fee")})
"""The same with a sum more, of an attribute that events lack: it folds less."""


def _shops(source: Aggregate) -> Aggregate:
    return Aggregate("shops", source, pk="SHOPS", sk="ALL", measures={"shops": Count(), "n": Sum("n")})


def _sell(bench: Workbench, *numbers: int, **values: Any) -> None:
    for number in numbers:
        event = {"id": number, "shop": f"s{number % 3}", "amount": 1, **values}
        assert bench.counters.accept(SALE, event).status == "accepted"


def _process(bench: Workbench, declarations: Sequence[Declaration], client: Any = None, name: str = "") -> Aggregator:
    """A process of a deployment that need not be the last."""
    served: Any = client or bench.table
    table = Table(bench.table.name, served, clock=bench.clock, sleep=bench.clock.advance)
    more: dict[str, Any] = {"name": name} if name else {}
    return Aggregator(table, tuple(declarations), quarantine_retention_seconds=QUARANTINE_SECONDS, **more)


def _numbers(bench: Workbench, aggregate: Aggregate, **group: str) -> dict[str, int]:
    return {name: int(number) for name, number in bench.counters.get(aggregate, group).measures.items()}


def _redrive(bench: Workbench) -> int:
    """Send everything back that waits, and deliver it."""
    redriven = sum(map(bench.counters.redrive, list(bench.counters.quarantined())))
    bench.deliver_all()
    return redriven


class _DiesAt:
    """A client of a process that dies before it updates an item."""

    def __init__(self, bench: Workbench, pk: str) -> None:
        self._table, self._pk = bench.table, pk

    def __getattr__(self, name: str) -> Any:
        call: Callable[..., Any] = getattr(self._table, name)
        if name != "update_item":
            return call

        def update(**request: Any) -> Any:
            if request["Key"]["pk"] == {"S": self._pk}:
                raise Crashed
            return call(**request)

        return update


def test_a_batch_half_written_by_one_is_finished_by_one_that_folds_less() -> None:
    bench = Workbench([TOTAL, REVENUE])
    _sell(bench, 1)
    batch = bench.records()
    # Of two items it has written one, whichever comes first.
    for pk in ("REVENUE", "TOTAL"):
        with pytest.raises(Crashed):
            bench.deliver(batch, by=_process(bench, [TOTAL, REVENUE], _DiesAt(bench, pk)))
        if any(item["pk"]["S"] in ("REVENUE", "TOTAL") for item in bench.table.items()):
            break
    bench.deploy([FEES, REVENUE])
    bench.deliver(batch)
    bench.deploy([TOTAL, REVENUE])
    _redrive(bench)
    assert (_numbers(bench, TOTAL)["n"], _numbers(bench, REVENUE)) == (1, {"amount": 1})


def test_the_new_the_old_and_the_new_deployment_take_turns() -> None:
    bench = Workbench([TOTAL])
    new, old = _process(bench, [TOTAL]), _process(bench, [FEES])
    _sell(bench, 0)
    bench.deliver(bench.records(), by=new)
    bench.clock.advance(3600)
    _sell(bench, 1)
    batch = bench.records()
    bench.deliver(batch, by=old)
    # Its delivery was lost: the new deployment's process is still warm, and has asked long ago.
    bench.deliver(batch, by=new)
    bench.deploy([TOTAL])
    _redrive(bench)
    assert _numbers(bench, TOTAL) == {"n": 2}
    assert list(bench.counters.quarantined()) == []


def test_an_old_invocation_takes_back_what_the_new_deployment_has_taken_over() -> None:
    bench = Workbench([TOTAL])
    _sell(bench, 1)
    batch = bench.records()
    new, old = _process(bench, [TOTAL]), _process(bench, [FEES])
    bench.deliver(batch, by=new)
    # It was invoked before, and reaches the table only now.
    bench.deliver(batch, by=old)
    bench.deliver(batch, by=new)
    bench.deploy([TOTAL])
    _redrive(bench)
    assert _numbers(bench, TOTAL) == {"n": 1}


def test_an_old_image_that_is_in_quarantine_again_is_taken_back_once() -> None:
    bench = Workbench([REVENUE])
    _sell(bench, 1, amount="much")
    bench.table.delete_item(TableName=bench.table.name, Key={"pk": {"S": "SALE#1"}, "sk": {"S": "SALE"}})
    bench.deliver_all()
    [new_image, old_image] = sorted(bench.counters.quarantined(), key=lambda entry: entry.sequence)
    assert bench.counters.redrive(old_image)
    records = bench.records()
    bench.deliver(records)
    counted = replace(REVENUE, measures={"amount": Count()})
    bench.deploy([counted])
    # The redrive that failed is delivered again, to the deployment that could fold it.
    bench.deliver(records)
    while _redrive(bench):
        pass
    assert _numbers(bench, counted) == {"amount": 0}
    assert not bench.counters.redrive(new_image)


def test_two_stacks_on_one_table_are_told() -> None:
    bench = Workbench([TOTAL])
    _sell(bench, 1)
    one, two = _process(bench, [TOTAL], name="one/Counts"), _process(bench, [REVENUE], name="two/Counts")
    bench.deliver(bench.records(), by=one)
    with pytest.raises(CountersError, match=r"one/Counts.*two/Counts"):
        bench.deliver(bench.records(), by=two)
    bench.deliver_all()
    assert _numbers(bench, TOTAL) == {"n": 1}


def test_declarations_that_the_code_cannot_read_any_more_leave_in_doubt_and_double_nothing() -> None:
    bench = Workbench([TOTAL])
    _sell(bench, 1, 2)
    bench.deliver(bench.records())
    for item in list(bench.table.items()):
        if item["sk"]["S"].startswith("DEPLOYMENT#"):
            bench.table.put_item(TableName=bench.table.name, Item={**item, "version": {"N": "0"}})
    _sell(bench, 3)
    bench.deploy([TOTAL, REVENUE])
    report = bench.deliver(bench.records())
    assert "may have been counted" in next(iter(bench.counters.quarantined())).reason
    assert report.quarantined == 3
    _sell(bench, 4)
    bench.deliver_all()
    assert (_numbers(bench, TOTAL), _numbers(bench, REVENUE)) == ({"n": 3}, {"amount": 1})


def test_an_aggregate_that_is_added_takes_no_event_from_the_others() -> None:
    """Revenue of 38 stayed at 35, because the amounts of events from before the addition were withheld from all."""
    bench = Workbench([REVENUE])
    _sell(bench, *range(35))
    bench.deliver_all()
    bench.deploy([REVENUE, FEES])
    # Accepted by a producer that knows no fees yet.
    _sell(bench, *range(35, 38))
    bench.deliver_all()
    assert _numbers(bench, REVENUE) == {"amount": 38}
    assert [entry.names for entry in bench.counters.quarantined()] == [("total",)] * 3
