"""The tables that a restored one is a copy of, and which records of theirs it may count. Pure.

Lambda may have given up on records of the original. Those that were created before the copy was made are in the copy,
and its watermarks show what was counted. Around that moment, times do not show what the copy contains: there, the
catch-up has compared the images, and has counted all that it contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._assumptions import COPY_SKEW
from dynamodb_counters._fold.origins import table_of
from dynamodb_counters._fold.records import Record, created_of

PREDECESSORS: Final = "predecessors"
"""Attribute of the history's item."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A table that this one was restored from, by its stream; times in seconds since 1970."""

    stream: str
    at: int
    """When the copy was made, or earlier."""
    read_from: int
    """Time from which on the catch-up has read all records created."""

    def is_of(self, stream: str) -> bool:
        """Whether a stream is this one, or an earlier one of its table: later ones may be the copy's, of one name."""
        return table_of(stream) == table_of(self.stream) and stream <= self.stream

    def sort(self, records: Sequence[Record]) -> tuple[tuple[Record, ...], int]:
        """The records that the copy contains and may have to count, and how many others are in doubt."""
        certain, settled_until = self.at - COPY_SKEW, self.at + COPY_SKEW
        contained = tuple(record for record in records if created_of(record) < certain)
        settled = sum(max(certain, self.read_from) <= created_of(record) <= settled_until for record in records)
        return contained, len(records) - len(contained) - settled


def read_predecessors(item: Mapping[str, Any]) -> tuple[Predecessor, ...]:
    """Those that the history's item names, the first one first."""
    parts = [part.split(":", 2) for part in item.get(PREDECESSORS, {}).get("S", "").split()]
    return tuple(Predecessor(stream, int(at), int(read_from)) for at, read_from, stream in parts)


def predecessors_text(predecessors: Sequence[Predecessor]) -> str:
    return " ".join(f"{one.at}:{one.read_from}:{one.stream}" for one in predecessors)
