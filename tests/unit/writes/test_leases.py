"""Leases: what they answer, what they write, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dynamodb_counters import InvalidArgumentError, Leases, Quota
from simulation.world import World

CALLS = Quota("calls", limit=300, per="day", by=("customer",), portion=50)
ONE, TWO = {"customer": "1"}, {"customer": "2"}


class Processes(World):
    def leases(self, quota: Quota = CALLS, group: dict[str, str] | None = None) -> Leases:
        return self.reader().leases(quota, group or ONE)

    @property
    def reserved(self) -> list[int]:
        return [int(item["reserved"]["N"]) for item in self.table.items()]


@pytest.fixture
def processes() -> Processes:
    return Processes(founds=False)


def _take_all(leases: Leases) -> int:
    return next(number for number in range(10**6) if not leases.take())


def test_units_that_one_process_releases_are_for_others(processes: Processes) -> None:
    with processes.leases() as first:
        assert all(first.take() for _ in range(40))
    assert processes.reserved == [40]
    assert _take_all(processes.leases()) == 260
    assert _take_all(processes.leases(group=TWO)) == 300


def test_several_calls_are_taken_all_or_none(processes: Processes) -> None:
    leases = processes.leases()
    assert [leases.take(200), leases.take(101), leases.take(100), leases.take()] == [True, False, True, False]
    assert not processes.leases(group=TWO).take(301)
    assert processes.reserved == [300]


def test_a_busy_process_writes_once_per_portion_and_an_idle_one_holds_little(processes: Processes) -> None:
    busy, idle = processes.leases(replace(CALLS, limit=100_000)), processes.leases(group=TWO)
    assert all(busy.take() for _ in range(5000))
    assert processes.table.usage.writes <= 5000 / 50 + 10
    assert processes.reserved[0] - 5000 <= 50
    assert all(idle.take() for _ in range(5))
    assert processes.reserved[1] < 2 * 5


def test_the_last_calls_are_left_to_others(processes: Processes) -> None:
    busy = processes.leases()
    assert all(busy.take() for _ in range(280))
    assert processes.reserved[0] - 280 <= (300 - 280) / 8


def test_who_was_refused_does_not_write_again_for_a_second(processes: Processes) -> None:
    first, second = processes.leases(), processes.leases()
    assert first.take(300)
    assert [second.take() for _ in range(50)] == [False] * 50
    assert processes.table.usage.calls == 2
    first._holdings.popitem()[1].units = 0
    processes.clock.advance(1.5)
    assert not second.take()
    assert processes.table.usage.calls == 3


def test_the_next_period_has_the_whole_quota_again(processes: Processes) -> None:
    leases = processes.leases()
    assert leases.take(300)
    assert leases.resets_at == datetime(2026, 11, 21, tzinfo=UTC)
    processes.clock.now = leases.resets_at.timestamp() + 2
    assert _take_all(leases) == 300
    assert {item["ttl"]["N"] for item in processes.table.items()} == {
        str(int(datetime(2026, 11, day, tzinfo=UTC).timestamp())) for day in (22, 23)
    }


def test_near_its_end_a_call_counts_in_both_periods(processes: Processes) -> None:
    leases = processes.leases()
    processes.clock.now = leases.resets_at.timestamp() - 0.9
    assert leases.take(300)
    processes.clock.advance(1)
    assert not leases.take()


def test_a_lower_limit_holds_for_those_who_know_it(processes: Processes) -> None:
    assert processes.leases().take(100)
    assert _take_all(processes.leases(replace(CALLS, limit=120))) == 20
    assert processes.leases().take(180)


def test_writes_that_nothing_is_in_the_way_of_are_followed_by_no_pause(processes: Processes) -> None:
    pauses: list[float] = []
    leases = Leases(processes.reached(sleep=pauses.append), CALLS, ONE)
    assert [leases.take() for _ in range(10)] == [True] * 10
    leases.release()
    assert (pauses, processes.reserved) == ([], [10])


@pytest.mark.parametrize(
    ("quota", "values", "n", "message"),
    [
        *((CALLS, group, 1, "values=.*: expected values for customer") for group in (None, {}, {"user": "1"})),
        (CALLS, {"customer": "1", "plan": "x"}, 1, "values=.*: expected values for customer"),
        *((CALLS, ONE, n, "n=") for n in (0, -1, 1.5, True, None)),
        ("calls", {}, 1, "quota='calls': expected a Quota"),
    ],
)
def test_leases_that_are_none_are_refused(processes: Processes, quota: Any, values: Any, n: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid {message}"):
        processes.reader().leases(quota, values).take(n)
