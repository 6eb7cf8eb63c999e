from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping

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
    readings: Iterator[Mapping[str, int]], clock: Clock, output: io.StringIO, finished: Callable[[], int] = lambda: 0
) -> str | None:
    silence = Silence(finished, clock, seconds=10)
    return wait_until_drained(lambda: next(readings), RIGHT, Progress(output, clock), silence, sleep=clock.sleep)


@pytest.mark.parametrize("stuck", [{"views": 2, "jobs": 2}, {"views": 4, "jobs": 2}])
def test_totals_that_stay_wrong_are_given_up(stuck: dict[str, int]) -> None:
    clock = Clock()

    stalled = _wait(iter(lambda: stuck, None), clock, io.StringIO())

    assert stalled == f"nothing was counted for 10 s: views {stuck['views']} of 3, jobs 2 of 2"
    assert clock.now == 10


def test_counts_that_stand_still_while_functions_work_are_waited_for() -> None:
    """Under load, a batch takes longer than its function may; it is delivered again until it is counted."""
    clock = Clock()

    def slowly() -> Iterator[Mapping[str, int]]:
        while clock.now < 60:
            yield {"views": 2, "jobs": 2}
        yield from (RIGHT, RIGHT)

    assert _wait(slowly(), clock, io.StringIO(), lambda: int(clock.now // 9)) is None
    assert clock.now >= 60


def test_counts_that_stay_wrong_are_read_until_the_functions_are_silent() -> None:
    clock = Clock()
    silence = Silence(lambda: min(int(clock.now // 9), 11), clock, seconds=10)

    assert read_settled(lambda: clock.now < 60, lambda early: not early, silence, sleep=clock.sleep) is False
    # Silent once is silent for all that is read afterwards.
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    begun = clock.now
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    assert clock.now - begun < 10
