"""An event's time is read to the second in every accepted form, and refused clearly in every other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._timeline.tiers import seconds_of, utc
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ({"S": "1970-01-01T00:00:00Z"}, 0),
        ({"S": "20220328T151723+0200"}, 1648473443),
        ({"S": "2022-03-28 13:17:23Z"}, 1648473443),
        ({"S": "2022-03-28T13:17:23,5Z"}, 1648473443),
        ({"S": "2022-03-28T13:17Z"}, 1648473420),
        ({"S": "1969-12-31T23:59:59.5Z"}, -1),
        ({"S": "0001-01-01T00:00:00Z"}, -62135596800),
        # As a float, the seconds of so late a moment have no room for its last microsecond.
        ({"S": "9999-12-31T23:59:59.999999Z"}, 253402300799),
        ({"N": "-0.5"}, -1),
        ({"N": "1648473443.999"}, 1648473443),
        ({"N": "1648473443999.9"}, 1648473443),
        ({"N": "1.648473443E+9"}, 1648473443),
        ({"N": "99999999999"}, 99999999999),
        ({"N": "100000000000"}, 100000000),
        ({"N": "-100000000001"}, -100000001),
        ({"N": "99999999999999"}, 99999999999),
    ],
)
def test_a_time_is_read_rounded_down_to_the_second(value: dict[str, str], seconds: int) -> None:
    read = event_seconds(value)

    assert read == seconds
    assert isinstance(read, int)


@pytest.mark.parametrize(
    "value",
    [
        *({"S": text} for text in ("2022-03-28T13:17:23", "2022-03-28", "", "yesterday", "1648473443", "\0" * 3000)),
        *({"S": text} for text in ("2022-02-30T00:00:00Z", "2022-03-28T25:00:00Z", "2022-03-28T13:17:23+99:00")),
        *({"S": text} for text in ("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00")),
        *({"N": text} for text in ("-62135596801", "-99999999999", "100000000000000", "-1E+20", "NaN", "")),
        {"BOOL": True},
        {"NULL": True},
        {"M": {"S": {"S": "2022-03-28T13:17:23Z"}}},
        {},
    ],
)
def test_values_that_are_no_time_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(MalformedImageError):
        event_seconds(value)


_OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_MOMENTS = st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1), timezones=_OFFSETS)  # noqa: DTZ001


@given(_MOMENTS)
def test_all_forms_of_a_moment_mean_the_same_second(moment: datetime) -> None:
    seconds = (moment - _EPOCH) // timedelta(seconds=1)

    assert event_seconds({"S": moment.isoformat()}) == seconds
    assert event_seconds({"N": str(seconds)}) == seconds
    # Milliseconds within three years of 1970 would be read as seconds: documented.
    if abs(seconds) > 10**8:
        assert event_seconds({"N": str((moment - _EPOCH) // timedelta(milliseconds=1))}) == seconds


@given(_MOMENTS)
def test_a_moment_as_seconds_is_the_same_moment(moment: datetime) -> None:
    assert abs(utc(seconds_of("as_of", moment)) - moment) < timedelta(milliseconds=1)
    assert utc(seconds_of("as_of", moment)).utcoffset() == timedelta(0)


@pytest.mark.parametrize("moment", [datetime(2022, 3, 28), None, "now", 1648473443])  # noqa: DTZ001
def test_a_moment_without_a_time_zone_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="as_of=") as refused:
        seconds_of("as_of", moment)

    assert refused.value.argument == "as_of"
