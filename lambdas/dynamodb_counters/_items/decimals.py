"""Exact numbers: DynamoDB's decimals of up to 38 digits, as `int` where whole and `Decimal` elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Any, TypeAlias

from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS
from dynamodb_counters.errors import InvalidArgumentError

Number: TypeAlias = int | Decimal

# DynamoDB's range is 1E-130 to 9.9…E+125: 300 digits add any two of its numbers without rounding.
EXACT = Context(prec=300, Emax=999, Emin=-999, traps=[Inexact, InvalidOperation, Overflow])
"""Arithmetic context in which adding DynamoDB numbers never rounds."""

_BEYOND = 10**MAX_NUMBER_DIGITS
_LARGEST_EXPONENT = 125
_SMALLEST_EXPONENT = -130


def parse_number(text: str) -> Number:
    """Read the text of a DynamoDB number.

    Parameters
    ----------
    text : str
        As in ``{"N": text}``.

    Returns
    -------
    int or Decimal
        `int` where the text is a plain integer.

    Raises
    ------
    ValueError
        The text is no finite number.

    Examples
    --------
    >>> parse_number("12"), parse_number("0.10")
    (12, Decimal('0.10'))
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = Decimal(text)
    except DecimalException as error:
        raise ValueError(f"{text!r} is no number") from error
    if not value.is_finite():
        raise ValueError(f"{text!r} is no finite number")
    return value


def format_number(value: Number) -> str:
    """Write a number in the one form that stands for it: no exponent, no trailing zeros.

    Parameters
    ----------
    value : int or Decimal
        A finite number.

    Returns
    -------
    str
        The same text for equal numbers, so that it can stand in a key.

    Examples
    --------
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
    """Check that DynamoDB can hold a number without changing it.

    Parameters
    ----------
    argument : str
        Name used in the error.
    value : object
        The candidate.

    Returns
    -------
    int or Decimal
        The value itself.

    Raises
    ------
    InvalidArgumentError
        Not an `int` or finite `Decimal`, more than 38 significant digits, or out of DynamoDB's range.

    Examples
    --------
    >>> require_storable("by", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InvalidArgumentError(argument, value, "an int or Decimal (floats are not exact)")
    decimal = Decimal(value)
    if not decimal.is_finite():
        raise InvalidArgumentError(argument, value, "a finite number")
    if decimal and len(_significant_digits(decimal)) > MAX_NUMBER_DIGITS:
        raise InvalidArgumentError(argument, value, f"at most {MAX_NUMBER_DIGITS} significant digits")
    if decimal and not _SMALLEST_EXPONENT <= decimal.adjusted() <= _LARGEST_EXPONENT:
        raise InvalidArgumentError(argument, value, "a magnitude from 1E-130 to 9.9E+125")
    return value


def fits(value: Number) -> bool:
    """Tell whether DynamoDB can hold a number without rounding it.

    Parameters
    ----------
    value : int or Decimal
        A finite number.

    Returns
    -------
    bool
        False beyond 38 significant digits.

    Examples
    --------
    >>> fits(10**37), fits(10**40 + 1)
    (True, False)
    """
    if isinstance(value, int) and -_BEYOND < value < _BEYOND:
        return True  # The counts: no digits to look at.
    return len(_significant_digits(Decimal(value))) <= MAX_NUMBER_DIGITS


def whole(number: Number) -> Number:
    """Give a number as `int` where it is whole.

    Parameters
    ----------
    number : int or Decimal
        Any finite number.

    Returns
    -------
    int or Decimal
        The same number.

    Examples
    --------
    >>> from decimal import Decimal
    >>> whole(Decimal("3.0"))
    3
    """
    return int(number) if number == int(number) else number


def typed_number(value: Number) -> dict[str, str]:
    """Type a number.

    Parameters
    ----------
    value : int or Decimal
        A number of at most 38 digits.

    Returns
    -------
    dict
        ``{"N": text}``.
    """
    return {"N": format_number(value)}


def read_number(item: Mapping[str, Any], name: str) -> Number:
    """Read a number attribute of an item.

    Parameters
    ----------
    item : mapping
        Typed item.
    name : str
        Attribute name.

    Returns
    -------
    int or Decimal
        0 where the attribute is missing; `int` where it is whole.
    """
    return whole(parse_number(item[name]["N"])) if name in item else 0


def _significant_digits(value: Decimal) -> str:
    return "".join(map(str, value.as_tuple().digits)).strip("0")
