"""Quotas: what is refused, and which period a moment lies in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Event, InvalidArgumentError, Quota
from dynamodb_counters._declarations import require_consistent

GIVEN: dict[str, Any] = {"name": "calls", "limit": 300, "per": "day"}


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", "1st"),
        ("limit", 0),
        ("limit", 1.5),
        ("limit", True),
        ("per", "fortnight"),
        ("per", timedelta(seconds=59)),
        ("per", timedelta(seconds=60.5)),
        ("per", 60),
        ("by", {"customer"}),
        ("by", 3),
        ("by", ("a", "a")),
        ("by", ("a", "b", "c", "d")),
        ("by", ("pk",)),
        ("by", ("a.b",)),
        ("by", ("time:day",)),
        ("tz", "Europe/Atlantis"),
        ("portion", 0),
        ("portion", 301),
        ("clock_error", 1),
        ("clock_error", timedelta(seconds=21)),
    ],
)
def test_a_wrong_argument_is_refused_by_name(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^invalid {argument}="):
        Quota(**{**GIVEN, argument: value})


@pytest.mark.parametrize(
    ("per", "tz", "moment", "start", "end"),
    [
        ("hour", "UTC", _utc(2026, 11, 20, 10, 59), _utc(2026, 11, 20, 10), _utc(2026, 11, 20, 11)),
        ("day", "Europe/Berlin", _utc(2026, 10, 25, 12), _utc(2026, 10, 24, 22), _utc(2026, 10, 25, 23)),
        ("week", "UTC", _utc(2026, 11, 20), _utc(2026, 11, 16), _utc(2026, 11, 23)),
        ("month", "Asia/Kathmandu", _utc(2026, 2, 1), _utc(2026, 1, 31, 18, 15), _utc(2026, 2, 28, 18, 15)),
        ("year", "UTC", _utc(2028, 12, 31, 23), _utc(2028, 1, 1), _utc(2029, 1, 1)),
        (timedelta(minutes=7), "UTC", _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 14)),
    ],
)
def test_a_period_begins_and_ends_where_its_calendar_says(
    per: Any, tz: str, moment: datetime, start: datetime, end: datetime
) -> None:
    found = Quota("calls", limit=1, per=per, tz=tz)._period(moment.timestamp())

    assert (found.start, found.end) == (start.timestamp(), end.timestamp())


@pytest.mark.parametrize("pk", ["LEASES#{name}", "LEASES#{name}#{customer}", "LEASES#calls#a#b#{d}"])
def test_no_event_can_be_taken_for_what_is_reserved(pk: str) -> None:
    with pytest.raises(InvalidArgumentError, match="reserved 'LEASES#"):
        require_consistent((), [Event("forged", pk=pk, sk="SK")])
