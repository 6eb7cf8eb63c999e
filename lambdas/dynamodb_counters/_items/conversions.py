"""Values between Python, DynamoDB and keys: exact numbers, times in whole seconds, texts of all others. Pure.

In keys ``#``, ``%`` and control characters become ``%XX``, so every ``#`` is a delimiter.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from enum import Enum
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from dynamodb_counters._items.schema import MAX_NUMBER_DIGITS
from dynamodb_counters._tiers import DAY, FIRST_SECOND, LAST_SECOND
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

Number: TypeAlias = int | Decimal

# Adds DynamoDB numbers without rounding: their range, 1E-130 to 9.9…E+125, takes fewer than 300 digits.
EXACT = Context(prec=300, Emax=999, Emin=-999, traps=[Inexact, InvalidOperation, Overflow])
LARGEST_EXPONENT = 125
SMALLEST_EXPONENT = -130
_BEYOND = 10**MAX_NUMBER_DIGITS
_FIRST_AMBIGUOUS: Final = 2.0**53  # From here on, neighboring integers share a float.
# Every decimal of so many digits survives as a float; one with more is the result of arithmetic: 0.1 + 0.2.
_FLOAT_DIGITS: Final = 15

# 10^11 is the year 5138 in seconds and 1973 in milliseconds: no plausible event is on the wrong side.
_FIRST_MILLISECONDS: Final = 10**11
_FIRST_MICROSECONDS: Final = 10**14
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FINER: Final = re.compile(r"[.,]\d{6}(\d*[1-9])")
_LEAP: Final = re.compile(r":60([.,]\d+)?([Zz]|[+-].*)\Z", re.DOTALL)

# Stands for the empty string, which DynamoDB refuses in keys; escapes never consist of a bare "%".
EMPTY: Final = "%"
LAST_CHARACTER: Final = "\U0010ffff"
UNSAFE: Final = re.compile(r"[%#\x00-\x1f\x7f]")
_ESCAPES: Final = {code: f"%{code:02X}" for code in (*range(0x20), ord("%"), ord("#"), 0x7F)}
_NUMBER: Final = re.compile(rf"-?(?=[0-9.]{{1,{MAX_NUMBER_DIGITS}}}$)[0-9]+(\.[0-9]+)?", re.ASCII)


def parse_number(text: str) -> Number:
    """Return the number of ``{"N": text}``; MalformedImageError for text that is not a finite number."""
    try:
        return int(text)
    except ValueError:
        pass
    with suppress(DecimalException):
        value = Decimal(text)
        if value.is_finite():
            return value
    raise MalformedImageError(f"{text!r:.80} is not a finite number")


def format_number(value: Number) -> str:
    """Return the canonical text of a finite number, the same for equal numbers: no exponent, no trailing zeros."""
    if isinstance(value, int):
        return str(int(value))
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def require_storable(argument: str, value: object) -> Number:
    """Return a number that DynamoDB stores unchanged; refuse anything else under the name `argument`."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InvalidArgumentError(argument, value, "an int or Decimal (floats are not exact)")
    number = Decimal(value)
    is_in_range = not number or SMALLEST_EXPONENT <= number.adjusted() <= LARGEST_EXPONENT
    if not (number.is_finite() and is_in_range and fits(value)):
        allowed = f"0 or a magnitude from 1E-130 to 9.9E+125, of at most {MAX_NUMBER_DIGITS} significant digits"
        raise InvalidArgumentError(argument, value, allowed)
    return value


def fits(*values: Number) -> bool:
    """Return whether DynamoDB stores finite numbers without rounding: up to 38 significant digits."""
    return all(
        # Counts take the shortcut.
        (isinstance(value, int) and -_BEYOND < value < _BEYOND)
        or len(significant_digits(Decimal(value))) <= MAX_NUMBER_DIGITS
        for value in values
    )


def whole(number: Number) -> Number:
    return int(number) if number == int(number) else number


def typed_number(value: Number) -> dict[str, str]:
    return {"N": format_number(value)}


def typed_text(text: str) -> dict[str, str]:
    """Return a text of a key with its type; one that is a number can be read as either."""
    return {"S": text, "N": text} if _NUMBER.fullmatch(text) else {"S": text}


def read_number(item: Mapping[str, Any], name: str) -> Number:
    return whole(parse_number(item[name]["N"])) if name in item else 0


def significant_digits(value: Decimal) -> str:
    return "".join(map(str, value.as_tuple().digits)).strip("0")


