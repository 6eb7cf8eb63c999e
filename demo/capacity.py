"""What DynamoDB charges: sizes of items, and the units of reading and writing them.

Emulators report one unit a request whatever its size, so the demonstration applies DynamoDB's published rules itself:
a write costs a unit per started kilobyte of the item, an eventually consistent query half a unit per started four
kilobytes of all items it looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_CONTAINER_BYTES: Final = 3


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Give the size of an item by DynamoDB's rules.

    Parameters
    ----------
    item : mapping
        Attribute name to typed value.

    Returns
    -------
    int
        Bytes of names and values.

    Examples
    --------
    >>> item_bytes({"pk": {"S": "URL#é"}, "views": {"N": "1234"}})
    16
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def write_units(size: int) -> float:
    """Give the units of writing one item.

    Parameters
    ----------
    size : int
        Bytes of the item, the larger of before and after.

    Returns
    -------
    float
        Whole units, at least one.

    Examples
    --------
    >>> write_units(0), write_units(1024), write_units(1025)
    (1.0, 1.0, 2.0)
    """
    return float(max(1, math.ceil(size / 1024)))


def query_units(items: Iterable[Mapping[str, Mapping[str, Any]]], *, consistent: bool = False) -> float:
    """Give the units of one page of a query.

    Parameters
    ----------
    items : iterable of mapping
        Everything the query looked at, with all attributes.
    consistent : bool, optional
        Whether the read was strongly consistent.

    Returns
    -------
    float
        Units; half of them unless consistent.

    Examples
    --------
    >>> query_units([]), query_units([{"pk": {"S": "a" * 5000}}], consistent=True)
    (0.5, 2.0)
    """
    blocks = max(1, math.ceil(sum(map(item_bytes, items)) / 4096))
    return blocks * (1.0 if consistent else 0.5)


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "M":
        return _CONTAINER_BYTES + len(content) + item_bytes(content)
    if kind == "L":
        return _CONTAINER_BYTES + sum(1 + _value_bytes(member) for member in content)
    measure = _MEASURES.get(kind[0])
    if kind in _FLAGS or measure is None:
        return 1
    return sum(map(measure, content if kind in _SETS else [content]))


def _number_bytes(text: str) -> int:
    # Two digits a byte, and one more; zeros at either end are free.
    digits = text.lstrip("-").partition("E")[0].replace(".", "").strip("0")
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")


_FLAGS: Final = frozenset({"BOOL", "NULL"})
_SETS: Final = frozenset({"SS", "NS", "BS"})
_MEASURES: Final[Mapping[str, Callable[[Any], int]]] = {
    "S": lambda text: len(text.encode()),
    "N": _number_bytes,
    "B": len,
}
