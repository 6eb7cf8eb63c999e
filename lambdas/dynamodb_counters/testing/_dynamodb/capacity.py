"""Charges of DynamoDB by its published rules: sizes of items, units of requests, dollars."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._price_file import PRICES

DOLLARS_PER_MILLION_WRITES: Final = 1e6 * PRICES.of("dynamodb.write_unit")
DOLLARS_PER_MILLION_READS: Final = 1e6 * PRICES.of("dynamodb.read_unit")

UNITS_PER_SECOND: Final = 1000.0
"""Write units per second that a partition, and so an item, can take."""

INDEX_UNITS_PER_MOVE: Final = 2.0
"""Units that an update adds if it changes an item's key in an index: the index deletes one entry and puts another."""

Key = tuple[str, ...]
"""Table name and the values of the key."""

_CONTAINER_BYTES: Final = 3


@dataclass(slots=True)
class Usage:
    """Units that requests have consumed, refused ones included; `items` has the write units by item."""

    calls: int = 0
    writes: float = 0.0
    reads: float = 0.0
    items: Counter[Key] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def call(self) -> None:
        with self._lock:
            self.calls += 1

    def write(self, key: Key, units: float) -> None:
        with self._lock:
            self.writes += units
            self.items[key] += units  # type: ignore[assignment]  # typeshed wants whole counts

    def read(self, units: float) -> None:
        with self._lock:
            self.reads += units


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """The billed size of an item: bytes of names and values.

    >>> item_bytes({"pk": {"S": "URL#é"}, "views": {"N": "1234"}})
    16
    """
    size = 0
    for name, value in item.items():
        size += len(name) if name.isascii() else len(name.encode())
        # Most values are text or numbers: this runs for every request of every test.
        if "S" in value:
            text = value["S"]
            size += len(text) if text.isascii() else len(text.encode())
        else:
            size += (
                _number_bytes(value["N"]) if "N" in value else len(value["B"]) if "B" in value else _value_bytes(value)
            )
    return size


def write_units(size: int) -> float:
    """Units of a write of that many bytes, the larger of before and after: one per started KB.

    >>> write_units(0), write_units(1024), write_units(1025)
    (1.0, 1.0, 2.0)
    """
    return float(max(1, math.ceil(size / 1024)))


def index_write_units(
    old: Mapping[str, Mapping[str, Any]] | None, new: Mapping[str, Mapping[str, Any]] | None, keys: tuple[str, str]
) -> float:
    """Units a write adds on an index of keys only: an entry is put, deleted, or (its key changed) both.

    >>> index_write_units(None, {"b": {"S": "all"}, "s": {"N": "1"}}, ("b", "s"))
    1.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, {"b": {"S": "all"}, "s": {"N": "2"}}, ("b", "s"))
    2.0
    """
    before, after = (tuple(item[key] for key in keys if key in item) if item else () for item in (old, new))
    return 0.0 if before == after else float((len(before) == len(keys)) + (len(after) == len(keys)))


def query_units(items: Iterable[Mapping[str, Mapping[str, Any]]], *, consistent: bool = False) -> float:
    """Units of one page of all items a query looked at: one per started 4 KB, half of that unless consistent.

    >>> query_units([]), query_units([{"pk": {"S": "a" * 5000}}], consistent=True)
    (0.5, 2.0)
    """
    blocks = max(1, math.ceil(sum(map(item_bytes, items)) / 4096))
    return blocks * (1.0 if consistent else 0.5)


def dollars_per_million(writes: float, reads: float) -> float:
    """US dollars per million of what takes so many units; storage, Lambda and queues are left out.

    >>> dollars_per_million(4, 0)
    2.5
    """
    return writes * DOLLARS_PER_MILLION_WRITES + reads * DOLLARS_PER_MILLION_READS


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "M":
        return _CONTAINER_BYTES + len(content) + item_bytes(content)
    if kind == "L":
        return _CONTAINER_BYTES + sum(1 + _value_bytes(member) for member in content)
    if kind in ("SS", "NS", "BS"):
        return sum(_value_bytes({kind[0]: member}) for member in content)
    if kind in ("BOOL", "NULL"):
        return 1
    return _number_bytes(content) if kind == "N" else len(content.encode() if kind == "S" else content)


def _number_bytes(text: str) -> int:
    # Two digits per byte, and one more; zeros at either end are free.
    digits = text if text.isdecimal() else text.lstrip("-").partition("E")[0].replace(".", "")
    digits = digits.strip("0")
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")
