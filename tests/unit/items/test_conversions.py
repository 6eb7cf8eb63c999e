"""Values with a clear meaning are converted, exactly, alike in attributes, keys and fields; others are refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conditions import text_reader
from dynamodb_counters._items.conversions import (
    EXACT,
    converted,
    event_seconds,
    format_number,
    key_text,
    parse_number,
    require_storable,
    sortable_time,
)
from dynamodb_counters._items.keys import expected_text
from dynamodb_counters._tiers import seconds_of, utc
from dynamodb_counters._writes.accept import typed_item
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

_ELSEWHERE = timezone(timedelta(hours=5, minutes=30))
_MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
_NUMBERS = st.one_of(
    _DIGITS, st.builds(lambda digits, exponent: Decimal(digits).scaleb(exponent, EXACT), _DIGITS, st.integers(-167, 88))
)


class _Color(Enum):
    RED = "red"
    DEPTH = 7


class _Text(str, Enum):  # noqa: UP042 - such enums print as their names
    RED = "red"


class _NumPyLike(float):
    def __repr__(self) -> str:
        return f"float64({float(self)})"


_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ID = UUID("6F9619FF-8B86-D011-B42D-00CF4FC964FF")

_CLEAR: list[tuple[Any, dict[str, str]]] = [
    (_NOON, {"S": "2026-11-20T12:00:00Z"}),
    (_NOON.astimezone(_ELSEWHERE), {"S": "2026-11-20T12:00:00Z"}),
    (_NOON + timedelta(microseconds=1), {"S": "2026-11-20T12:00:00.000001Z"}),
    (date(2026, 11, 20), {"S": "2026-11-20"}),
    (_ID, {"S": "6f9619ff-8b86-d011-b42d-00cf4fc964ff"}),
    (_Color.RED, {"S": "red"}),
    (_Color.DEPTH, {"N": "7"}),
    (_Text.RED, {"S": "red"}),
    (3.0, {"N": "3"}),
    (-0.0, {"N": "0"}),
    (9.99, {"N": "9.99"}),
    (2.0**53 - 1, {"N": "9007199254740991"}),
    (1e22, {"N": str(10**22)}),
    (_NumPyLike(0.5), {"N": "0.5"}),
    *((Decimal(zero), {"N": "0"}) for zero in ("0E+500", "0E-500", "-0", "0.0")),
]


@pytest.mark.parametrize(("value", "typed"), _CLEAR)
def test_values_with_a_clear_meaning_are_stored_and_stand_in_keys(value: Any, typed: dict[str, str]) -> None:
    [(kind, text)] = typed.items()

    assert typed_item(None, {"a": value}) == {"a": typed}
    assert typed_item(None, {"a": [{"b": (value,)}]}) == {"a": {"L": [{"M": {"b": {"L": [typed]}}}]}}
    assert typed_item(None, {"a": {value}}) == {"a": {f"{kind}S": [text]}}
    assert key_text("a", value) == text
    assert type(key_text("a", value)) is str
    assert f"{key_text('a', value)}" == text


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (datetime(2026, 11, 20), "a datetime with a time zone, such as datetime.now"),  # noqa: DTZ001
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "a moment in the years 1 to 9999"),
        (math.nan, "0 or a magnitude"),
        (-math.inf, "0 or a magnitude"),
        (0.1 + 0.2, "a float of at most 15 digits, which is exact: round it, or pass a Decimal or int"),
        (2.0**53, "a float of at most 15 digits"),
        (1e300, "0 or a magnitude"),
    ],
)
def test_ambiguous_values_are_refused_with_advice(value: Any, advice: str) -> None:
    for wrapped in (value, [value]):
        with pytest.raises(InvalidArgumentError, match=f"^invalid price=.*: expected {advice}") as refused:
            typed_item(None, {"price": wrapped})
        assert refused.value.argument == "price"


@given(st.floats(1e-120, 1e120) | st.floats(-1e120, -1e-120) | st.integers(-(2**60), 2**60).map(float))
def test_a_float_that_is_taken_is_the_number_it_prints_as(number: float) -> None:
    try:
        result = converted("n", number)
    except InvalidArgumentError:
        assert len(Decimal(repr(number)).normalize().as_tuple().digits) > 15
    else:
        assert result == Decimal(repr(number))
        assert float(result) == number


_LENGTHS = {"month": 7, "day": 10, "hour": 13, "minute": 16}


@given(st.sampled_from(sorted(_LENGTHS)), _MOMENTS)
def test_each_bucket_of_a_time_is_a_text_of_its_field(tier: str, moment: datetime) -> None:
    text = text_reader(f"at:{tier}")({"at": {"S": moment.astimezone(_ELSEWHERE).isoformat()}})

    assert text == moment.isoformat()[: _LENGTHS[tier]]
    assert expected_text(f"at:{tier}", text) is None


def test_a_text_to_sort_by_has_nine_digits_of_a_second() -> None:
    assert sortable_time("2026-11-20T10:00:00Z") == "2026-11-20T10:00:00.000000000Z"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("at:day", text) for text in ("", "x", "2026-11-2", "2026-11-31", "20261120", "2026-W47-5", "2026-11-20T")),
        *(("at:hour", text) for text in ("2026-11-20", "2026-11-20 10", "2026-11-20T24", "2026-11-20T10:00")),
        *(("at:minute", text) for text in ("2026-11-20T10:30:00", "2026-11-20T10:30Z", "9999-12-31T24:00")),
        *(("at:month", text) for text in ("2026", "2026-1", "2026-13", "2026-11-01")),
        *(("status:class", text) for text in ("", "2", "200", "0xx", "10xx", "2XX")),
    ],
)
def test_another_text_is_never_one_of_a_derived_field(field: str, text: str) -> None:
    assert expected_text(field, text) is not None


@given(_NUMBERS, _NUMBERS, st.integers(0, 5))
def test_numbers_add_without_rounding_and_equal_ones_have_a_text_that_is_read_back(
    number: int | Decimal, other: int | Decimal, zeros: int
) -> None:
    text, value = format_number(number), Decimal(number)
    assert Fraction(parse_number(text)) == Fraction(number)
    assert "E" not in text.upper()
    assert text == "0" or not text.startswith("-0") or "." in text
    with localcontext(EXACT):
        longer = value.quantize(value.scaleb(-zeros)) if value.adjusted() < 80 else value
        assert Fraction(number + other) == Fraction(number) + Fraction(other)
    assert format_number(longer) == text


@pytest.mark.parametrize("text", ["", "x", "NaN", "Infinity", "-Infinity", "sNaN", "1,5", "0x10", "1.2.3", "--1"])
def test_text_that_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_number(text)


@pytest.mark.parametrize(
    "value",
    [0, 1, -1, 10**125, 10**38 - 1, Decimal(0), Decimal("1E-130"), Decimal("9.9E+125"), Decimal("1." + "1" * 37)],
)
def test_a_number_dynamodb_can_hold_is_taken_as_it_is(value: int | Decimal) -> None:
    assert require_storable("amount", value) is value


_OUT_OF_RANGE = map(Decimal, ("1E-131", "1E+126", "NaN", "-Infinity", "1." + "1" * 38))


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 10**38 + 1, 10**126, *_OUT_OF_RANGE])
def test_a_number_dynamodb_cannot_hold_is_refused_by_name_and_value(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid amount=.*: expected .+") as refused:
        require_storable("amount", value)
    assert refused.value.value is value


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
    assert (read, type(read)) == (seconds, int)


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
_ZONED = st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1), timezones=_OFFSETS)  # noqa: DTZ001


@given(_ZONED)
def test_all_forms_of_a_moment_mean_the_same_second(moment: datetime) -> None:
    seconds = (moment - _EPOCH) // timedelta(seconds=1)

    assert event_seconds({"S": moment.isoformat()}) == seconds
    assert event_seconds({"N": str(seconds)}) == seconds
    # Milliseconds within three years of 1970 would be read as seconds: documented.
    if abs(seconds) > 10**8:
        assert event_seconds({"N": str((moment - _EPOCH) // timedelta(milliseconds=1))}) == seconds
    assert abs(utc(seconds_of("as_of", moment)) - moment) < timedelta(milliseconds=1)
    assert utc(seconds_of("as_of", moment)).utcoffset() == timedelta(0)
