"""A wait ends once all is counted that the table held when it began, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Distinct, Sum
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.lag import Lag, wait_until_counted
from dynamodb_counters._control.registry import FILLING, read_registry
from dynamodb_counters._declarations import flatten
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from tests.exactly_once.test_backfill import NUMBER, ORDER, REVENUE, Live, backfill, delete, feeds, put

_DECLARED: dict[str, Any] = {
    "one group": Aggregate("orders", ORDER),
    "groups": Aggregate("spent", ORDER, by="customer", spent=Sum("price")),
    "pages": Aggregate("paged", ORDER, by="customer", pages=True),
    "write shards": Aggregate("sharded", ORDER, by="customer", write_shards=3),
    "members": Distinct("customers", ORDER, by=(), member="customer"),
}


def _idle(live: Live) -> Table:
    """A table on which time passes and nothing is delivered."""
    client: Any = live.bench.table
    return Table(live.bench.table.name, client, clock=live.bench.clock, sleep=live.bench.clock.advance)


@pytest.mark.parametrize("kind", _DECLARED)
def test_a_wait_ends_once_all_is_counted(kind: str) -> None:
    live = Live(*flatten([_DECLARED[kind]]))
    for number in range(60):
        put(live.bench, number, number, f"c{number % 7}")
    for number in range(0, 60, 9):
        delete(live.bench, number)
    with pytest.raises(TimeoutError, match="groups have not counted all that came before, after 60 s"):
        wait_until_counted(_idle(live), feeds(live.bench), 60)

    wait_until_counted(backfill(live.bench, live.stream).table, feeds(live.bench), 60)
    live.stream.skip()
    assert live.verify().differences == []
    wait_until_counted(_idle(live), feeds(live.bench), 1)


def test_each_group_is_waited_for_up_to_its_last_record() -> None:
    live = Live(_DECLARED["groups"])
    for number in range(20):
        put(live.bench, number, 1, f"c{number % 2}")
    lag = Lag(_idle(live), feeds(live.bench))
    assert lag.settle() > 0
    for shard in live.bench.shards():
        live.bench.deliver(live.bench.young(live.bench.records(shard)[:-1]), shard)
    assert lag.settle() > 0
    live.deliver()
    # What comes later is not waited for.
    put(live.bench, 20, 1, "c0")
    assert lag.settle() == 0


def test_what_nothing_counts_is_not_waited_for() -> None:
    live = Live(_DECLARED["groups"])
    live.bench.table.put_item(TableName=live.bench.table.name, Item={"pk": {"S": "other"}, "sk": {"S": "code"}})
    wait_until_counted(_idle(live), feeds(live.bench), 1)


def test_a_table_that_nothing_counts_is_refused() -> None:
    live = Live(REVENUE, founds=False)
    with pytest.raises(BackfillError, match="nothing counts the table"):
        wait_until_counted(_idle(live), feeds(live.bench), 1)


def test_a_name_that_a_backfill_fills_is_not_waited_for() -> None:
    live = Live(REVENUE)
    put(live.bench, 1, 10)
    live.bench.deploy([REVENUE, NUMBER])
    table = _idle(live)
    steps = Backfill(table=table, feeds=feeds(live.bench), now=live.bench.clock).steps()
    next(steps)
    assert read_registry(table).entries["orders"].state == FILLING
    # It came before the cut: the scan counts it, and no delivery does.
    lag = Lag(table, feeds(live.bench))
    live.stream.deliver()
    assert lag.settle() == 0
