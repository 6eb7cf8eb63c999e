"""Each safety mechanism alone, in the situation it is there for; and items that are updated many at once."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from counters_lambda.counting import commit
from dynamodb_counters import Aggregate, Attr, Count, Event, Items, Sum
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient, failing
from simulation.faults.process import in_disorder
from simulation.memory.client_errors import failure
from simulation.pairs.function import fail_for
from simulation.world import World

SALE = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}", retention=timedelta(days=30))
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})
COUNTED = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count()})
"""As a later version may count them: without the amount."""


@pytest.fixture
def world() -> World:
    return World(SALES)


def _sell(world: World, *ids: int, amount: Any = 1) -> None:
    for number in ids:
        assert world.counters.accept(SALE, {"shop": "x", "id": number, "amount": amount}).status == "accepted"


def _sell_and_deliver(world: World, number: int, amount: Any = 1) -> None:
    _sell(world, number, amount=amount)
    world.deliver_all()


def _sales(world: World, declared: Aggregate = SALES) -> int:
    return int(world.counters.get(declared, {"shop": "x"}).measures["sales"])


def test_a_sum_of_zero_takes_back_what_a_failed_delivery_has_counted(world: World) -> None:
    _sell(world, 1)
    # The delivery ended after the first of two records.
    world.deliver(world.records())
    assert _sales(world) == 1
    sale = world.records()[0]
    world.counters.retract(SALE, {"shop": "x", "id": 1})
    world.deliver([sale, world.records()[-1]])
    assert _sales(world) == 0


def test_a_checkpoint_moves_after_what_cannot_be_counted_is_in_quarantine(world: World) -> None:
    _sell(world, 1, amount="much")
    dying = failing(world.table, "put_item", lambda put: put["Item"]["pk"]["S"].startswith("QUARANTINE#"))
    with pytest.raises(Crashed):
        world.deliver(world.records(), by=world.process(dying))
    world.deliver(world.records())
    [entry] = world.counters.quarantined()
    assert entry.names == ("sales",)


def test_a_redrive_counts_once_however_often_it_is_asked_for(world: World) -> None:
    _sell_and_deliver(world, 1, amount="much")
    world.end_window(world.records())
    world.mend(COUNTED)
    [record] = world.counters.quarantined()
    assert world.counters.redrive(record)
    assert not world.counters.redrive(record)
    world.deliver_all()
    world.deliver_all()
    assert _sales(world, COUNTED) == 1
    assert world.waiting() == 0


def test_a_batch_of_before_is_looked_up_again(world: World) -> None:
    _sell(world, 1)
    world.counters.accept(SALE, {"shop": "y", "id": 2, "amount": 1})
    former, mended = world.process(), world.process()
    fail_for(former, "sales")
    first, second = world.records()[:2]
    world.deliver([first], by=former)
    world.deliver([second], by=mended)
    world.deliver([first, second], by=mended)
    assert _sales(world) == 0
    assert world.redrive() == 1
    assert _sales(world) == 1


def test_a_batch_that_no_invocation_can_write_is_written_by_several(monkeypatch: pytest.MonkeyPatch) -> None:
    # Threads that the machine lets wait would leave more to be written again.
    disorder = in_disorder(random.Random(0))
    monkeypatch.setattr(Table, "side_by_side", lambda _, work, items: disorder(work, items))
    tagged = Aggregate("tagged", SALE, pk="TAG#{tags[]}", sk="ALL", measures={"sales": Count()})
    tags = [f"tag-{number}" for number in range(500)]
    world = World(tagged)
    assert world.counters.accept(SALE, {"shop": "x", "id": 1, "tags": tags}).status == "accepted"
    updates = 0

    def slow(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        nonlocal updates
        if name == "batch_execute_statement":
            # Else all that was written before would be refused in a few requests.
            raise failure("BatchExecuteStatement", "ThrottlingException")
        updates += name == "update_item"
        world.clock.advance(0.5 if name == "update_item" else 0.0)
        return send()

    deliveries, process = 0, world.process(HookedClient(world.table, slow))
    while deliveries < 10:
        deadline = world.clock.now + 112
        deliveries += 1
        with contextlib.suppress(CommitError):
            event = {"shardId": world.shards()[0], "Records": world.records()[:1]}
            process.handle(event, lambda: deadline - world.clock())  # noqa: B023
            break

    # 200 in each, of which the last few may be written in vain.
    assert deliveries in (3, 4)
    assert updates < 600
    counts = world.counters.get_many([(tagged, {"tags[]": tag}) for tag in tags])
    assert {group.measures["sales"] for group in counts} == {1}


def test_an_item_whose_watermark_is_spoiled_stops_nothing(world: World) -> None:
    _sell_and_deliver(world, 1)
    [item] = [dict(item) for item in world.table.items() if item["pk"] == {"S": "SALES#x"}]
    [watermark] = [name for name in item if name.startswith("_w")]
    world.write({**item, watermark: {"N": "7"}})
    _sell(world, 2, 3)
    assert world.counters.accept(SALE, {"shop": "y", "id": 4, "amount": 1}).status == "accepted"
    for _ in range(2):
        world.deliver(world.records()[-3:])
    assert _sales(world) == 1
    assert world.counters.get(SALES, {"shop": "y"}).measures["sales"] == 1
    waiting = [*world.counters.quarantined()]
    assert [entry.content["numbers"]["sales"] for entry in waiting] == ["1", "1"]
    assert all("may have been counted" in entry.reason for entry in waiting)
    world.end_window(world.records()[-1:])
    world.write(item)
    assert world.redrive() == 2
    assert _sales(world) == 3


def test_items_that_are_not_counted_for_their_type_are_reported() -> None:
    paths = Aggregate(
        "paths", Items("path", where=Attr("path").exists()), pk="PATH#{path}", sk="ALL", measures={"n": Count()}
    )
    world = World(paths)
    for number, more in enumerate(({}, {"_type": {"S": "Path"}}, {"_type": {"S": "Path"}})):
        world.write({"pk": {"S": f"ITEM#{number}"}, "sk": {"S": "ITEM"}, "path": {"S": "/"}, **more})
    report = world.deliver(world.records())
    assert (report.updated, report.skipped_types) == (1, {"Path": 2})


# Items that a process has updated lately are updated many at once; what that does not settle, one by one

SHOP_SALE = Event("sale", pk="SHOP_SALE#{id}", sk="SHOP_SALE")
BY_SHOP = Aggregate("by_shop", SHOP_SALE, pk="SHOP#{shop}", sk="SALES", n=Count(), cents=Sum("cents"))
NUMBER_OF_SHOPS = 60

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
        shops = range(NUMBER_OF_SHOPS)
        return self.accept(SHOP_SALE, *({"id": f"{self.sales}#{n}", "shop": f"{n}", "cents": cents(n)} for n in shops))

    def count(self, records: list[Any] | None = None, *, again: bool = False) -> None:
        """Deliver sales, perhaps after those delivered last."""
        records = self.sell() if records is None else records
        self.calls.clear()
        self.report = self.deliver([*(self.last if again else ()), *records])
        self.last = records or self.last

    def updates(self) -> tuple[int, int]:
        return self.calls.count("batch_execute_statement"), self.calls.count("update_item")

    def groups(self) -> list[tuple[Any, ...]]:
        groups = self.counters.get_many([(BY_SHOP, {"shop": f"{shop}"}) for shop in range(NUMBER_OF_SHOPS)])
        return [tuple(group.measures.values()) for group in groups]

    def require_exact(self, times: int = 2) -> None:
        assert {*self.groups()} == {(times, 5 * times)}


@pytest.fixture
def shops() -> Shops:
    return Shops()


def test_recent_items_are_updated_25_at_once(shops: Shops) -> None:
    shops.count()
    assert shops.updates() == (3, 0)
    assert shops.report.write_units == NUMBER_OF_SHOPS
    shops.require_exact()


def test_items_of_ten_minutes_ago_are_looked_at_again(shops: Shops) -> None:
    shops.clock.advance(601)
    shops.count()
    assert shops.updates() == (0, NUMBER_OF_SHOPS)
    shops.require_exact()


def test_an_item_that_is_gone_or_lacks_a_number_is_updated_by_itself(shops: Shops) -> None:
    for shop in ("1", "2"):
        shops.delete(shops.group_item(BY_SHOP, shop=shop))
    item = shops.item(shops.group_item(BY_SHOP, shop="3")) or {}
    shops.write({name: value for name, value in item.items() if name != "cents"})
    shops.count()
    assert shops.updates() == (3, 3)
    assert shops.groups()[1] == (1, 5)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_fails_is_followed_by_one_for_each_item(shops: Shops, *, is_done: bool) -> None:
    def fail(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if is_done:
            send()
        raise failure("BatchExecuteStatement", "InternalServerError")

    shops.answer = fail
    shops.count()
    assert shops.updates() == (3, NUMBER_OF_SHOPS)
    shops.require_exact()


@pytest.mark.parametrize("code", ["ThrottlingError", "TransactionConflict", "ValidationError", "InternalServerError"])
def test_a_statement_that_is_refused_is_followed_by_an_update(shops: Shops, code: str) -> None:
    def refuse(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        first, *_ = request["Statements"]
        request["Statements"].remove(first)
        answer = send()
        answer["Responses"].insert(0, {"Error": {"Code": code}})
        return answer

    shops.answer = refuse
    shops.count()
    assert shops.updates() == (3, 3)
    shops.require_exact()


def test_a_redelivery_is_refused_by_the_watermark_and_a_longer_one_goes_on(shops: Shops) -> None:
    shops.count()
    shops.count([], again=True)
    assert shops.updates() == (3, 0)
    shops.count(again=True)
    assert shops.updates() == (6, 0)
    shops.require_exact(3)


def test_a_refusal_that_does_not_show_the_item_is_decided_by_an_update(shops: Shops) -> None:
    def hide(send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        for response in answer["Responses"]:
            response.get("Error", {}).pop("Item", None)
        return answer

    shops.count()
    shops.answer = hide
    shops.count([], again=True)
    assert shops.updates() == (3, NUMBER_OF_SHOPS)
    shops.require_exact()


def test_a_statement_that_is_too_long_goes_alone(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = set[int]()

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        lengths.update(len(statement["Statement"]) for statement in request["Statements"])
        return send()

    shops.answer = look
    shops.count()
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", max(lengths) - 1)
    # Without cents to add, a statement is shorter.
    shops.count(shops.sell(lambda shop: 5 * (shop % 2)))
    assert shops.updates() == (3, NUMBER_OF_SHOPS // 2)
    assert [cents for _, cents in shops.groups()] == [10, 15] * (NUMBER_OF_SHOPS // 2)
    monkeypatch.setattr(commit, "MAX_STATEMENT_CHARACTERS", 100)
    shops.count()
    assert shops.updates() == (0, NUMBER_OF_SHOPS)


def test_a_sum_of_39_digits_refuses_no_call_of_others(shops: Shops) -> None:
    digits: list[int] = []

    def look(send: Callable[[], Any], request: dict[str, Any]) -> Any:
        parameters = [value for statement in request["Statements"] for value in statement["Parameters"]]
        digits.extend(len(value["N"]) for value in parameters if "N" in value)
        return send()

    shops.answer = look
    shops.count([*shops.accept(SHOP_SALE, *({"id": n, "shop": "0", "cents": 9 * 10**37} for n in "ab")), *shops.sell()])
    assert shops.report.quarantined == 1
    assert max(digits) <= 38
    assert shops.updates()[0] == 3


def test_no_request_of_many_begins_without_time(shops: Shops) -> None:
    records = shops.sell()
    shops.calls.clear()
    with pytest.raises(CommitError, match="time is nearly up"):
        shops.aggregator.handle({"shardId": shops.shards()[0], "Records": records}, lambda: 5.0)
    assert "batch_execute_statement" not in shops.calls
