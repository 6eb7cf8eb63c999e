"""A group that TTL may have deleted is refused by every read, and every other one reads as it was counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Counters,
    Distinct,
    Event,
    Extremes,
    InvalidArgumentError,
    Percentiles,
    Ranking,
    Window,
)
from simulation.counters_in_memory import counters_in_memory

VIEW: Final = Event("view", key=("url", "at", "id"), attributes={"url": str, "at": datetime, "id": str, "ms": int})
_RETENTION: Final = timedelta(days=31)
_BY: Final = ("at:day", "url")
DAILY: Final = Aggregate("daily", VIEW, by=_BY, retention=_RETENTION)
PAGED: Final = Aggregate("paged", VIEW, by=("url", "at:day", "id"), retention=_RETENTION, pages=True)
TOP: Final = Aggregate(
    "top", VIEW, by=_BY, retention=_RETENTION, ranking=Ranking(measure="top", leaderboard="T#{at:day}")
)
PEOPLE: Final = Distinct("people", VIEW, by=_BY, member="id", retention=_RETENTION, pages=True)
NAMES: Final = Distinct("names", VIEW, by=_BY, member="id", retention=_RETENTION)
SPEED: Final = Percentiles("speed", VIEW, by=_BY, attribute="ms", retention=_RETENTION)
SPEEDS: Final = Percentiles(
    "speeds", VIEW, by="url", attribute="ms", time="at", precision=timedelta(days=1), retention=_RETENTION
)
SLOWEST: Final = Extremes("slowest", VIEW, by=_BY, attribute="ms", retention=_RETENTION)
RECENT: Final = Window("recent", VIEW, by="url", time="at", retention=_RETENTION)
_ALL: Final = (DAILY, PAGED, TOP, PEOPLE, NAMES, SPEED, SPEEDS, SLOWEST, RECENT)

START: Final = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
_DAY: Final = datetime(2026, 11, 20, tzinfo=UTC)
_END: Final = _DAY + timedelta(days=1)
_TIME: Final = {"at:day": "2026-11-20"}
_GROUP: Final = {**_TIME, "url": "/"}

_READS: Final[dict[str, Callable[[Counters], Any]]] = {
    "get": lambda counters: counters.get(DAILY, _GROUP)["daily"],
    "get_many": lambda counters: counters.get_many([(DAILY, _GROUP)])[0]["daily"],
    "get of a page": lambda counters: counters.get(PAGED, {**_GROUP, "id": "a"})["paged"],
    "get of a leaderboard": lambda counters: counters.get(TOP, _GROUP)["top"],
    "get of a Distinct": lambda counters: counters.get(PEOPLE, _GROUP)["distinct"],
    "groups of members": lambda counters: len([*counters.groups(NAMES._parts[0], _TIME)]),
    "groups": lambda counters: len([*counters.groups(DAILY, _TIME)]),
    "groups of pages": lambda counters: len([*counters.groups(PAGED, _TIME)]),
    "top": lambda counters: len(counters.top(TOP, _TIME)),
    "distribution": lambda counters: counters.get(SPEED, _GROUP).count,
    "distributions": lambda counters: counters.window(SPEEDS, url="/").between(_DAY, _END).count,
    "largest": lambda counters: len(counters.extremes(SLOWEST, _GROUP)),
    "smallest": lambda counters: len(counters.extremes(SLOWEST, _GROUP, order="smallest")),
    "explain": lambda counters: counters.explain(DAILY, _GROUP).numbers["daily"],
    "between": lambda counters: counters.window(RECENT, url="/").between(_DAY, _END).count,
    "series": lambda counters: counters.window(RECENT, url="/").series(_DAY, _END, step="day")[0].count,
}


@settings(max_examples=40, deadline=None)
@example(timedelta(days=31))
@example(timedelta(days=34, hours=12))
@example(timedelta(days=34, hours=13, minutes=30))
@example(timedelta(days=400))
@given(st.integers(0, 60 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes)))
def test_deleted_counts_never_read_as_0(age: timedelta) -> None:
    with counters_in_memory(_ALL, now=START) as counters:
        counters.accept(VIEW, {"url": "/", "at": START, "id": "a", "ms": 5})
        counters.clock.advance(age)
        found = {name: _attempt(read, counters) for name, read in _READS.items()}

    is_over = START + age >= _END + _RETENTION
    assert {name: value for name, value in found.items() if value not in (1, None)} == {}
    assert is_over or START + age - _RETENTION > _DAY or set(found.values()) == {1}
    if START + age > _END + _RETENTION + timedelta(days=3):
        # Its members go, its number stays.
        assert {name for name, value in found.items() if value is not None} == {"get of a Distinct"}


def _attempt(read: Callable[[Counters], Any], counters: Counters) -> int | None:
    """Return a number; None if the read says that nothing is kept, -1 if it says anything else."""
    try:
        return int(read(counters))
    except InvalidArgumentError as error:
        return None if "retains no more" in str(error) or "keeps no other" in str(error) else -1


def test_a_refusal_names_the_time_and_the_retention() -> None:
    with counters_in_memory(_ALL, now=START) as counters:
        counters.clock.advance(timedelta(days=40))
        with pytest.raises(InvalidArgumentError) as refused:
            counters.get(DAILY, _GROUP)

    allowed = "expected a day whose retention, 31 days, 0:00:00, is not over: 'daily' keeps no other"
    assert str(refused.value) == f"invalid at:day='2026-11-20': {allowed}"
