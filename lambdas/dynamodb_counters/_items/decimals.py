"""Exact numbers: DynamoDB's decimals of up to 38 digits, as `int` or `Decimal`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Any, TypeAlias

from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS
from dynamodb_counters.errors import InvalidArgumentError

Number: TypeAlias = int | Decimal

EXACT = Context(prec=300, Emax=999, Emin=-999, traps=[Inexact, InvalidOperation, Overflow])
"""Adds DynamoDB numbers without rounding: their range, 1E-130 to 9.9…E+125, takes fewer than 300 digits."""

_BEYOND = 10**MAX_NUMBER_DIGITS
LARGEST_EXPONENT = 125
SMALLEST_EXPONENT = -130


def parse_number(text: str) -> Number:
    """The number of ``{"N": text}``; ValueError for text that is not a finite number."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = Decimal(text)
    except DecimalException as error:
        raise ValueError(f"{text!r} is not a number") from error
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a finite number")
    return value


def format_number(value: Number) -> str:
    """The canonical text of a finite number, the same for equal numbers: no exponent, no trailing zeros.

    >>> format_number(Decimal("1.50")), format_number(Decimal("1E+2")), format_number(-0)
    ('1.5', '100', '0')
    """
    if isinstance(value, int):
        return str(int(value))
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def require_storable(argument: str, value: object) -> Number:
    """Return a number that DynamoDB stores unchanged; refuse anything else under the name `argument`."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InvalidArgumentError(argument, value, "an int or Decimal (floats are not exact)")
    decimal = Decimal(value)
    if not decimal.is_finite():
        raise InvalidArgumentError(argument, value, "a finite number")
    if decimal and len(_significant_digits(decimal)) > MAX_NUMBER_DIGITS:
        raise InvalidArgumentError(argument, value, f"at most {MAX_NUMBER_DIGITS} significant digits")
    if decimal and not SMALLEST_EXPONENT <= decimal.adjusted() <= LARGEST_EXPONENT:
        raise InvalidArgumentError(argument, value, "a magnitude from 1E-130 to 9.9E+125")
    return value


def fits(*values: Number) -> bool:
    """Whether DynamoDB stores finite numbers without rounding: up to 38 significant digits."""
    for value in values:
        if isinstance(value, int) and -_BEYOND < value < _BEYOND:
            continue  # Counts take this shortcut.
        if len(_significant_digits(Decimal(value))) > MAX_NUMBER_DIGITS:
            return False
    return True


def whole(number: Number) -> Number:
    """The same number, as `int` if it is whole."""
    return int(number) if number == int(number) else number


def typed_number(value: Number) -> dict[str, str]:
    return {"N": format_number(value)}


def read_number(item: Mapping[str, Any], name: str) -> Number:
    """A number attribute of a typed item; 0 if it is missing."""
    return whole(parse_number(item[name]["N"])) if name in item else 0


def _significant_digits(value: Decimal) -> str:
    return "".join(map(str, value.as_tuple().digits)).strip("0")
