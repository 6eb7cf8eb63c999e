"""Quotas: never exceeded, and what is not used can be had by others, whatever goes wrong."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Aggregate, Count, Items, Leases, Quota
from dynamodb_counters._table import Table
from dynamodb_counters._writes.leases import Holding
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.memory_table import MemoryTable
from simulation.night import scaled
from simulation.quotas import quota_schedule
from simulation.quotas.quota_schedule import QuotaSchedule
from simulation.workbench import Workbench

SCHEDULES = scaled(50)
OFTEN = {quota_schedule.CRASHED: 5, quota_schedule.RETURNED: 50, quota_schedule.LEFT: 100, quota_schedule.ZOMBIE: 1}
"""How often so many schedules come across it, at least."""

CALLS = Quota("calls", limit=100, per="day", portion=10)


def test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong() -> None:
    reached: Counter[str] = Counter()
    for seed in range(1, 1 + SCHEDULES):
        reached += quota_schedule.check(seed).reached
    assert {name: reached[name] for name, times in OFTEN.items() if reached[name] < times * SCHEDULES // 50} == {}


def test_a_seed_decides_about_everything() -> None:
    assert QuotaSchedule(3).run() == QuotaSchedule(3).run()


def _leases(client: Any, clock: VirtualClock, quota: Quota = CALLS) -> Leases:
    return Leases(Table("counters", client, clock=clock, sleep=clock.advance, jitter=lambda: 0.5), quota, {})


def _reserved(client: MemoryTable) -> int:
    [item] = client.items()
    return int(item["reserved"]["N"])


def _take_all(leases: Leases) -> int:
    return next(number for number in range(10**6) if not leases.take())


def test_units_in_doubt_are_not_given_back_again() -> None:
    clock = VirtualClock()
    table = MemoryTable(clock)
    is_lost = [False]

    def lose(_: str, send: Callable[[], Any], __: dict[str, Any]) -> Any:
        answer = send()
        if is_lost[0]:
            is_lost[0] = False
            raise ReadTimeoutError(endpoint_url="http://table")
        return answer

    def tell(_: str, send: Callable[[], Any], __: dict[str, Any]) -> Any:
        # As boto3's client: no answer to this very request was lost.
        try:
            return send()
        except table.exceptions.ConditionalCheckFailedException as refusal:
            refusal.response["ResponseMetadata"] = {"AnswersLost": False}
            raise

    one, other = _leases(HookedClient(HookedClient(table, lose), tell), clock), _leases(table, clock)
    while one._holdings == {} or not next(iter(one._holdings.values())).units:
        clock.advance(1)
        assert one.take()
    is_lost[0] = True
    with pytest.raises(ReadTimeoutError):
        one.release()
    for _ in range(20):
        clock.advance(1)
        assert other.take(2)
    held = _reserved(table)
    one.release()
    assert _reserved(table) == held


def test_units_are_given_up_where_too_many_updates_followed_a_lost_answer() -> None:
    clock = VirtualClock()
    table = MemoryTable(clock)

    def lose(_: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        """As boto3's client, which sends a request again whose answer is lost."""
        answer = send()
        if ">= :units" not in request["ConditionExpression"]:
            return answer
        for __ in range(20):
            clock.advance(1)
            assert _leases(table, clock).take()
        try:
            return send()
        except table.exceptions.ConditionalCheckFailedException as refusal:
            refusal.response["ResponseMetadata"] = {"AnswersLost": True}
            raise

    leases = _leases(HookedClient(table, lose), clock)
    while leases._holdings == {} or not next(iter(leases._holdings.values())).units:
        clock.advance(1)
        assert leases.take()
    made = _reserved(table) - next(iter(leases._holdings.values())).units
    leases.release()
    leases.release()
    assert _reserved(table) == made + 20


def test_a_portion_whose_answer_is_lost_is_not_taken_twice() -> None:
    clock = VirtualClock()
    table = MemoryTable(clock)
    is_lost = [True]

    def lose(_: str, send: Callable[[], Any], __: dict[str, Any]) -> Any:
        answer = send()
        if is_lost and is_lost.pop():
            raise ReadTimeoutError(endpoint_url="http://table")
        return answer

    leases = _leases(HookedClient(table, lose), clock)
    with pytest.raises(ReadTimeoutError):
        leases.take()
    assert _take_all(leases) == CALLS.limit


def test_a_forked_process_grants_nothing_of_what_its_parent_holds() -> None:
    clock = VirtualClock()
    table = MemoryTable(clock)
    parent = _leases(table, clock)
    for _ in range(8):
        assert parent.take()
    granted = 8 + next(iter(parent._holdings.values())).units
    with patch("os.getpid", return_value=-1):
        granted += _take_all(parent)
    assert granted == CALLS.limit


class _Interrupted(Holding):
    """Another thread runs between looking at what is held and taking from it."""

    interrupt: Callable[[], object] = bool

    @property
    def units(self) -> int:
        held = self._held
        self.interrupt()
        return held

    @units.setter
    def units(self, held: int) -> None:
        self._held = held


class _Watched:
    """A lock that says when a thread has to wait for it."""

    def __init__(self, lock: threading.Lock, waits: threading.Event) -> None:
        self._lock, self._waits = lock, waits

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._waits.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_never_grant_the_same_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._writes.leases.Holding", _Interrupted)
    clock = VirtualClock()
    leases = _leases(MemoryTable(clock), clock, replace(CALLS, limit=1, portion=1))
    [holding] = leases._current()
    assert holding.reserve(1)
    waits_or_is_done, granted = threading.Event(), list[bool]()
    leases._lock = _Watched(leases._lock, waits_or_is_done)  # type: ignore[assignment]

    def work() -> None:
        granted.append(leases.take())
        waits_or_is_done.set()

    def let_another_run() -> None:
        monkeypatch.setattr(holding, "interrupt", bool)
        other.start()
        assert waits_or_is_done.wait(60)

    other = threading.Thread(target=work)
    monkeypatch.setattr(holding, "interrupt", let_another_run)
    granted.append(leases.take())
    other.join()
    assert sorted(granted) == [False, True]


def test_reservations_are_no_items_of_other_code() -> None:
    foreign = Items("foreign")
    count = Aggregate("count", foreign, pk="COUNT", sk="ALL", measures={"items": Count()})
    bench = Workbench([count])
    quota = Quota("calls", limit=10, per=timedelta(hours=1))
    assert bench.counters.leases(quota).take()
    bench.deliver_all()
    assert bench.counters.get(count, {}).measures == {"items": 0}
