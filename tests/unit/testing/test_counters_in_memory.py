"""Counters in memory are what Lambda and DynamoDB make of the same writes, at once and on a clock of the test's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Count,
    Counter,
    Distinct,
    Event,
    Items,
    Ranking,
    Sum,
    TableKeys,
    Threshold,
)
from dynamodb_counters._declarations.measures import Measure
from dynamodb_counters._fold import layouts
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.testing import QuarantinedRecordsError, counters_in_memory
from simulation import counters_in_memory as simulated
from simulation.counters_in_memory import Faults
from simulation.specification.traces import unguarded

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=1))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
VISITORS = Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS", member="clientId")
ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", version="revision")
TAKEN = Aggregate("taken", ORDER, pk="SHOP#{shop}", sk="TAKEN", measures={"taken": Sum("price")})
HOME = {"url": "/"}
ALL_FAULTS = Faults(crash=0.5, redeliver=0.5, split=0.3)
MAKERS = [counters_in_memory, partial(simulated.counters_in_memory, faults=ALL_FAULTS)]


def view(second: int = 0, client: str = "c1") -> dict[str, Any]:
    return {"url": "/", "time": f"2026-01-01T00:00:{second:02}Z", "clientId": client}


KEYS = TableKeys("id", ttl="expiresAt")
TASK = Items("task", where=Attr("kind").eq("task"))
JOB = Items("job", keys=KEYS)


def of_team(source: Items) -> Aggregate:
    measures: dict[str, Measure] = {"n": Count(), "points": Sum("points")}
    return Aggregate("teams", source, pk="TEAM#{team}", sk="POINTS", measures=measures, on_expiry="subtract")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("source", "key", "ttl"), [(TASK, {"pk": "TASK#1", "sk": "TASK"}, "ttl"), (JOB, {"id": "1"}, "expiresAt")]
)
def test_own_items_are_counted_as_they_change(
    source: Items, key: dict[str, Any], ttl: str, make: Callable[..., Any]
) -> None:
    teams, item = of_team(source), {**key, "kind": "task", "team": "red", "points": 2}
    with make([teams]) as counters:

        def red() -> dict[str, Any]:
            return dict(counters.get(teams, team="red").measures)

        counters.table.put_item(Item=item)
        assert red() == {"n": 1, "points": 2}
        counters.table.update_item(Key=key, UpdateExpression="ADD points :more", ExpressionAttributeValues={":more": 3})
        assert (red(), counters.table.get_item(Key=key)["Item"]["points"]) == ({"n": 1, "points": 5}, 5)
        counters.table.delete_item(Key=key)
        assert red() == {"n": 0, "points": 0}
        counters.table.put_item(Item={**item, ttl: int(counters.clock()) + 60})
        counters.clock.advance(timedelta(seconds=59))
        assert red() == {"n": 1, "points": 2}
        counters.clock.advance(timedelta(seconds=1))
        assert red() == {"n": 0, "points": 0}


@pytest.mark.parametrize("late", [0.0, 1.0])
def test_an_expired_item_stays_for_days_if_its_expiry_is_late(late: float) -> None:
    teams, item = of_team(TASK), {"pk": "TASK#1", "sk": "TASK", "kind": "task", "team": "red", "points": 2}
    with simulated.counters_in_memory([teams], faults=Faults(late_expiry=late)) as counters:
        counters.table.put_item(Item={**item, "ttl": int(counters.clock()) + 60})
        counts = []
        for passed in (timedelta(minutes=2), timedelta(days=2)):
            counters.clock.advance(passed)
            counts.append(int(counters.get(teams, team="red").measures["n"]))
        assert counts == [int(late), 0]


def test_a_leaderboard_is_read() -> None:
    ranking = Ranking(measure="views", leaderboard="URLS")
    top = Aggregate("top", VIEW, pk="URL#{url}", sk="TOP", measures={"views": Count()}, ranking=ranking)
    with counters_in_memory([top]) as counters:
        counters.accept_many(VIEW, [{**view(n), "url": url} for n, url in enumerate("aab")])
        assert [(ranked.values["url"], int(ranked["views"])) for ranked in counters.top(top)] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("source", [TASK, JOB])
def test_crossings_are_returned_once_and_in_order(source: Items, make: Callable[..., Any]) -> None:
    teams = of_team(source)
    goal = Threshold("goal", teams, at=[5, 10], measure="points", direction="both")
    with make([teams, goal]) as counters:
        assert counters.crossings() == []
        for points in (4, 12, 0):
            key = {"pk": "TASK#1", "sk": "TASK"} if source is TASK else {"id": "1"}
            counters.table.put_item(Item={**key, "kind": "task", "team": "red", "points": points})
        rows = counters.crossings()
    assert [(row["level"], row["direction"]) for row in rows] == [(5, "up"), (10, "up"), (10, "down"), (5, "down")]
    assert {(row["threshold"], row["group"]["team"]) for row in rows} == {("goal", "red")}
    assert [(row["old"], row["new"]) for row in rows] == [(4, 12), (4, 12), (12, 0), (12, 0)]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_over_a_counter_counts_its_groups(make: Callable[..., Any]) -> None:
    stock = Counter("stock", by=("shop", "sku"), left=Count())
    shops = Aggregate("shops", stock, by="shop", left=Sum("left"), kinds=Count())
    with make([stock, shops, Threshold("low", stock, at=[2], direction="down")]) as counters:
        for sku, amount in (("x", 3), ("y", 5), ("x", -2), ("y", -5)):
            counters.increment(stock, shop="a", sku=sku, amount=amount)
        assert counters.get(shops, shop="a").measures == {"left": 1, "kinds": 1}
        counters.reset(stock, shop="a", sku="x")
        assert counters.get(shops, shop="a").measures == {"left": 0, "kinds": 0}
        assert {(row["group"]["sku"], row["level"]) for row in counters.crossings()} == {("x", 2), ("y", 2)}


def test_the_client_serves_code_that_takes_one() -> None:
    with counters_in_memory([VIEWS]) as counters:
        item = {"pk": {"S": "URL#/"}, "sk": {"S": "T#1"}, "_type": {"S": "view"}, "url": {"S": "/"}}
        counters.client.put_item(TableName=counters.table_name, Item=item)
        assert counters.get(VIEWS, HOME).measures == {"views": 1}


def test_a_batch_of_your_own_items_is_counted() -> None:
    teams = of_team(JOB)
    with counters_in_memory([teams]) as counters:
        with counters.table.batch_writer() as batch:
            for number in range(30):
                batch.put_item(Item={"id": str(number), "team": "red", "points": number})
        assert counters.get(teams, team="red").measures == {"n": 30, "points": sum(range(30))}


def test_an_item_that_an_update_creates_is_counted_once() -> None:
    jobs, names = Aggregate("jobs", JOB, pk="JOBS", sk="JOBS", measures={"n": Count()}), []
    with counters_in_memory([jobs]) as counters:
        for points in (1, 2):
            with patch.object(counters._aggregator, "handle", wraps=counters._aggregator.handle) as handle:
                values = {":points": points}
                counters.table.update_item(
                    Key={"id": "1"}, UpdateExpression="SET points = :points", ExpressionAttributeValues=values
                )
            delivered = [record for call in handle.call_args_list for record in call.args[0]["Records"]]
            names += [record["eventName"] for record in delivered if "id" in record["dynamodb"]["Keys"]]
        assert counters.get(jobs).measures == {"n": 1}
    assert names == ["INSERT", "MODIFY"]


def test_a_transaction_that_is_refused_leaves_nothing_to_count() -> None:
    teams = of_team(TASK)
    with counters_in_memory([teams]) as counters:
        conflict, free = ({"pk": {"S": f"TASK#{number}"}, "sk": {"S": "TASK"}, "team": {"S": "red"}} for number in "12")
        items = [{**item, "kind": {"S": "task"}, "points": {"N": "1"}} for item in (free, conflict)]
        counters.client.put_item(TableName=counters.table_name, Item=items[1])
        puts = [
            {"Put": {"TableName": counters.table_name, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}}
            for item in items
        ]
        with pytest.raises(counters.client.exceptions.TransactionCanceledException):
            counters.client.transact_write_items(TransactItems=puts)
        counters.client.transact_write_items(TransactItems=puts[:1])
        assert counters.get(teams, team="red").measures == {"n": 2, "points": 2}


def test_what_comes_after_a_transaction_that_is_refused_is_counted() -> None:
    with counters_in_memory([VIEWS]) as counters:
        counters.accept(VIEW, view())
        assert counters.record_once(VIEW, view(), [VIEWS]).status == "duplicate"
        counters.accept_many(VIEW, [view(1), view(2)])
        assert counters.get(VIEWS, HOME).measures == {"views": 3}


def test_two_tables_of_counts_are_apart_and_writers_of_several_threads_lose_nothing() -> None:
    with counters_in_memory([VIEWS]) as counters, counters_in_memory([VIEWS]) as other, ThreadPoolExecutor(4) as pool:
        outcomes = pool.map(lambda number: counters.accept(VIEW, view(number)), range(20))
        assert {outcome.status for outcome in outcomes} == {"accepted"}
        other.accept(VIEW, view())
        assert [table.get(VIEWS, HOME).measures for table in (counters, other)] == [{"views": 20}, {"views": 1}]
        assert [line.adds for line in counters.explain(VIEWS, url="/").lines] == [{"views": 1}] * 20


BAD = {"id": "1", "shop": "a", "price": "five", "revision": 1}


def test_records_that_cannot_be_counted_fail_at_the_end_of_a_test_unless_it_fails_by_its_own_error() -> None:
    refusal = pytest.raises(QuarantinedRecordsError, match=r"1 quarantined.*\n- taken: .*price")
    with refusal as raised, counters_in_memory([TAKEN]) as counters:
        counters.accept(ORDER, BAD)
    assert [entry.names for entry in raised.value.entries] == [("taken",)]
    with pytest.raises(KeyError, match="accepted"), counters_in_memory([TAKEN]) as counters:
        _ = dict[str, Any]()[counters.accept(ORDER, BAD).status]


@pytest.mark.parametrize("retention", [None, timedelta(days=7)])
def test_records_that_could_not_be_counted_are_listed_however_long_ago(retention: timedelta | None) -> None:
    order = replace(ORDER, retention=retention)
    with counters_in_memory([replace(TAKEN, source=order)], quarantine="keep") as counters:
        counters.accept(order, BAD)
        counters.clock.advance(timedelta(days=3650))
        with pytest.raises(QuarantinedRecordsError):
            counters.require_all_counted()


def test_a_seed_decides_everything() -> None:
    def stored(seed: int) -> list[Any]:
        with simulated.counters_in_memory([VIEWS, VISITORS], seed=seed, faults=ALL_FAULTS) as counters:
            counters.accept_many(VIEW, [view(number) for number in range(30)])
            return sorted(map(repr, counters.client.scan(TableName=counters.table_name)["Items"]))

    assert stored(1) == stored(1)
    assert stored(1) != stored(2)


@pytest.mark.parametrize("seed", [0, 14])
def test_a_batch_is_counted_after_a_crash_long_after_the_one_before(seed: int) -> None:
    with simulated.counters_in_memory([VIEWS], seed=seed, faults=Faults(crash=0.7)) as counters:
        for number in range(12):
            counters.clock.advance(timedelta(hours=20))
            counters.accept(VIEW, view(number))
        assert counters.get(VIEWS, HOME).measures == {"views": 12}


def test_faults_find_an_aggregator_that_counts_twice() -> None:
    def counted(seed: int) -> Any:
        with simulated.counters_in_memory([VIEWS], seed=seed, faults=Faults(redeliver=0.9, crash=0.5)) as counters:
            counters.accept_many(VIEW, [view(number) for number in range(30)])
            return counters.get(VIEWS, HOME)["views"]

    assert {counted(seed) for seed in range(5)} == {30}
    with patch.object(layouts, "update_request", unguarded):
        assert any(counted(seed) != 30 for seed in range(5))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"declarations": VIEWS}, "declarations"),
        ({"declarations": ["views"]}, "declarations"),
        ({"now": datetime(2026, 1, 1)}, "now"),  # noqa: DTZ001
        ({"now": 5}, "now"),
        ({"quarantine": "ignore"}, "quarantine"),
    ],
)
def test_wrong_arguments_are_named(settings: dict[str, Any], named: str) -> None:
    arguments = {"declarations": [VIEWS], **settings}
    with pytest.raises(InvalidArgumentError, match=f"^invalid {named}="), counters_in_memory(**arguments):
        pass


def test_time_goes_forward() -> None:
    with counters_in_memory([VIEWS]) as counters, pytest.raises(InvalidArgumentError, match=r"^invalid duration="):
        counters.clock.advance(timedelta(seconds=-1))


def test_the_plugin_loads_nothing_heavy() -> None:
    heavy = "boto3 botocore moto dynamodb_counters.testing dynamodb_counters._counters"
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; import dynamodb_counters._pytest_plugin; "
        f"print(*(name for name in {heavy!r}.split() if name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_an_increment_takes_the_floats_that_accept_takes() -> None:
    counter = Counter("taken", by="shop")
    with counters_in_memory([counter]) as counters:
        assert counters.increment(counter, shop="a", amount=0.1) == {"taken": Decimal("0.1")}
        assert counters.increment(counter, shop="a", amount={"taken": 0.5}) == {"taken": Decimal("0.6")}
        with pytest.raises(InvalidArgumentError, match="at most 15 digits"):
            counters.increment(counter, shop="a", amount=0.1 + 0.2)
