"""Each safety mechanism alone, in the situation it is there for."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from dynamodb_counters._declarations import Aggregate, Count, Event, Items, Sum
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient, failing
from simulation.faults.process import in_disorder
from simulation.memory.client_errors import failure
from simulation.schedules.sandbox import fail_for
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import mend

SALE = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}", retention=timedelta(days=30))
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})
COUNTED = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count()})
"""As a later version may count them: without the amount."""
HOUR = 3600


@pytest.fixture
def bench() -> Workbench:
    return Workbench([SALES])


def _sell(bench: Workbench, *ids: int, amount: Any = 1) -> None:
    for number in ids:
        assert bench.counters.accept(SALE, {"shop": "x", "id": number, "amount": amount}).status == "accepted"


def _sell_and_deliver(bench: Workbench, number: int, amount: Any = 1) -> None:
    _sell(bench, number, amount=amount)
    bench.deliver_all()


def _redrive_all(bench: Workbench) -> int:
    return sum(map(bench.counters.redrive, list(bench.counters.quarantined())))


def _sales(bench: Workbench, declared: Aggregate = SALES) -> int:
    return int(bench.counters.get(declared, {"shop": "x"}).measures["sales"])


def test_a_sum_of_zero_takes_back_what_a_failed_delivery_has_counted(bench: Workbench) -> None:
    _sell(bench, 1)
    # The delivery ended after the first of two records.
    bench.deliver(bench.records())
    assert _sales(bench) == 1
    sale = bench.records()[0]
    bench.counters.retract(SALE, {"shop": "x", "id": 1})
    taken_back = bench.records()[-1]
    bench.deliver([sale, taken_back])
    assert _sales(bench) == 0


def test_a_checkpoint_moves_after_what_cannot_be_counted_is_in_quarantine(bench: Workbench) -> None:
    _sell(bench, 1, amount="much")
    dying = failing(bench.table, "put_item", lambda put: put["Item"]["pk"]["S"].startswith("QUARANTINE#"))
    with pytest.raises(Crashed):
        bench.deliver(bench.records(), by=bench.process(dying))
    bench.deliver(bench.records())

    [entry] = bench.counters.quarantined()
    assert entry.names == ("sales",)


def test_a_redrive_counts_once_however_often_it_is_asked_for(bench: Workbench) -> None:
    _sell_and_deliver(bench, 1, amount="much")
    bench.end_window(bench.records())
    mend(bench, COUNTED)
    [record] = bench.counters.quarantined()
    assert bench.counters.redrive(record)
    assert not bench.counters.redrive(record)
    bench.deliver_all()
    bench.deliver_all()
    assert _sales(bench, COUNTED) == 1
    assert not list(bench.counters.quarantined())


def test_a_batch_of_before_is_looked_up_again(bench: Workbench) -> None:
    _sell(bench, 1)
    bench.counters.accept(SALE, {"shop": "y", "id": 2, "amount": 1})
    former, mended = bench.process(), bench.process()
    fail_for(former, "sales")
    first, second = bench.records()[:2]
    bench.deliver([first], by=former)

    bench.deliver([second], by=mended)
    bench.deliver([first, second], by=mended)

    assert _sales(bench) == 0
    assert _redrive_all(bench) == 1
    bench.deliver_all()
    assert _sales(bench) == 1


def test_images_that_one_declaration_cannot_fold_wait_for_it_alone() -> None:
    total = Aggregate("total", SALE, pk="TOTAL", sk="ALL", measures={"amount": Sum("amount")})
    numbers = Aggregate("numbers", SALE, pk="NUMBERS", sk="ALL", measures={"sales": Count()})
    bench = Workbench([total, numbers])
    _sell_and_deliver(bench, 1, amount="much")
    _sell_and_deliver(bench, 2)
    [entry] = bench.counters.quarantined()
    assert entry.names == ("total",)
    assert bench.counters.get(numbers, {}).measures == {"sales": 2}
    assert bench.counters.get(total, {}).measures == {"amount": 1}

    # An aggregate that is added later does not count what waits for another.
    added = Aggregate("added", SALE, pk="ADDED", sk="ALL", measures={"sales": Count()})
    mend(bench, replace(total, where=Attr("amount").ge(0)), numbers, added)
    assert bench.counters.redrive(entry)
    bench.deliver_all()
    assert bench.counters.get(numbers, {}).measures == {"sales": 2}
    assert bench.counters.get(added, {}).measures == {"sales": 0}
    assert list(bench.counters.quarantined()) == []


def test_events_that_a_transaction_has_counted_are_only_corrected_and_taken_back() -> None:
    versioned = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}", version="version")
    sales = Aggregate("sales", versioned, pk="SALES#{shop}", sk="ALL", measures={"amount": Sum("amount")})
    bench = Workbench([sales])

    def amount() -> Any:
        bench.deliver_all()
        return bench.counters.get(sales, {"shop": "x"}).measures["amount"]

    values = {"shop": "x", "id": 1, "version": 1, "amount": 5}
    bench.counters.record_once(versioned, values, [sales])
    assert amount() == 5
    bench.counters.accept(versioned, {**values, "version": 2, "amount": 7})
    assert amount() == 7
    bench.counters.record_once(versioned, {**values, "id": 2}, [sales])
    assert amount() == 12
    bench.counters.retract(versioned, {**values, "id": 2})
    assert amount() == 7


def test_a_change_that_concerns_no_measure_writes_nothing(bench: Workbench) -> None:
    _sell_and_deliver(bench, 1)
    records = len(bench.records())
    [item] = [item for item in bench.table.items() if item["_type"]["S"] == "sale"]
    bench.table.put_item(TableName=bench.table.name, Item={**item, "note": {"S": "seen"}})
    bench.deliver_all()
    assert len(bench.records()) == records + 1


def _left(bench: Workbench, deadline: float) -> float:
    return deadline - bench.clock.now


def test_a_batch_that_no_invocation_can_write_is_written_by_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Threads that the machine lets wait would leave more to be written again.
    disorder = in_disorder(random.Random(0))
    monkeypatch.setattr(Table, "side_by_side", lambda _, work, items: disorder(work, items))
    tagged = Aggregate("tagged", SALE, pk="TAG#{tags[]}", sk="ALL", measures={"sales": Count()})
    tags = [f"tag-{number}" for number in range(500)]
    bench = Workbench([tagged])
    assert bench.counters.accept(SALE, {"shop": "x", "id": 1, "tags": tags}).status == "accepted"
    updates = 0

    def slow(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        nonlocal updates
        if name == "batch_execute_statement":
            # Else all that was written before would be refused in a few requests.
            raise failure("BatchExecuteStatement", "ThrottlingException")
        updates += name == "update_item"
        bench.clock.advance(0.5 if name == "update_item" else 0.0)
        return send()

    deliveries, process = 0, bench.process(HookedClient(bench.table, slow))
    while deliveries < 10:
        deadline = bench.clock.now + 112
        deliveries += 1
        with contextlib.suppress(CommitError):
            event = {"shardId": bench.shards()[0], "Records": bench.records()[:1]}
            process.handle(event, partial(_left, bench, deadline))
            break

    # 200 in each, of which the last few may be written in vain.
    assert deliveries in (3, 4)
    assert updates < 600
    counts = bench.counters.get_many([(tagged, {"tags[]": tag}) for tag in tags])
    assert {group.measures["sales"] for group in counts} == {1}


def test_an_item_whose_watermark_is_spoiled_stops_nothing(bench: Workbench) -> None:
    _sell_and_deliver(bench, 1)
    [item] = [dict(item) for item in bench.table.items() if item["pk"] == {"S": "SALES#x"}]
    [watermark] = [name for name in item if name.startswith("_w")]
    bench.table.put_item(TableName=bench.table.name, Item={**item, watermark: {"N": "7"}})
    _sell(bench, 2, 3)
    assert bench.counters.accept(SALE, {"shop": "y", "id": 4, "amount": 1}).status == "accepted"

    for _ in range(2):
        bench.deliver(bench.records()[-3:])

    assert _sales(bench) == 1
    assert bench.counters.get(SALES, {"shop": "y"}).measures["sales"] == 1
    waiting = list(bench.counters.quarantined())
    assert [entry.content["numbers"]["sales"] for entry in waiting] == ["1", "1"]
    assert all("may have been counted" in entry.reason for entry in waiting)

    bench.end_window(bench.records()[-1:])
    bench.table.put_item(TableName=bench.table.name, Item=item)
    assert _redrive_all(bench) == 2
    bench.deliver_all()
    assert _sales(bench) == 3


def test_items_that_are_not_counted_for_their_type_are_reported() -> None:
    paths = Aggregate(
        "paths", Items("path", where=Attr("path").exists()), pk="PATH#{path}", sk="ALL", measures={"n": Count()}
    )
    bench = Workbench([paths])
    for number, more in enumerate(({}, {"_type": {"S": "Path"}}, {"_type": {"S": "Path"}})):
        item: Any = {"pk": {"S": f"ITEM#{number}"}, "sk": {"S": "ITEM"}, "path": {"S": "/"}, **more}
        bench.table.put_item(TableName=bench.table.name, Item=item)
    report = bench.deliver(bench.records())
    assert (report.updated, report.skipped_types) == (1, {"Path": 2})
