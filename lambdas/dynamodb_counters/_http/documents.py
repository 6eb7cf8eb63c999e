"""JSON without loss: numbers with a point are `Decimal`, on the way in and on the way out."""

from __future__ import annotations

import json
import re
import secrets
from decimal import Decimal
from typing import Any, Final, NoReturn

# Numbers are put in as marked strings and unmarked in the text; nobody outside can guess the mark.
_MARK: Final = secrets.token_hex(12)
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')


def read_json(text: str) -> Any:
    """Read JSON.

    Parameters
    ----------
    text : str
        A document.

    Returns
    -------
    object
        With `int` and `Decimal` for numbers.

    Raises
    ------
    ValueError
        It is no JSON, nests too deep, or holds NaN, an infinity or an attribute twice.

    Examples
    --------
    >>> read_json('{"price": 0.1}')
    {'price': Decimal('0.1')}
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_members)
    except RecursionError:
        raise ValueError("nested too deep") from None


def write_json(value: Any) -> str:
    """Write JSON in ASCII, numbers in full.

    Parameters
    ----------
    value : object
        Mappings, sequences, strings, numbers, booleans and None.

    Returns
    -------
    str
        Compact.

    Examples
    --------
    >>> write_json({"sum": Decimal("0.10000000000000000000000001")})
    '{"sum":0.10000000000000000000000001}'
    """
    return _MARKED.sub(r"\1", json.dumps(value, separators=(",", ":"), default=_mark))


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a member twice")
    return members


def _mark(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{_MARK}{value}"
    raise TypeError(f"{type(value).__name__} is not written as JSON")
