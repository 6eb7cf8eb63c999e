"""DynamoDB's typed values: canonical numbers and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.conversions import EXACT, LARGEST_EXPONENT, SMALLEST_EXPONENT, fits, format_number
from dynamodb_counters._items.schema import MAX_NUMBER_DIGITS

Value: TypeAlias = Mapping[str, Any]
"""A typed value, ``{"S": "text"}``."""

Item: TypeAlias = dict[str, Any]
"""Attribute name to typed value."""


class InvalidValueError(Exception):
    """A value DynamoDB refuses; the message is the one it would give."""


def parse(text: str) -> Decimal:
    try:
        return _checked(Decimal(text))
    except DecimalException:
        raise InvalidValueError(f"The parameter cannot be converted to a numeric value: {text}") from None


def canonical(text: str) -> str:
    """Return a number in DynamoDB's one form, without exponent and trailing zeros."""
    if text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS and (text[0] != "0" or len(text) == 1):
        return text
    return format_number(parse(text))


def add(first: str, second: str) -> str:
    return format_number(_checked(EXACT.add(parse(first), parse(second))))


def comparable(value: Value) -> tuple[str, Any]:
    """Type and content, ordered as DynamoDB orders them: text by code points is text by its UTF-8 bytes."""
    [(kind, content)] = value.items()
    return kind, _COMPARABLE[kind](content) if kind in _COMPARABLE else content


_COMPARABLE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "N": Decimal,
    "NS": lambda numbers: frozenset(map(Decimal, numbers)),
    **dict.fromkeys(("SS", "BS"), frozenset),
    "L": lambda parts: [comparable(part) for part in parts],
    "M": lambda parts: {name: comparable(part) for name, part in parts.items()},
}


def stored(value: Value) -> Value:
    if "N" in value:
        if not isinstance(value["N"], str):
            raise InvalidValueError(f"Invalid type for N: {value['N']!r}")
        return {"N": canonical(value["N"])}
    if "M" in value:
        return {"M": {name: stored(part) for name, part in value["M"].items()}}
    if "L" in value:
        return {"L": [stored(part) for part in value["L"]]}
    return value


def _checked(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise InvalidValueError("The parameter cannot be converted to a numeric value")
    if not number:
        return Decimal(0)
    if not fits(number):
        raise InvalidValueError("DynamoDB only supports precision up to 38 digits")
    if not SMALLEST_EXPONENT <= number.adjusted() <= LARGEST_EXPONENT:
        kind, size = ("overflow", "larger") if number.adjusted() > 0 else ("underflow", "smaller")
        raise InvalidValueError(
            f"Number {kind}. Attempting to store a number with magnitude {size} than supported range"
        )
    return number
