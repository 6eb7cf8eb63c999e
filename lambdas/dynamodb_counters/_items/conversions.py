"""Values between Python and DynamoDB: those without a type there as texts and exact numbers, and typed ones back."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from dynamodb_counters._items.decimals import Number, parse_number, require_storable, whole
from dynamodb_counters.errors import InvalidArgumentError

_FIRST_AMBIGUOUS: Final = 2.0**53
"""From here on, neighboring integers share a float."""

_FLOAT_DIGITS: Final = 15
"""Every decimal of so many digits survives as a float; one with more is the result of arithmetic: 0.1 + 0.2."""


def converted(name: str, value: Any) -> Any:
    """The value itself, or what stands for it; `name` is the attribute, for errors."""
    if isinstance(value, Enum):
        return converted(name, value.value)
    if isinstance(value, datetime):
        return _moment(name, value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return _number(name, value)
    # Not by its class: cold starts need not wait for that import.
    is_uuid = any((kind.__module__, kind.__name__) == ("uuid", "UUID") for kind in type(value).__mro__)
    return str(value) if is_uuid else value


def _moment(name: str, value: datetime) -> str:
    if value.utcoffset() is None:
        raise InvalidArgumentError(name, value, "a datetime with a time zone, such as datetime.now(UTC)")
    try:
        # The same moment is the same text, and so the same event, whatever its zone.
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise InvalidArgumentError(name, value, "a moment in the years 1 to 9999 of UTC") from None


def _number(name: str, value: float) -> Number:
    if not math.isfinite(value):
        raise InvalidArgumentError(name, value, "a finite number")
    if value.is_integer() and abs(value) < _FIRST_AMBIGUOUS:
        return int(value)
    # Subclasses such as NumPy's print themselves otherwise.
    number = Decimal(float.__repr__(value))
    if len("".join(map(str, number.as_tuple().digits)).rstrip("0")) > _FLOAT_DIGITS:
        allowed = f"a float of at most {_FLOAT_DIGITS} digits, which is exact: round it, or pass a Decimal or int"
        raise InvalidArgumentError(name, value, allowed)
    return whole(require_storable(name, number))


def plain_value(value: Mapping[str, Any]) -> Any:
    """Numbers as int or Decimal, binary as bytes, lists, maps and sets as such.

    >>> plain_value({"L": [{"S": "a"}, {"N": "1.5"}, {"NULL": True}]})
    ['a', Decimal('1.5'), None]
    """
    [(kind, content)] = value.items()
    plain: Any = content  # S and BOOL
    match kind:
        case "N":
            plain = parse_number(content)
        case "B":
            plain = binary(content)
        case "NULL":
            plain = None
        case "SS" | "NS" | "BS":
            plain = {plain_value({kind[0]: member}) for member in content}
        case "L":
            plain = [plain_value(member) for member in content]
        case "M":
            plain = {name: plain_value(member) for name, member in content.items()}
    return plain


def value_text(value: Mapping[str, Any]) -> str:
    """A typed value as its sender wrote it, for messages: null as such."""
    return "null" if value.keys() <= {"NULL"} else f"{plain_value(value)!r:.80}"


def binary(content: str | bytes) -> bytes:
    """Binary as bytes: in a stream record, and within a chunk, it is base64 text."""
    return base64.b64decode(content) if isinstance(content, str) else bytes(content)


def base64_text(content: str | bytes | bytearray) -> str:
    """Binary as such text."""
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()
