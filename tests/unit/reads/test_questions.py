"""Answers of `Counters` about windows, at the edges: boundaries, calendars, emptiness, refusals, spans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from counters_lambda.http_api.resources import CountResources
from dynamodb_counters import (
    ActiveMembers,
    Counters,
    Declaration,
    Event,
    InvalidArgumentError,
    Percentiles,
    Sum,
    Window,
)
from dynamodb_counters._declarations.codec import definition, encode, same_definition
from dynamodb_counters._reads.question import MAX_STEPS, Question
from dynamodb_counters._reads.span_reads import queries_of
from dynamodb_counters._tiers import Interval, plan_queries, read_cost
from simulation.counters_in_memory import counters_in_memory
from tests.unit.fold.buckets import JOBS, Buckets, Number, fold

_C = {"customer": "c"}
_DAY, _MINUTE, _TICK = timedelta(days=1), timedelta(minutes=1), timedelta(microseconds=1)


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def _buckets(window: Window, *happened: datetime | tuple[datetime, Number], now: datetime | None = None) -> Buckets:
    buckets = Buckets((now or _utc(2026, 11, 20, 10, 30, 30)).timestamp())
    pairs = [entry if isinstance(entry, tuple) else (entry, 1) for entry in happened]
    buckets.write(fold(window, [(int(moment.timestamp()), number) for moment, number in pairs]))
    return buckets


def test_a_month_begins_on_its_anchor() -> None:
    jobs = _buckets(JOBS, _utc(2026, 9, 29), _utc(2026, 9, 30), _utc(2026, 11, 15)).counters.window(JOBS, _C)
    november = [jobs.calendar("month", anchor=anchor, as_of=_utc(2026, 11, 20)).count for anchor in (15, 16)]
    assert november == [1, 0]
    months = jobs.series(_utc(2026, 8, 31), _utc(2026, 11, 3), step="month", anchor=30)
    assert [(month.start.day, month.count) for month in months] == [(31, 1), (30, 1), (30, 0)]


@pytest.mark.parametrize(
    ("zone", "as_of", "start"),
    [
        # At St John's, on 2010-11-07 a minute after midnight it was 23:01 again: the new day had begun, and stayed.
        ("America/St_Johns", _utc(2010, 11, 7, 2, 29, 59), _utc(2010, 11, 6, 2, 30)),
        ("America/St_Johns", _utc(2010, 11, 7, 2, 30), _utc(2010, 11, 7, 2, 30)),
        ("America/St_Johns", _utc(2010, 11, 7, 2, 30, 30), _utc(2010, 11, 7, 2, 30)),
        ("America/St_Johns", _utc(2010, 11, 7, 3), _utc(2010, 11, 7, 2, 30)),
        ("America/St_Johns", _utc(2010, 11, 7, 4, 30), _utc(2010, 11, 7, 2, 30)),
        # In Toronto, on 1919-03-30 after 23:30 it was 00:30: midnight is amid what clocks skip.
        ("America/Toronto", _utc(1919, 3, 31, 12), _utc(1919, 3, 31, 4, 30)),
    ],
)
def test_a_day_begins_once_and_when_its_clocks_do(zone: str, as_of: datetime, start: datetime) -> None:
    assert _buckets(JOBS).counters.window(JOBS, _C).calendar("day", tz=zone, as_of=as_of).start == start


def test_a_day_that_a_zone_skipped_has_no_step() -> None:
    start, end = (_utc(2011, 12, day, 10) for day in (29, 31))
    days = _buckets(JOBS).counters.window(JOBS, _C).series(start, end, step="day", tz="Pacific/Apia")
    assert [day.start for day in days] == [_utc(2011, 12, 29, 10), _utc(2011, 12, 30, 10)]


def test_a_series_is_read_from_the_coarsest_tier_that_separates_its_steps() -> None:
    year = replace(JOBS, longest=timedelta(days=366))
    counters = (buckets := _buckets(year)).counters
    counters.window(year, _C).series(_utc(2025, 1, 1), _utc(2026, 1, 1), step="month")
    [query] = buckets.queries

    assert query["ExpressionAttributeValues"][":first"] == {"S": "WINDOW#jobs#N#2025-01"}
    assert query["ExpressionAttributeValues"][":last"] == {"S": "WINDOW#jobs#N#2025-12"}


@pytest.mark.parametrize("hours", [1, 7, 30, 60, 24 * 31])
def test_a_series_costs_no_more_than_its_steps_one_by_one(hours: int) -> None:
    year, length = replace(JOBS, longest=timedelta(days=366)), 3600 * hours
    steps = [Interval(first, first + length) for first in range(60, 60 + 40 * length, length)]
    cost = read_cost(queries_of(year, steps))
    assert cost <= sum(read_cost(plan_queries(year._kept_tiers, step)) for step in steps)


def test_a_series_of_too_many_steps_is_refused_before_anything_is_read() -> None:
    buckets = _buckets(JOBS)
    steps: list[Any] = [timedelta(minutes=1), "hour"]
    for step in steps:
        with pytest.raises(InvalidArgumentError, match=r"^invalid step=.*10000"):
            buckets.counters.window(JOBS, _C).series(_utc(2020, 1, 1), _utc(2026, 1, 2), step=step)
    assert buckets.queries == []
    daily = replace(JOBS, precision=_DAY)
    with pytest.raises(InvalidArgumentError, match=r"^invalid step='hour'"):
        _buckets(daily).counters.window(daily, _C).series(_utc(2026, 1, 1), _utc(2026, 1, 2), step="hour")


_START, _END = _utc(2026, 1, 1), _utc(2026, 1, 2)


@pytest.mark.parametrize(
    ("method", "others", "name", "values", "message"),
    [
        ("last", [_DAY], "as_of", [_START.replace(tzinfo=None), "now", 1648473443], "time zone"),
        ("calendar", [], "period", ["decade", "", "Month", None, ["month"]], ""),
        ("calendar", ["month"], "anchor", [0, 32, "1", 1.0, True], ": expected 1 to 31 of months, else 1"),
        ("calendar", ["day"], "anchor", [2], ": expected 1 to 31 of months, else 1"),
        # The error says what may be missing.
        ("calendar", ["day"], "tz", ["Europe/Atlantis", "../etc/passwd", "", 5], "tzdata"),
        ("between", [_START], "end", [_START, _utc(2025, 1, 1)], ""),
        ("series", [_START, _END], "step", ["minute", "fortnight", _MINUTE / 2, 0 * _DAY, None, 60], ""),
    ],
)
def test_a_wrong_argument_is_refused_by_name(
    method: str, others: list[Any], name: str, values: list[Any], message: str
) -> None:
    for value in values:
        with pytest.raises(InvalidArgumentError, match=f"^invalid {name}=.*{message}"):
            getattr(_buckets(JOBS).counters.window(JOBS, _C), method)(*others, **{name: value})


@pytest.mark.parametrize("last", [0 * _DAY, -_DAY, 1.5 * _MINUTE, _MINUTE + _TICK, 5, None])
def test_a_wrong_span_is_refused(last: Any) -> None:
    jobs = _buckets(JOBS).counters.window(JOBS, _C)
    with pytest.raises(InvalidArgumentError, match=r"^invalid last="):
        jobs.last(last)
    with pytest.raises(InvalidArgumentError, match="years 1 to 9999"):
        jobs.last(_DAY, as_of=_utc(1, 1, 1, 12))


def test_longer_than_retained_is_an_error_that_says_so() -> None:
    window = replace(JOBS, retention=timedelta(hours=25))
    counters = _buckets(window).counters

    assert counters.window(window, _C).last(timedelta(hours=25)).count == 0
    asks: list[Any] = [
        lambda: counters.window(window, _C).last(timedelta(hours=25, minutes=1)),
        lambda: counters.window(window, _C).last(timedelta(hours=1), as_of=_utc(2026, 11, 1)),
        lambda: counters.window(window, _C).calendar("week"),
        lambda: counters.window(window, _C).series(_utc(2026, 11, 1), _utc(2026, 11, 2), step="hour"),
    ]
    for ask in asks:
        with pytest.raises(InvalidArgumentError, match=r"'jobs' retains no more"):
            ask()


def test_sums_are_exact() -> None:
    paid = replace(JOBS, measure=Sum("amount"))
    at = _utc(2026, 11, 20, 1)
    buckets = _buckets(paid, (at, Decimal("0.1")), (at, Decimal("0.2")), (at, -5), (at, Decimal("1E-30")))

    answer = buckets.counters.window(paid, _C).last(_DAY).count
    assert answer == Decimal("-4.699999999999999999999999999999")


CALL = Event("call", key=("customer", "id"))
OWN = Window("own", CALL, by=("customer", "tz"), time="at", tz="tz", anchor=15)
BERLIN = Window("berlin", CALL, by="customer", time="at", tz="Europe/Berlin")
PLAIN = Window("plain", CALL, by="customer", time="at")
NOW = datetime(2026, 11, 20, 3, 30, tzinfo=UTC)
ZONE = "America/New_York"


def _start(counters: Counters, window: Window, period: Any, *arguments: Any, **more: Any) -> datetime:
    group = {name: {"customer": "c", "tz": ZONE}[name] for name in window.fields}
    return counters.window(window, group).calendar(period, *arguments, **more).start


def test_a_period_is_that_of_the_declared_calendar_unless_another_is_named() -> None:
    with counters_in_memory([OWN, BERLIN, PLAIN], now=NOW) as counters:
        counters.accept(CALL, {"customer": "c", "id": 1, "tz": ZONE, "at": NOW.isoformat()})
        local, berlin = ZoneInfo(ZONE), ZoneInfo("Europe/Berlin")
        assert _start(counters, OWN, "month") == datetime(2026, 11, 15, tzinfo=local)
        assert _start(counters, OWN, "day") == datetime(2026, 11, 19, tzinfo=local)
        assert _start(counters, OWN, "month", "UTC", anchor=1) == datetime(2026, 11, 1, tzinfo=UTC)
        assert _start(counters, BERLIN, "day") == datetime(2026, 11, 20, tzinfo=berlin)
        assert _start(counters, PLAIN, "day") == datetime(2026, 11, 20, tzinfo=UTC)
        first, last = datetime(2026, 9, 20, tzinfo=UTC), datetime(2026, 11, 18, tzinfo=UTC)
        months = counters.window(OWN, customer="c", tz=ZONE).series(first, last, step="month")
        assert [month.start.astimezone(local).day for month in months[1:]] == [15, 15]
        served, span = CountResources(counters, [BERLIN]), "start=2026-11-18T12:00:00Z&end=2026-11-19T12:00:00Z"
        days = served.read("berlin", f"customer=c&{span}&step=day", resource="series")["series"]
        assert [day["start"] for day in days] == ["2026-11-18T12:00:00+00:00", "2026-11-18T23:00:00+00:00"]


def test_a_group_whose_field_names_no_time_zone_is_refused() -> None:
    with counters_in_memory([OWN], now=NOW) as counters, pytest.raises(InvalidArgumentError, match="Mars"):
        counters.window(OWN, customer="c", tz="Mars/Base").calendar("month")


def test_a_calendar_is_no_part_of_what_a_name_counts() -> None:
    changed = replace(BERLIN, tz="Asia/Tokyo", anchor=3)
    assert same_definition(BERLIN, changed)
    assert encode((definition(BERLIN),)) == encode((definition(changed),))
    assert "Tokyo" in encode((changed,))


VIEW: Final = Event("view", key="id")
_SPANS_UNTIL: Final = datetime(2026, 11, 20, 8, 36, 5, tzinfo=UTC)
_MONTH: Final = timedelta(days=30)
_SPANS: Final = (
    *((number, "seconds") for number in (1, 2, 30, 60, 90, 3600)),
    *((number, "minutes") for number in (1, 2, 5, 15, 60, 90, 1440)),
    *((number, "hours") for number in (1, 2, 6, 24, 36, 48)),
    *((number, "days") for number in (1, 2, 30, 31)),
    (1, "weeks"),
)


_UNITS: Final = [timedelta(seconds=unit) for unit in (60, 3600, 86_400)]
_WINDOWS: Final = [
    Window(f"window{n}", VIEW, time="at", precision=unit, longest=_MONTH, retention=_MONTH)
    for n, unit in enumerate([timedelta(seconds=1), *_UNITS])
]
_ACTIVE: Final = [
    ActiveMembers(f"active{n}", VIEW, member="user", time="at", precision=unit, longest=30 * unit)
    for n, unit in enumerate(_UNITS)
]
_PERCENTILES: Final = [
    Percentiles(f"sizes{n}", VIEW, attribute="ms", time="at", precision=unit) for n, unit in enumerate(_UNITS)
]
_TIMED: Final[list[Declaration]] = [*_WINDOWS, *_ACTIVE, *_PERCENTILES]


@pytest.mark.parametrize("declared", [pytest.param(declaration, id=declaration.name) for declaration in _TIMED])
def test_a_span_is_answered_as_it_was_asked_for_or_refused(declared: Any) -> None:
    unit, most = declared.precision, 30 * declared.precision if isinstance(declared, ActiveMembers) else _MONTH
    with counters_in_memory(_TIMED, now=_SPANS_UNTIL) as counters:
        for number, name in _SPANS:
            span, reader = timedelta(**{name: number}), counters.window(declared)
            if 2 * unit <= span <= most and not span % unit:
                answer = reader.last(span)
                assert (answer.end - answer.start, _SPANS_UNTIL - answer.start >= span / 2) == (span, True)
            elif isinstance(declared, Percentiles) and span > most:
                assert reader.last(span).end > _SPANS_UNTIL
            else:
                current = f"more than the unit that {declared.name!r} counts by, as the current one is not over"
                others = "a multiple of the precision|the longest of|retains no more"
                with pytest.raises(InvalidArgumentError, match=f"{current}|{others}"):
                    reader.last(span)


def test_a_series_of_years_has_steps_by_default() -> None:
    start, end = _utc(2010, 1, 1), _utc(2025, 1, 1)
    question = Question(now=_utc(2026, 1, 1).timestamp(), declared=JOBS, is_bounded=True, start=start, end=end)
    assert len(question.steps) <= MAX_STEPS
