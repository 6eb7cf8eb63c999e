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
from botocore.exceptions import ClientError, ReadTimeoutError

from dynamodb_counters import Aggregate, Count, Items, Leases, Quota, UnavailableError
from dynamodb_counters._table import Table
from dynamodb_counters._writes.direct_counts import Holding
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.memory.client_errors import failure
from simulation.memory_table import MemoryTable
from simulation.night import scaled
from simulation.pairs import quotas
from simulation.pairs.quotas import QuotaSchedule
from simulation.world import World

SCHEDULES = scaled(50)
OFTEN = {quotas.CRASHED: 5, quotas.RETURNED: 50, quotas.LEFT: 100, quotas.ZOMBIE: 1}
"""How often so many schedules come across it, at least."""

CALLS = Quota("calls", limit=100, per="day", portion=10)


def test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong() -> None:
    reached: Counter[str] = Counter()
    for seed in range(1, 1 + SCHEDULES):
        outcome = QuotaSchedule(seed).run()
        assert outcome.wrong == [], f"seed {seed}"
        reached += outcome.reached
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


class _Losing:
    """A table whose next answer is lost, or is an error, if there is one."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table = MemoryTable(self.clock)
        self.leases = _leases(HookedClient(self.table, self._answer), self.clock)
        self.error: Exception | None = None
        self.is_done = True

    def _answer(self, _: str, send: Callable[[], Any], __: dict[str, Any]) -> Any:
        error, self.error = self.error, None
        answer = send() if self.is_done or error is None else None
        if error is not None:
            raise error
        return answer

    @property
    def units(self) -> int:
        return sum(holding.units for holding in self.leases._holdings.values())

    def hold(self) -> int:
        """Take calls until some are left; return how many were taken."""
        for calls in range(1, 100):
            self.clock.advance(1)
            assert self.leases.take()
            if self.units:
                return calls
        raise AssertionError


def test_units_in_doubt_are_given_back_once_and_never_granted() -> None:
    losing = _Losing()
    calls = losing.hold()
    losing.error = ReadTimeoutError(endpoint_url="http://table")
    with pytest.raises(UnavailableError, match=r"^may have been given back: the answer was lost"):
        losing.leases.release()
    assert (losing.units, _reserved(losing.table)) == (0, calls)
    assert _leases(losing.table, losing.clock).take(CALLS.limit - calls)
    losing.leases.release()
    assert not losing.leases.take()
    assert _reserved(losing.table) == CALLS.limit


def test_units_whose_release_was_refused_are_given_back_by_the_next() -> None:
    losing = _Losing()
    calls = losing.hold()
    losing.error, losing.is_done = failure("UpdateItem", "AccessDeniedException"), False
    with pytest.raises(ClientError, match="AccessDenied"):
        losing.leases.release()
    assert losing.units > 0
    losing.leases.release()
    assert (losing.units, _reserved(losing.table)) == (0, calls)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_portion_whose_answer_is_lost_is_given_up(*, is_done: bool) -> None:
    losing = _Losing()
    losing.error, losing.is_done = ReadTimeoutError(endpoint_url="http://table"), is_done
    with pytest.raises(UnavailableError, match=r"^may have been reserved: the answer was lost"):
        losing.leases.take()
    assert _take_all(losing.leases) == CALLS.limit - is_done


def test_answers_that_are_lost_give_up_no_more_than_was_asked_for() -> None:
    losing = _Losing()
    losing.hold()
    for _ in range(30):
        while losing.units:
            assert losing.leases.take()
        before = _reserved(losing.table)
        losing.error = ReadTimeoutError(endpoint_url="http://table")
        with pytest.raises(UnavailableError):
            losing.leases.take()
    assert _reserved(losing.table) - before == 1


def test_a_forked_process_grants_nothing_of_what_its_parent_holds() -> None:
    clock = VirtualClock()
    parent = _leases(MemoryTable(clock), clock)
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
        units = self._units
        self.interrupt()
        return units

    @units.setter
    def units(self, units: int) -> None:
        self._units = units


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
    monkeypatch.setattr("dynamodb_counters._writes.direct_counts.Holding", _Interrupted)
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
    count = Aggregate("count", Items("foreign"), pk="COUNT", sk="ALL", measures={"items": Count()})
    world = World(count)
    assert world.counters.leases(Quota("calls", limit=10, per=timedelta(hours=1))).take()
    world.deliver_all()
    assert world.counters.get(count, {}).measures == {"items": 0}
