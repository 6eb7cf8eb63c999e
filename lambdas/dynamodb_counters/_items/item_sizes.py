"""The billed size of a typed item.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

WRITE_UNIT_BYTES: Final = 1024
READ_UNIT_BYTES: Final = 4096
MAX_ITEM_BYTES: Final = 400 * 1024
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

INDEX_UNITS: Final = 2.0
"""Write units of a changed key of an index: an entry is deleted, another one put."""

_CONTAINER_BYTES: Final = 3


def write_units(size: float) -> float:
    """Write units of an item of that many bytes."""
    return float(max(1, math.ceil(size / WRITE_UNIT_BYTES)))


def read_units(items: Iterable[Mapping[str, Mapping[str, Any]]], *, consistent: bool = False) -> float:
    """Read units of a page of items: one per started 4 KB of all of them, half of that unless consistent."""
    return max(1, math.ceil(sum(map(item_bytes, items)) / READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    size = 1
    match kind:
        case "S" | "B":
            size = len(content.encode() if kind == "S" else content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            size = (len(digits) + 1) // 2 + 1 + content.startswith("-")
        case "SS" | "NS" | "BS":
            size = sum(_value_bytes({kind[0]: member}) for member in content)
        case "L":
            size = _CONTAINER_BYTES + sum(1 + _value_bytes(member) for member in content)
        case "M":
            size = _CONTAINER_BYTES + len(content) + item_bytes(content)
    return size
