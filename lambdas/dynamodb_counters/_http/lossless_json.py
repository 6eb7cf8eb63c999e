"""JSON without loss of precision: fractions are `Decimal`; binary is written as base64, a set as a sorted array."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

from dynamodb_counters._items.conversions import base64_text

MAX_LEVELS: Final = 34
"""An array, an event in it, and the 32 levels that DynamoDB nests below an attribute."""

MAX_NUMBER: Final = 400
"""Characters of a number; DynamoDB's longest takes 170."""

# `json` cannot write a Decimal: each is written as a string with a secret mark, and the quotes are stripped afterwards.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')

_PARENTHESES: Final = bytes.maketrans(b"[]{}", b"()()")
_TO_OUTLINE: Final = bytes(set(range(256)) - set(b"[]{},"))


def read_json(text: str, *, max_levels: int = MAX_LEVELS, max_values: int | None = None) -> Any:
    """Parse JSON; a ValueError for NaN, infinities, duplicate members, huge numbers, too many levels or values."""
    _require_modest(text, max_levels, max_values)
    return json.loads(text, parse_float=_fraction, parse_constant=_reject_constant, object_pairs_hook=_unique_members)


def write_json(value: Any) -> str:
    """Write compact ASCII JSON with every digit of a Decimal."""
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


def _require_modest(text: str, max_levels: int, max_values: int | None) -> None:
    """Judge a document by its text, before anything walks it: the parser recurses, as does what reads its result."""
    # Strings do not count. In a text that is not JSON, all is judged right up to where the parser stops.
    # Without escapes, every second part between quotes is outside of strings.
    plain = text.encode(errors="replace").replace(rb"\\", b"").replace(rb"\"", b"")
    outline = b"".join(plain.split(b'"')[::2]).translate(_PARENTHESES, _TO_OUTLINE)
    brackets = outline.replace(b",", b"")
    for _ in range(max_levels):
        brackets = brackets.replace(b"()", b"")
    # Brackets that are left do not match, or enclose more than the levels that were taken off.
    if b"()" in brackets or brackets.count(b"(") > max_levels:
        raise ValueError(f"nested deeper than {max_levels} levels")
    # A value is the first of its container, or it follows a comma.
    if max_values is not None and (found := outline.count(b"(") + outline.count(b",") + 1) > max_values:
        raise ValueError(f"about {found} values; limit: {max_values}")


def _fraction(text: str) -> Decimal:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters; limit: {MAX_NUMBER}")
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = None
    # Written without an exponent, as in a key, 1E+999999999 would take a gigabyte.
    if number is None or abs(number.adjusted()) > MAX_NUMBER:
        raise ValueError(f"{text:.40} has too large an exponent")
    return number


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a duplicate member")
    return members


def _mark(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{_MARK}{value}"
    if isinstance(value, bytes | bytearray):
        return base64_text(value)
    if isinstance(value, AbstractSet):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
