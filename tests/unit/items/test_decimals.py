"""Numbers are exact: one text for one value, nothing rounded, nothing accepted that DynamoDB would change."""

from __future__ import annotations

from decimal import Decimal, Inexact, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conversions import EXACT, fits, format_number, parse_number, require_storable
from dynamodb_counters.errors import InvalidArgumentError

_DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
_NUMBERS = st.one_of(
    _DIGITS,
    st.builds(lambda digits, exponent: Decimal(digits).scaleb(exponent, EXACT), _DIGITS, st.integers(-167, 88)),
)


@given(_NUMBERS)
def test_the_text_of_a_number_is_read_back_to_its_value(number: int | Decimal) -> None:
    text = format_number(number)

    assert Fraction(parse_number(text)) == Fraction(number)
    assert "E" not in text.upper()
    assert text == "0" or not text.startswith("-0") or "." in text


@given(_NUMBERS, st.integers(0, 5))
def test_equal_numbers_have_equal_texts(number: int | Decimal, zeros: int) -> None:
    value = Decimal(number)
    with localcontext(EXACT):
        longer = value.quantize(value.scaleb(-zeros)) if value.adjusted() < 80 else value

    assert format_number(longer) == format_number(number)


@given(_NUMBERS, _NUMBERS)
def test_any_two_numbers_add_without_rounding(one: int | Decimal, two: int | Decimal) -> None:
    with localcontext(EXACT):
        assert Fraction(one + two) == Fraction(one) + Fraction(two)


def test_rounding_would_be_an_error() -> None:
    with localcontext(EXACT), pytest.raises(Inexact):
        Decimal(1) / Decimal(3)


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


@pytest.mark.parametrize(
    "value",
    [
        *(True, 1.0, "1", None),
        *(10**38 + 1, 10**126),
        *map(Decimal, ("1E-131", "1E+126", "NaN", "-Infinity", "1." + "1" * 38)),
    ],
)
def test_a_number_dynamodb_cannot_hold_is_refused_by_name_and_value(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        require_storable("amount", value)

    assert (refused.value.argument, refused.value.value) == ("amount", value)
    assert refused.value.expected


@given(st.integers(1, 60), st.integers(-100, 100))
def test_a_number_fits_by_its_significant_digits(digits: int, exponent: int) -> None:
    number = Decimal("1" * digits).scaleb(exponent, EXACT)

    assert fits(number) is (digits <= 38)
    if exponent >= 0:
        assert fits(int(number)) is (digits <= 38)
