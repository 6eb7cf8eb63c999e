"""Items that a process has updated lately are updated many at once; what that does not settle, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._commit import commit
from simulation.faults.hooked_client import HookedClient
from simulation.memory.client_errors import failure
from simulation.workbench import Workbench

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
BY_SHOP = Aggregate("by_shop", SALE, pk="SHOP#{shop}", sk="SALES", n=Count(), cents=Sum("cents"))
SHOPS = 60

Answer = Callable[[Callable[[], Any], dict[str, Any]], Any]


class World:
    """A process that has counted one sale of each shop, and what it sends for the next ones."""

    def __init__(self) -> None:
        self.bench = Workbench([BY_SHOP])
        self.calls: list[str] = []
        self.answer: Answer = lambda send, _: send()
        self.process = self.bench.process(HookedClient(self.bench.table, self._hook))
        # Checkpoints are updates, too, and drop what is delivered again.
        self.process._checkpoints.committed = lambda *_: 0.0  # type: ignore[method-assign]
        self.sales = self.delivered = 0
        self.count()

    def _hook(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        self.calls.append(name)
        return self.answer(send, request) if name == "batch_execute_statement" else send()

    def sell(self, cents: int = 5) -> None:
        self.sales += 1
        sales = [{"id": f"{self.sales}#{shop}", "shop": f"{shop}", "cents": cents} for shop in range(SHOPS)]
        self.bench.counters.accept_many(SALE, sales)

    def count(self, cents: int = 5) -> None:
        self.sell(cents)
        self.deliver()

    def deliver(self, again: int = 0) -> None:
        """Deliver what is new, and so many sales from before."""
        [shard] = self.bench.shards()
        records = [each for each in self.bench.records() if each["dynamodb"]["Keys"]["sk"]["S"] == "SALE"]
        batch = records[max(0, self.delivered - again) :]
        self.delivered = len(records)
        self.calls.clear()
        self.report = self.process.handle({"shardId": shard, "Records": batch})

    def updates(self) -> tuple[int, int]:
        return self.calls.count("batch_execute_statement"), self.calls.count("update_item")

    def require_exact(self, times: int = 2) -> None:
        groups = self.bench.counters.get_many([(BY_SHOP, {"shop": f"{shop}"}) for shop in range(SHOPS)])
        assert {tuple(group.measures.values()) for group in groups} == {(times, 5 * times)}


@pytest.fixture
def world() -> World:
    return World()


def test_recent_items_are_updated_25_at_once(world: World) -> None:
    world.count()
    assert world.updates() == (3, 0)
    assert world.report.write_units == SHOPS
    world.require_exact()


def test_items_of_ten_minutes_ago_are_looked_at_again(world: World) -> None:
    world.bench.clock.advance(601)
    world.count()
    assert world.updates() == (0, SHOPS)
    world.require_exact()


def test_an_item_that_is_gone_or_lacks_a_number_is_updated_by_itself(world: World) -> None:
    table = world.bench.table
    for shop in ("1", "2"):
        table.delete_item(TableName=table.name, Key={"pk": {"S": f"SHOP#{shop}"}, "sk": {"S": "SALES"}})
    item = table.get_item(TableName=table.name, Key={"pk": {"S": "SHOP#3"}, "sk": {"S": "SALES"}})["Item"]
    table.put_item(TableName=table.name, Item={name: value for name, value in item.items() if name != "cents"})
    world.count()
    assert world.updates() == (3, 3)
    [gone] = world.bench.counters.get_many([(BY_SHOP, {"shop": "1"})])
    assert gone.measures == {"n": 1, "cents": 5}


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_fails_is_followed_by_one_for_each_item(world: World, *, is_done: bool) -> None:
    def fail(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if is_done:
            send()
        raise failure("BatchExecuteStatement", "InternalServerError")

    world.answer = fail
    world.count()
    assert world.updates() == (3, SHOPS)
    world.require_exact()


@pytest.mark.parametrize("code", ["ThrottlingError", "TransactionConflict", "ValidationError", "InternalServerError"])
def test_a_statement_that_is_refused_is_followed_by_an_update(world: World, code: str) -> None:
    def refuse(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        first, *_ = request["Statements"]
        request["Statements"].remove(first)
        answer = send()
        answer["Responses"].insert(0, {"Error": {"Code": code}})
        return answer

    world.answer = refuse
    world.count()
    assert world.updates() == (3, 3)
    world.require_exact()


def test_a_redelivery_is_refused_by_the_watermark_and_a_longer_one_goes_on(world: World) -> None:
    world.count()
    world.deliver(again=SHOPS)
    assert world.updates() == (3, 0)
    world.sell()
    world.deliver(again=SHOPS)
    assert world.updates() == (6, 0)
    world.require_exact(3)


def test_a_refusal_that_does_not_show_the_item_is_decided_by_an_update(world: World) -> None:
    def hide(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        for response in answer["Responses"]:
            response.get("Error", {}).pop("Item", None)
        return answer

    world.count()
    world.answer = hide
    world.deliver(again=SHOPS)
    assert world.updates() == (3, SHOPS)
    world.require_exact()


def test_a_statement_that_is_too_long_goes_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = set[int]()

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        lengths.update(len(statement["Statement"]) for statement in request["Statements"])
        return send()

    world.answer = look
    world.count()
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", max(lengths) - 1)
    # Without cents to add, a statement is shorter.
    sales = [{"id": f"x{shop}", "shop": f"{shop}", "cents": 5 * (shop % 2)} for shop in range(SHOPS)]
    world.bench.counters.accept_many(SALE, sales)
    world.deliver()
    assert world.updates() == (3, SHOPS // 2)
    groups = world.bench.counters.get_many([(BY_SHOP, {"shop": f"{shop}"}) for shop in range(SHOPS)])
    assert [group["cents"] for group in groups] == [10, 15] * (SHOPS // 2)
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", 100)
    world.count()
    assert world.updates() == (0, SHOPS)


def test_a_sum_of_39_digits_refuses_no_call_of_others(world: World) -> None:
    digits: list[int] = []

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        parameters = [value for statement in request["Statements"] for value in statement["Parameters"]]
        digits.extend(len(value["N"]) for value in parameters if "N" in value)
        return send()

    world.answer = look
    world.bench.counters.accept_many(SALE, [{"id": f"{n}", "shop": "0", "cents": 9 * 10**37} for n in "ab"])
    world.count()
    assert world.report.quarantined == 1
    assert max(digits) <= 38
    assert world.updates()[0] == 3


def test_no_request_of_many_begins_without_time(world: World) -> None:
    world.sell()
    [shard] = world.bench.shards()
    with pytest.raises(Exception, match="time is nearly up"):
        world.process.handle({"shardId": shard, "Records": world.bench.records()}, lambda: 5.0)
    assert "batch_execute_statement" not in world.calls
