"""Leases on every engine: conditions, nonces and answers are as the in-memory engine has them."""

from __future__ import annotations

from dynamodb_counters import Quota
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
