from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from demo.check.drain import Silence, read_settled, wait_until_drained
from demo.terminal import Progress

RIGHT = {"views": 3, "jobs": 2}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def _wait(
    read: Callable[[str], int],
    clock: Clock,
    finished: Callable[[], int] = lambda: 0,
    is_delivered: Callable[[], bool] = lambda: True,
) -> str | None:
    silence = Silence(finished, clock, seconds=10)
    totals = {name: partial(read, name) for name in RIGHT}
    return wait_until_drained(totals, RIGHT, is_delivered, Progress(io.StringIO(), clock), silence, sleep=clock.sleep)


@pytest.mark.parametrize("stuck", [{"views": 2, "jobs": 2}, {"views": 4, "jobs": 2}])
def test_totals_that_stay_wrong_are_given_up(stuck: dict[str, int]) -> None:
    clock = Clock()

    stalled = _wait(stuck.__getitem__, clock)

    assert stalled == f"nothing was counted for 10 s: views {stuck['views']} of 3, jobs 2 of 2"
    assert clock.now == pytest.approx(10, abs=1)


def test_counts_that_stand_still_while_functions_work_are_waited_for() -> None:
    """Under load, a batch takes longer than its function may; it is delivered again until it is counted."""
    clock = Clock()

    def slowly(name: str) -> int:
        return RIGHT[name] if clock.now >= 60 else 1

    assert _wait(slowly, clock, lambda: int(clock.now // 9)) is None
    assert clock.now >= 60


def test_a_total_that_is_right_is_read_once() -> None:
    clock = Clock()
    reads: Counter[str] = Counter()

    def read(name: str) -> int:
        reads[name] += 1
        return RIGHT[name] if name == "jobs" or clock.now >= 5 else 0

    assert _wait(read, clock) is None
    assert reads["jobs"] == 1


def test_a_batch_that_waits_to_be_delivered_again_is_waited_for() -> None:
    clock = Clock()
    assert _wait(RIGHT.__getitem__, clock, is_delivered=lambda: clock.now >= 5) is None
    assert clock.now >= 5


def test_counts_that_stay_wrong_are_read_until_the_functions_are_silent() -> None:
    clock = Clock()
    silence = Silence(lambda: min(int(clock.now // 9), 11), clock, seconds=10)

    assert read_settled(lambda: clock.now < 60, lambda early: not early, silence, sleep=clock.sleep) is False
    # Silent once is silent for all that is read afterwards.
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    begun = clock.now
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    assert clock.now - begun < 10
