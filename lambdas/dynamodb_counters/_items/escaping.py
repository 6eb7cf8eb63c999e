"""What stands for a value in a key: text that cannot be taken for the key's own, and back.

``#``, ``%`` and control characters become ``%XX``, so a ``#`` in a key is always the layout's.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final
from urllib.parse import unquote

from dynamodb_counters._items.decimals import format_number
from dynamodb_counters.errors import InvalidArgumentError

EMPTY: Final = "%"
"""Stands for an empty value: DynamoDB refuses empty keys, and no escape is a bare ``%``."""

_UNSAFE: Final = re.compile(r"[%#\x00-\x1f\x7f]")


def key_text(name: str, value: object) -> str:
    """Give the text that stands for a value in a key.

    Parameters
    ----------
    name : str
        Field name, for the error.
    value : str, int or Decimal
        The value. Equal numbers have equal texts; the number 1 and the string "1" share one.

    Returns
    -------
    str
        Unescaped text.

    Raises
    ------
    InvalidArgumentError
        Another type, or a string that is not valid Unicode.
    """
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidArgumentError(name, value, "valid Unicode (it holds a lone surrogate)")
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and Decimal(value).is_finite():
        return format_number(value)
    raise InvalidArgumentError(name, value, "a str, int or finite Decimal, to be part of a key")


def escape(text: str) -> str:
    """Make text safe to stand between delimiters.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Text without ``#`` and control characters; never empty.

    Examples
    --------
    >>> escape("50%#1"), escape("")
    ('50%25%231', '%')
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text) or EMPTY


def unescape(text: str) -> str:
    """Undo `escape`.

    Parameters
    ----------
    text : str
        Escaped text.

    Returns
    -------
    str
        The original.
    """
    return "" if text == EMPTY else unquote(text, errors="strict")
