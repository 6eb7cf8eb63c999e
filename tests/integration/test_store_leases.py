"""Leases on every engine: conditions, nonces and answers are as the in-memory engine has them."""

from __future__ import annotations

from collections.abc import Callable

from dynamodb_counters import Quota
from dynamodb_counters._writes.quota_calls import Lease, QuotaCalls
from simulation.faults.hooked_client import HookedClient, once
from tests.integration.stores import Store

_CALLS = Quota("calls", limit=100, per="day", by=("customer",), portion=16)
_ONE = {"customer": "a#1"}


def test_a_quota_is_used_up_and_never_exceeded(store: Store) -> None:
    processes = [store.counters.leases(_CALLS, _ONE) for _ in range(3)]
    granted = sum(processes[call % 3].take() for call in range(40))
    assert granted == 40

    processes[0].release()
    processes[0].release()
    while processes[1].take() or processes[2].take():
        granted += 1
    processes[1].release()
    processes[2].release()
    store.clock.now += 2
    while processes[0].take():
        granted += 1

    assert granted == _CALLS.limit
    [item] = store.items()
    assert (item["pk"]["S"], item["reserved"]["N"]) == ("LEASES#calls#a%231", "100")


def test_leases_over_http_and_of_processes_share_a_quota(store: Store) -> None:
    process, calls = store.counters.leases(_CALLS, _ONE), QuotaCalls(store.table, _CALLS, _ONE)
    assert process.take(60)
    assert [calls.take(lease, n) for lease, n in (("a", 41), ("b", 40), ("b", 40))] == [None, Lease(40), Lease(40)]
    assert not process.take()
    assert [calls.give_back("b", 5) for _ in range(2)] == [Lease(40, 5)] * 2
    assert [calls.give_back("b", None), calls.give_back("c", None), calls.take("b", 40)] == [
        Lease(40, 5),
        None,
        Lease(40, 5),
    ]
    assert calls.reserved(_CALLS._period(store.clock())) == 95


def test_conditions_decide_where_others_come_first(store: Store) -> None:
    other = QuotaCalls(store.table, _CALLS, _ONE)

    def overtaken(by: Callable[[], object]) -> QuotaCalls:
        client = HookedClient(store.client, once(("transact_write_items",), by))
        return QuotaCalls(store.table.reached_by(client), _CALLS, _ONE)

    assert overtaken(lambda: other.take("a", 7)).take("a", 7) == Lease(7)
    assert overtaken(lambda: other.give_back("a", 3)).give_back("a", 3) == Lease(7, 3)
    assert overtaken(lambda: other.give_back("a", 3)).give_back("a", 2) == Lease(7, 3)
    assert overtaken(lambda: other.take("b", 90)).take("c", 7) is None
    assert other.reserved(_CALLS._period(store.clock())) == 94
