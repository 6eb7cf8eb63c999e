"""A window's interval is the asked one to the minute, and its count exactly what lies in the stated interval."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.windows import Interval, add_up

_MINUTE, _HOUR = 60, 3600
_AS_OF = st.one_of(st.integers(-10_000, 20_000), st.floats(-1e9, 4e9), st.integers(0, 500).map(lambda n: n * _MINUTE))
_LAST = st.integers(1, 60 * 40).map(lambda minutes: timedelta(minutes=minutes))


@given(_AS_OF, _LAST)
def test_the_interval_is_as_long_as_asked_and_within_a_minute(as_of: float, last: timedelta) -> None:
    interval = Interval.ending_at(as_of, last)

    assert interval.end - interval.start == last.total_seconds()
    assert interval.start % _MINUTE == 0
    assert as_of < interval.end <= as_of + _MINUTE
    assert interval.start - (as_of - last.total_seconds()) <= _MINUTE


@given(_AS_OF, _LAST)
def test_the_hours_are_those_the_interval_touches(as_of: float, last: timedelta) -> None:
    interval = Interval.ending_at(as_of, last)
    touched = {second // _HOUR for second in range(interval.start, interval.end, _MINUTE)}

    assert list(interval.hours) == sorted(touched)


@pytest.mark.parametrize(
    "last",
    [
        timedelta(0),
        timedelta(seconds=59),
        timedelta(seconds=90),
        timedelta(minutes=-5),
        timedelta(minutes=1, microseconds=1),
        3600,
        None,
        "1h",
    ],
)
def test_only_whole_minutes_can_be_asked_for(last: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="last=") as refused:
        Interval.ending_at(0, last)

    assert refused.value.argument == "last"


Happened = tuple[int, int | Decimal]

_NUMBERS = st.one_of(st.just(1), st.integers(-9, 9), st.decimals(-9, 9, places=3))
_EVENTS = st.lists(st.tuples(st.integers(-2 * _HOUR, 30 * _HOUR), _NUMBERS))


def _buckets(events: list[Happened]) -> list[tuple[int, dict[str, int | Decimal]]]:
    buckets: dict[int, dict[str, int | Decimal]] = defaultdict(dict)
    for second, number in events:
        numbers = buckets[second // _HOUR]
        for name in ("total", f"m{second % _HOUR // _MINUTE:02d}"):
            numbers[name] = numbers.get(name, 0) + number
    return list(buckets.items())


@given(_EVENTS, st.integers(-_HOUR, 30 * _HOUR), _LAST)
def test_the_count_is_of_all_events_in_the_stated_interval(events: list[Happened], as_of: int, last: timedelta) -> None:
    interval = Interval.ending_at(as_of, last)
    answer = add_up(interval, _buckets(events))

    assert answer.count == sum(n for second, n in events if answer.start.timestamp() <= second < answer.end.timestamp())
    assert (answer.start.timestamp(), answer.end.timestamp()) == (interval.start, interval.end)
    assert answer.start.utcoffset() == answer.end.utcoffset() == timedelta(0)


@given(_EVENTS, st.integers(-_HOUR, 30 * _HOUR))
def test_an_event_of_this_very_second_is_in_the_window(events: list[Happened], now: int) -> None:
    with_it = add_up(Interval.ending_at(now, timedelta(minutes=1)), _buckets([*events, (now, 1)])).count
    without = add_up(Interval.ending_at(now, timedelta(minutes=1)), _buckets(events)).count

    assert with_it - without == 1


def test_buckets_outside_the_interval_do_not_count() -> None:
    assert add_up(Interval(_HOUR, 2 * _HOUR), [(0, {"total": 5, "m59": 5}), (2, {"total": 7, "m00": 7})]).count == 0


def test_a_whole_hour_is_read_from_its_total_alone() -> None:
    assert add_up(Interval(_HOUR, 2 * _HOUR), [(1, {"total": 5})]).count == 5
