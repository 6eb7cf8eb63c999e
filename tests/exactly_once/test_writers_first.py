"""Writers and readers that are deployed before the aggregator takes over use the definitions that the table has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Sum, Window
from simulation.faults.hooked_client import HookedClient
from simulation.workbench import Workbench

VISIT = Event("visit", pk="SITE#{site}", sk="VISIT#{at}#{id}")
WEIGHT = Aggregate("weight", VISIT, pk="SITE#{site}", sk="WEIGHT", measures={"all": Sum("weight")})
PACE = Window("pace", VISIT, pk="SITE#{site}", time="at", measure=Sum("weight"))
BY_PAGE = replace(WEIGHT, sk="WEIGHT#{page}")


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench([WEIGHT, PACE], shards=2)
    assert bench.counters.accept(VISIT, visit(bench, 1)).status == "accepted"
    bench.deliver_all()
    return bench


def visit(bench: Workbench, number: int) -> dict[str, Any]:
    return {"site": "s", "page": "p", "id": number, "at": int(bench.clock.now), "weight": 3}


def test_a_transaction_counts_by_the_definition_in_force(bench: Workbench) -> None:
    changed: list[Any] = [replace(WEIGHT, measures={"all": Count()}), replace(PACE, measure=Count())]
    assert bench.counters.record_once(VISIT, visit(bench, 2), changed).status == "accepted"
    bench.deliver_all()
    bench.deploy(changed, as_declared=True)
    bench.deliver_all()
    assert bench.counters.get(WEIGHT, {"site": "s"}, consistent=True).measures == {"all": 6}


def test_an_increment_and_a_read_use_the_groups_in_force(bench: Workbench) -> None:
    group = {"site": "s", "page": "p"}
    assert bench.counters.increment(BY_PAGE, group, amount=100) == {"all": 103}
    assert bench.counters.get(BY_PAGE, group, consistent=True).measures == {"all": 103}


def test_an_unchanged_definition_costs_no_request(bench: Workbench) -> None:
    asked: Counter[str] = Counter()

    def note(operation: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        asked[operation] += 1
        return send()

    client: Any = HookedClient(bench.table, note)
    counters = Counters(bench.table.name, client=client, clock=bench.clock)
    for _ in range(3):
        counters.get(replace(WEIGHT), {"site": "s"})
    assert asked == {"get_item": 4}
