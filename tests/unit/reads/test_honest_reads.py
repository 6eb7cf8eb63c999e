"""Reads of what no deployment counts, of texts that no group has, and of what TTL may have deleted, are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Attribute,
    Count,
    Counter,
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
from simulation.world import World

STATUS = Attribute(int, minimum=100)
ATTRIBUTES = {"customer": str, "status": STATUS, "price": Decimal, "at": datetime, "due": date, "ms": int}
ATTRIBUTES |= {"size": Attribute(int, required=False)}
CALL = Event("call", key=("customer", "at"), attributes=ATTRIBUTES)
CALLED = {"customer": "c1", "status": 200, "price": 1, "at": "2026-11-20T05:00:00Z", "due": "2026-11-20", "ms": 1}
DAILY = Aggregate("daily", CALL, by=("customer", "at:day"))
TYPED = Aggregate("typed", CALL, by=("status", "price", "due", "at:hour"))
OF_DAILY = Aggregate("of_daily", DAILY, by=("customer", "at:day"), n=Count())
BANDS = Aggregate("bands", CALL, by=("size?free", "status:class", "ms:class?none"))
BAND = {"size?free": "free", "status:class": "5xx", "ms:class?none": "none"}
SEATS = Counter("seats", by=("show", "at:day"))
SITE = Aggregate("site", CALL, calls=Count())
RECENT = Window("recent", CALL, by="customer", time="at")
C1 = {"customer": "c1"}


def _at(hour: int) -> datetime:
    return datetime(2026, 11, 20, hour, tzinfo=UTC)


def test_a_table_that_no_deployment_counts_is_incomplete() -> None:
    bench = World(SITE, RECENT, founds=False)
    bench.counters.accept(CALL, CALLED)
    group = bench.counters.get(SITE)
    assert (group["calls"], group.complete) == (0, False)
    assert not bench.counters.window(RECENT, C1).last(timedelta(hours=1)).complete

    bench.deliver_all()
    bench.clock.advance(60)
    group = bench.counters.get(SITE)
    assert (group["calls"], group.complete) == (1, True)
    assert bench.counters.window(RECENT, C1).last(timedelta(hours=1)).complete


@pytest.mark.parametrize(
    ("aggregate", "values", "refused"),
    [
        (DAILY, {**C1, "at:day": "01.01.2026"}, "invalid at:day='01.01.2026': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": _at(5)}, "invalid at:day='2026-11-20T05:00:00Z': expected a UTC day such as"),
        (OF_DAILY, {**C1, "at:day": "20261120"}, "invalid at:day='20261120': expected a UTC day such as '2026-11-20'"),
        (SEATS, {"show": "a", "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (BANDS, {**BAND, "status:class": 500}, "invalid status:class='500': expected a class from '1xx' to '9xx'"),
        (BANDS, {**BAND, "ms:class?none": "5"}, "invalid ms:class?none='5': expected a class from '1xx' to '9xx', or"),
        (BANDS, {**BAND, "size?free": "pro"}, "invalid size='pro': expected a whole number"),
        (TYPED, {"at:hour": "2026-11-20"}, "invalid at:hour='2026-11-20': expected a UTC hour such as '2026-11-20T00'"),
        (TYPED, {"status": "5.1"}, "invalid status='5.1': expected a whole number"),
        (TYPED, {"status": "ok"}, "invalid status='ok': expected a whole number"),
        (TYPED, {"price": "1,50"}, "invalid price='1,50': expected a number"),
        (TYPED, {"due": "2026-1"}, "invalid due='2026-1': expected an ISO 8601 date such as '2026-11-20'"),
    ],
)
def test_a_text_that_no_group_has_is_refused(aggregate: Aggregate, values: dict[str, Any], refused: str) -> None:
    with counters_in_memory([DAILY, TYPED, BANDS, OF_DAILY, SEATS]) as counters:
        calls: list[Callable[..., object]] = [counters.get]
        for call in calls + ([counters.increment, counters.reset] if aggregate is SEATS else []):
            with pytest.raises(InvalidArgumentError) as found:
                call(aggregate, values)
            assert str(found.value).startswith(refused)


def test_values_of_the_right_types_are_taken_in_every_form() -> None:
    with counters_in_memory([DAILY, TYPED]) as counters:
        for at in ("2026-11-20", date(2026, 11, 20)):
            assert counters.get(DAILY, {**C1, "at:day": at})["daily"] == 0
        # A group may be older than the limit that its status is below.
        counters.accept(replace(CALL, attributes=None), {**CALLED, "status": 5, "price": Decimal("1.50")})
        typed = {"status": 5.0, "price": Decimal("1.50"), "due": date(2026, 11, 20), "at:hour": "2026-11-20T05"}
        assert counters.get(TYPED, typed)["typed"] == 1
        for status, price, due in (("5", "1.5", "20261120"), ("5.0", "1.50", "2026-W47-5")):
            assert counters.get(TYPED, {**typed, "status": status, "price": price, "due": due})["typed"] == 1
    with counters_in_memory([BANDS]) as counters:
        counters.accept(CALL, {**CALLED, "status": 500, "ms": 100})
        assert counters.get(BANDS, {**BAND, "ms:class?none": "1xx"})["bands"] == 1


VIEW: Final = Event("view", key=("url", "at", "id"), attributes={"url": str, "at": datetime, "id": str, "ms": int})
_RETENTION: Final = timedelta(days=31)
_BY: Final = ("at:day", "url")
KEPT: Final = Aggregate("daily", VIEW, by=_BY, retention=_RETENTION)
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
LATEST: Final = Window("recent", VIEW, by="url", time="at", retention=_RETENTION)
_ALL: Final = (KEPT, PAGED, TOP, PEOPLE, NAMES, SPEED, SPEEDS, SLOWEST, LATEST)

START: Final = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
_DAY: Final = datetime(2026, 11, 20, tzinfo=UTC)
_END: Final = _DAY + timedelta(days=1)
_TIME: Final = {"at:day": "2026-11-20"}
_GROUP: Final = {**_TIME, "url": "/"}

_READS: Final[dict[str, Callable[[Counters], Any]]] = {
    "get": lambda counters: counters.get(KEPT, _GROUP)["daily"],
    "get_many": lambda counters: counters.get_many([(KEPT, _GROUP)])[0]["daily"],
    "get of a page": lambda counters: counters.get(PAGED, {**_GROUP, "id": "a"})["paged"],
    "get of a leaderboard": lambda counters: counters.get(TOP, _GROUP)["top"],
    "get of a Distinct": lambda counters: counters.get(PEOPLE, _GROUP)["distinct"],
    "groups of members": lambda counters: len([*counters.groups(NAMES._parts[0], _TIME)]),
    "groups": lambda counters: len([*counters.groups(KEPT, _TIME)]),
    "groups of pages": lambda counters: len([*counters.groups(PAGED, _TIME)]),
    "top": lambda counters: len(counters.top(TOP, _TIME)),
    "distribution": lambda counters: counters.get(SPEED, _GROUP).count,
    "distributions": lambda counters: counters.window(SPEEDS, url="/").between(_DAY, _END).count,
    "largest": lambda counters: len(counters.extremes(SLOWEST, _GROUP)),
    "smallest": lambda counters: len(counters.extremes(SLOWEST, _GROUP, order="smallest")),
    "explain": lambda counters: counters.explain(KEPT, _GROUP).numbers["daily"],
    "between": lambda counters: counters.window(LATEST, url="/").between(_DAY, _END).count,
    "series": lambda counters: counters.window(LATEST, url="/").series(_DAY, _END, step="day")[0].count,
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
            counters.get(KEPT, _GROUP)

    allowed = "expected a day whose retention, 31 days, 0:00:00, is not over: 'daily' keeps no other"
    assert str(refused.value) == f"invalid at:day='2026-11-20': {allowed}"
