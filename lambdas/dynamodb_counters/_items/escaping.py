"""How values stand in keys: ``#``, ``%`` and control characters become ``%XX``, so every ``#`` is a delimiter."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final
from urllib.parse import unquote

from dynamodb_counters._items.conversions import converted
from dynamodb_counters._items.decimals import format_number
from dynamodb_counters.errors import InvalidArgumentError

EMPTY: Final = "%"
"""Stands for the empty string, which DynamoDB refuses in keys; escapes never consist of a bare ``%``."""

LAST_CHARACTER: Final = "\U0010ffff"

UNSAFE: Final = re.compile(r"[%#\x00-\x1f\x7f]")
_ESCAPES: Final = {code: f"%{code:02X}" for code in (*range(0x20), ord("%"), ord("#"), 0x7F)}


def key_text(name: str, value: object) -> str:
    """The unescaped text of a value; the number 1 and the string "1" share one. `name` is the field, for errors."""
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
    """Text without ``#`` and control characters, never empty.

    >>> escape("50%#1"), escape("")
    ('50%25%231', '%')
    """
    return (text.translate(_ESCAPES) if UNSAFE.search(text) else text) or EMPTY


def unescape(text: str) -> str:
    return "" if text == EMPTY else unquote(text, errors="strict")
