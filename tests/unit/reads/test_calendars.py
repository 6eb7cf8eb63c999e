"""A window declares the calendar of its reads: a time zone for all groups, or one per group, and the first day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dynamodb_counters import Counters, Event, InvalidArgumentError, Window
from dynamodb_counters._declarations.codec import definition, encode, same_definition
from dynamodb_counters._http.resources import CountResources
from simulation.counters_in_memory import counters_in_memory

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
        assert [each.start.astimezone(local).day for each in months[1:]] == [15, 15]
        served, span = CountResources(counters, [BERLIN]), "start=2026-11-18T12:00:00Z&end=2026-11-19T12:00:00Z"
        days = served.read("berlin", f"customer=c&{span}&step=day", resource="series")["series"]
        assert [each["start"] for each in days] == ["2026-11-18T12:00:00+00:00", "2026-11-18T23:00:00+00:00"]


def test_a_group_whose_field_names_no_time_zone_is_refused() -> None:
    with counters_in_memory([OWN], now=NOW) as counters, pytest.raises(InvalidArgumentError, match="Mars"):
        counters.window(OWN, customer="c", tz="Mars/Base").calendar("month")


@pytest.mark.parametrize("wrong", [{"tz": "Mars/Base"}, {"tz": "zone"}, {"anchor": 0}, {"anchor": 32}])
def test_a_calendar_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        Window("wrong", CALL, by="customer", time="at", **wrong)


def test_a_calendar_is_no_part_of_what_a_name_counts() -> None:
    changed = replace(BERLIN, tz="Asia/Tokyo", anchor=3)
    assert same_definition(BERLIN, changed)
    assert encode((definition(BERLIN),)) == encode((definition(changed),))
    assert "Tokyo" in encode((changed,))
