"""JSON without loss of precision: fractional numbers are `Decimal` in both directions.

Of what DynamoDB can hold and JSON cannot, binary is written as base64, and a set as a sorted array.
"""

from __future__ import annotations

import json
import re
import secrets
from base64 import b64encode
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final, NoReturn

# `json` cannot write a Decimal: each is written as a string with a secret mark, and the quotes are stripped afterwards.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')


def read_json(text: str) -> Any:
    """Parse JSON; a ValueError for NaN, infinities, duplicate members and nesting that is too deep.

    >>> read_json('{"price": 0.1}')
    {'price': Decimal('0.1')}
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_reject_constant, object_pairs_hook=_unique_members)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_json(value: Any) -> str:
    """Write compact ASCII JSON with every digit of a Decimal.

    >>> write_json({"sum": Decimal("0.10000000000000000000000001")})
    '{"sum":0.10000000000000000000000001}'
    """
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


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
        return b64encode(value).decode()
    if isinstance(value, AbstractSet):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
