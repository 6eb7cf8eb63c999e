from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import pytest

from demo.check.drain import Silence, read_settled, wait_until_drained
from demo.check.readback import read_groups, read_rolling
from demo.terminal import Progress
from examples.blog.declarations import ROLLING, VIEWS
from tests.unit.demo.fakes import NOW, name_lengths, silent

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


@pytest.mark.parametrize(
    "before",
    [
        [{"views": 0, "jobs": 0}, {"views": 3, "jobs": 1}],
        # A total that moves on was not yet there.
        [RIGHT, {"views": 4, "jobs": 2}],
    ],
)
def test_it_waits_until_the_totals_are_right_twice(before: list[dict[str, int]]) -> None:
    readings = iter([*before, RIGHT, RIGHT])

    assert _wait(readings, Clock(), io.StringIO()) is None
    assert next(readings, None) is None


@pytest.mark.parametrize("stuck", [{"views": 2, "jobs": 2}, {"views": 4, "jobs": 2}])
def test_totals_that_stay_wrong_are_given_up(stuck: dict[str, int]) -> None:
    clock = Clock()

    stalled = _wait(iter(lambda: stuck, None), clock, io.StringIO())

    assert stalled == f"nothing was counted for 10 s: views {stuck['views']} of 3, jobs 2 of 2"
    assert clock.now == 10


def test_slow_is_not_stalled() -> None:
    clock, output = Clock(), io.StringIO()

    def slowly() -> Iterator[Mapping[str, int]]:
        for views in (0, 1, 2, 3):
            until = clock.now + 9
            while clock.now < until:
                yield {"views": views, "jobs": 2}
        yield {"views": 3, "jobs": 2}

    assert _wait(slowly(), clock, output) is None
    assert clock.now > 25
    assert "counted so far: views 2, jobs 2\n" in output.getvalue()


def test_counts_that_stand_still_while_functions_work_are_waited_for() -> None:
    """Beside load, a batch takes longer than its function may; it is delivered again until it is counted."""
    clock = Clock()

    def slowly() -> Iterator[Mapping[str, int]]:
        while clock.now < 60:
            yield {"views": 2, "jobs": 2}
        yield from (RIGHT, RIGHT)

    assert _wait(slowly(), clock, io.StringIO(), lambda: int(clock.now // 9)) is None
    assert clock.now >= 60


@pytest.mark.parametrize(
    ("readings", "found"),
    [([9], 9), ([7, 8, 9], 9), ([7] * 3 + [9], 9), ([10, 9], 9), ([7] * 9, 7)],
)
def test_a_reading_is_taken_when_it_is_right_or_stays_wrong(readings: list[int], found: int) -> None:
    clock, left = Clock(), iter(readings)
    silence = Silence(lambda: 0, clock, seconds=20)

    assert read_settled(lambda: next(left), lambda reading: reading == 9, silence, sleep=clock.sleep) == found


def test_what_stays_wrong_is_read_until_the_functions_are_silent() -> None:
    clock = Clock()
    silence = Silence(lambda: min(int(clock.now // 9), 11), clock, seconds=10)

    assert read_settled(lambda: clock.now < 60, lambda early: not early, silence, sleep=clock.sleep) is False
    # Silent once is silent for all that is read afterwards.
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    begun = clock.now
    assert read_settled(lambda: 7, lambda _: False, silence, sleep=clock.sleep) == 7
    assert clock.now - begun < 10


MINUTE = timedelta(minutes=1)


def test_groups_are_read_by_name() -> None:
    assert read_groups(name_lengths(), VIEWS, "url", ["/a", "/bcd"]) == {"/a": 2, "/bcd": 4}
    assert read_groups(name_lengths(), VIEWS, "url", []) == {}


@pytest.mark.parametrize("groups", [100, 0])
def test_windows_state_their_interval(groups: int) -> None:
    urls = [f"/{'x' * size}" for size in range(groups)]

    counts, interval = read_rolling(name_lengths(), ROLLING, "url", urls, as_of=NOW, progress=silent())

    assert counts == {url: len(url) for url in urls}
    assert interval == (NOW + MINUTE - timedelta(hours=24), NOW + MINUTE)


def test_windows_of_different_intervals_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        read_rolling(name_lengths(uneven=True), ROLLING, "url", ["/a", "/bc"], as_of=NOW, progress=silent())
