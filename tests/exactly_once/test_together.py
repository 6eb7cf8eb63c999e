"""Items that a process has updated lately are updated many at once; what that does not settle, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._commit import commit
from dynamodb_counters.errors import CommitError
from simulation.faults.hooked_client import HookedClient
from simulation.memory.client_errors import failure
from simulation.world import World

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
BY_SHOP = Aggregate("by_shop", SALE, pk="SHOP#{shop}", sk="SALES", n=Count(), cents=Sum("cents"))
SHOPS = 60

Answer = Callable[[Callable[[], Any], dict[str, Any]], Any]


class Shops(World):
    """A process that has counted one sale of each shop, and what it sends for the next ones."""

    def __init__(self) -> None:
        super().__init__(BY_SHOP, founds=False)
        self.calls: list[str] = []
        self.answer: Answer = lambda send, _: send()
        self.aggregator = self.process(HookedClient(self.table, self._hook))
        # Checkpoints are updates, too, and drop what is delivered again.
        self.aggregator._checkpoints.committed = lambda *_: 0.0  # type: ignore[method-assign]
        self.sales = 0
        self.last: list[Any] = []
        self.count()

    def _hook(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        self.calls.append(name)
        return self.answer(send, request) if name == "batch_execute_statement" else send()

    def sell(self, cents: Callable[[int], int] = lambda _: 5) -> list[Any]:
        """Accept a sale of each shop; return the records."""
        self.sales += 1
        shops = range(SHOPS)
        return self.accept(SALE, *({"id": f"{self.sales}#{n}", "shop": f"{n}", "cents": cents(n)} for n in shops))

    def count(self, records: list[Any] | None = None, *, again: bool = False) -> None:
        """Deliver sales, perhaps after those delivered last."""
        records = self.sell() if records is None else records
        self.calls.clear()
        self.report = self.deliver([*(self.last if again else ()), *records])
        self.last = records or self.last

    def updates(self) -> tuple[int, int]:
        return self.calls.count("batch_execute_statement"), self.calls.count("update_item")

    def groups(self) -> list[tuple[Any, ...]]:
        groups = self.counters.get_many([(BY_SHOP, {"shop": f"{shop}"}) for shop in range(SHOPS)])
        return [tuple(group.measures.values()) for group in groups]

    def require_exact(self, times: int = 2) -> None:
        assert {*self.groups()} == {(times, 5 * times)}


@pytest.fixture
def world() -> Shops:
    return Shops()


def test_recent_items_are_updated_25_at_once(world: Shops) -> None:
    world.count()
    assert world.updates() == (3, 0)
    assert world.report.write_units == SHOPS
    world.require_exact()


def test_items_of_ten_minutes_ago_are_looked_at_again(world: Shops) -> None:
    world.clock.advance(601)
    world.count()
    assert world.updates() == (0, SHOPS)
    world.require_exact()


def test_an_item_that_is_gone_or_lacks_a_number_is_updated_by_itself(world: Shops) -> None:
    for shop in ("1", "2"):
        world.delete(world.group_item(BY_SHOP, shop=shop))
    item = world.item(world.group_item(BY_SHOP, shop="3")) or {}
    world.write({name: value for name, value in item.items() if name != "cents"})
    world.count()
    assert world.updates() == (3, 3)
    assert world.groups()[1] == (1, 5)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_fails_is_followed_by_one_for_each_item(world: Shops, *, is_done: bool) -> None:
    def fail(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if is_done:
            send()
        raise failure("BatchExecuteStatement", "InternalServerError")

    world.answer = fail
    world.count()
    assert world.updates() == (3, SHOPS)
    world.require_exact()


@pytest.mark.parametrize("code", ["ThrottlingError", "TransactionConflict", "ValidationError", "InternalServerError"])
def test_a_statement_that_is_refused_is_followed_by_an_update(world: Shops, code: str) -> None:
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


def test_a_redelivery_is_refused_by_the_watermark_and_a_longer_one_goes_on(world: Shops) -> None:
    world.count()
    world.count([], again=True)
    assert world.updates() == (3, 0)
    world.count(again=True)
    assert world.updates() == (6, 0)
    world.require_exact(3)


def test_a_refusal_that_does_not_show_the_item_is_decided_by_an_update(world: Shops) -> None:
    def hide(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        for response in answer["Responses"]:
            response.get("Error", {}).pop("Item", None)
        return answer

    world.count()
    world.answer = hide
    world.count([], again=True)
    assert world.updates() == (3, SHOPS)
    world.require_exact()


def test_a_statement_that_is_too_long_goes_alone(world: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = set[int]()

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        lengths.update(len(statement["Statement"]) for statement in request["Statements"])
        return send()

    world.answer = look
    world.count()
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", max(lengths) - 1)
    # Without cents to add, a statement is shorter.
    world.count(world.sell(lambda shop: 5 * (shop % 2)))
    assert world.updates() == (3, SHOPS // 2)
    assert [cents for _, cents in world.groups()] == [10, 15] * (SHOPS // 2)
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", 100)
    world.count()
    assert world.updates() == (0, SHOPS)


def test_a_sum_of_39_digits_refuses_no_call_of_others(world: Shops) -> None:
    digits: list[int] = []

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        parameters = [value for statement in request["Statements"] for value in statement["Parameters"]]
        digits.extend(len(value["N"]) for value in parameters if "N" in value)
        return send()

    world.answer = look
    large = world.accept(SALE, *({"id": n, "shop": "0", "cents": 9 * 10**37} for n in "ab"))
    world.count([*large, *world.sell()])
    assert world.report.quarantined == 1
    assert max(digits) <= 38
    assert world.updates()[0] == 3


def test_no_request_of_many_begins_without_time(world: Shops) -> None:
    records = world.sell()
    world.calls.clear()
    with pytest.raises(CommitError, match="time is nearly up"):
        world.aggregator.handle({"shardId": world.shards()[0], "Records": records}, lambda: 5.0)
    assert "batch_execute_statement" not in world.calls