def converted(name: str, value: Any) -> Any:
    """Return the value itself, or what stands for it; `name` is the attribute, for errors."""
    if isinstance(value, Enum):
        return converted(name, value.value)
    if isinstance(value, datetime):
        return _moment(name, value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _FIRST_AMBIGUOUS:
            return int(value)
        # Subclasses such as NumPy's print themselves otherwise.
        number = Decimal(float.__repr__(value))
        if len(significant_digits(number)) > _FLOAT_DIGITS:
            allowed = f"a float of at most {_FLOAT_DIGITS} digits, which is exact: round it, or pass a Decimal or int"
            raise InvalidArgumentError(name, value, allowed)
        return whole(require_storable(name, number))
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


def plain_value(value: Mapping[str, Any]) -> Any:
    """Return numbers as int or Decimal, binary as bytes, lists, maps and sets as such."""
    [(kind, content)] = value.items()
    if kind in ("N", "B"):
        return parse_number(content) if kind == "N" else binary(content)
    if kind in ("SS", "NS", "BS"):
        return {plain_value({kind[0]: member}) for member in content}
    if kind == "L":
        return [plain_value(member) for member in content]
    if kind == "M":
        return {name: plain_value(member) for name, member in content.items()}
    return None if kind == "NULL" else content


def value_text(value: Mapping[str, Any]) -> str:
    """Return a typed value as its sender wrote it, for messages: null as such."""
    return "null" if value.keys() <= {"NULL"} else f"{plain_value(value)!r:.80}"


def binary(content: str | bytes) -> bytes:
    """Return binary as bytes: in a stream record, and within a chunk, it is base64 text."""
    return base64.b64decode(content) if isinstance(content, str) else bytes(content)


def base64_text(content: str | bytes | bytearray) -> str:
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def key_text(name: str, value: object) -> str:
    """Return the unescaped text of a value, one of the number 1 and the string "1"; `name` is the field, for errors."""
    if type(value) not in (str, int, Decimal):
        value = converted(name, value)
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidArgumentError(name, value, "valid Unicode without lone surrogates")
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and Decimal(value).is_finite():
        return format_number(value)
    raise InvalidArgumentError(name, value, "a string, number, date, UUID or Enum of these as part of a key")


def escape(text: str) -> str:
    """Return text without ``#`` and control characters, never empty: ``50%#1`` is ``50%25%231``."""
    return (text.translate(_ESCAPES) if UNSAFE.search(text) else text) or EMPTY


def unescape(text: str) -> str:
    return "" if text == EMPTY else unquote(text, errors="strict")


def event_seconds(value: Mapping[str, Any]) -> int:
    """Return the time of a typed attribute in whole seconds, rounded down; numbers from 10^11 on are milliseconds."""
    # A number in a key is both.
    if "S" in value and "N" not in value:
        # Not timestamp(): far from 1970, a float rounds the last microsecond of a second up to the next.
        since = _moment_of(value["S"]) - _EPOCH
        seconds = since.days * DAY + since.seconds
    elif "N" in value:
        number = parse_number(value["N"])
        if not -_FIRST_MICROSECONDS < number < _FIRST_MICROSECONDS:
            raise MalformedImageError(f"{number} is neither epoch seconds nor milliseconds")
        seconds = math.floor(number) // (1 if -_FIRST_MILLISECONDS < number < _FIRST_MILLISECONDS else 1000)
    else:
        raise MalformedImageError(f"{value_text(value)} is not a time: expected a string or a number")
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise MalformedImageError(f"{value_text(value)} is not in the years 1 to 9999 of UTC")
    return seconds


def canonical_time(text: str) -> str:
    """Return the text of its moment as a `datetime`; digits finer than microseconds stay, as events differ in them."""
    moment, finer = _moment("time", _moment_of(text)), _FINER.search(text)
    return moment if finer is None else f"{moment[:-1]}{'' if '.' in moment else '.000000'}{finer[1]}Z"


def sortable_time(text: str) -> str:
    """Return a canonical text with nine digits of a second, so that texts sort as their moments."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction:0<9}Z"


def _moment_of(text: str) -> datetime:
    try:
        # RFC 3339 allows a small z, Python does not.
        moment = datetime.fromisoformat(f"{text[:-1]}Z" if text.endswith("z") else text)
    except ValueError:
        reason = "is a leap second, which no count can hold" if _LEAP.search(text) else "is not an ISO 8601 time"
        raise MalformedImageError(f"{text!r:.80} {reason}") from None
    if moment.tzinfo is None:
        reason = "has no offset from UTC, so its moment is ambiguous; write ...Z or +02:00"
        raise MalformedImageError(f"{text!r:.80} {reason}")
    return moment
