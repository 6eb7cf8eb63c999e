"""DynamoDB's published rules for the sizes of items and the units of reads and writes.

Emulators report one unit per request whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_CONTAINER_BYTES: Final = 3


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """The size of an item: the bytes of its names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def write_units(size: int) -> float:
    """Units to write an item of `size` bytes, the larger of before and after: one per started KB."""
    return float(max(1, math.ceil(size / 1024)))


def query_units(items: Iterable[Mapping[str, Mapping[str, Any]]], *, consistent: bool = False) -> float:
    """Units of one page of a query: one per started 4 KB of all items it looked at, half if eventually consistent."""
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
    # One byte per two digits, and one more; zeros at either end are free.
    digits = text.lstrip("-").partition("E")[0].replace(".", "").strip("0")
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")


_FLAGS: Final = frozenset({"BOOL", "NULL"})
_SETS: Final = frozenset({"SS", "NS", "BS"})
_MEASURES: Final[Mapping[str, Callable[[Any], int]]] = {
    "S": lambda text: len(text.encode()),
    "N": _number_bytes,
    "B": len,
}
