"""A table in memory that keeps account of the units that its requests consume."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.memory.memory_client import MemoryDynamoDB
from simulation.memory.memory_partitions import Attempt, Key
from simulation.memory_table import MemoryTable
from simulation.recorded_stream import RecordedStream


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


class Metered(MemoryDynamoDB):
    """A client that counts calls and units in its `usage`."""

    streams = RecordedStream
    has_limits = True
    """Whether requests are refused that have too many parts."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.usage = Usage()

    def get_item(self, **request: Any) -> dict[str, Any]:
        self.usage.call()
        return super().get_item(**request)

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        self.usage.call()
        return super().batch_get_item(**request)

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        self.usage.call()
        return super().transact_write_items(**request)

    def batch_execute_statement(self, **request: Any) -> dict[str, Any]:
        self.usage.call()
        return super().batch_execute_statement(**request)

    def _single(self, operation: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        self.usage.call()
        return super()._single(operation, kind, request)

    def _page(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.usage.call()
        return super()._page(operation, request)

    def _require_few(self, operation: str, **parts: Any) -> None:
        if self.has_limits:
            super()._require_few(operation, **parts)

    def _consume(self, units: float) -> None:
        self.usage.read(units)

    def _admit(self, tried: Sequence[tuple[Key, Attempt, float]]) -> None:
        for key, done, units in tried:
            if done.reason["Code"] != "ValidationError":
                self.usage.write(key, units)


class MeteredTable(Metered, MemoryTable):
    """One table, metered."""

    stream: RecordedStream

    def renew_stream(self, label: str, seed: int) -> RecordedStream:
        """Disable the stream and enable it again; return the one before, which can be read for another day."""
        before = self.stream
        self.stream = self._only.stream = RecordedStream(seed, 1, self._clock, self.name, label)
        return before


def index_write_units(
    old: Mapping[str, Mapping[str, Any]] | None, new: Mapping[str, Mapping[str, Any]] | None, keys: tuple[str, str]
) -> float:
    """Units a write adds on an index of keys only: an entry is put, deleted, or (its key changed) both.

    >>> index_write_units(None, {"b": {"S": "all"}, "s": {"N": "1"}}, ("b", "s"))
    1.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, {"b": {"S": "all"}, "s": {"N": "2"}}, ("b", "s"))
    2.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, {"b": {"S": "all"}, "s": {"N": "1"}}, ("b", "s"))
    0.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, None, ("b", "s"))
    1.0
    """
    before, after = (tuple(item[key] for key in keys if key in item) if item else () for item in (old, new))
    return 0.0 if before == after else float((len(before) == len(keys)) + (len(after) == len(keys)))
