"""Checkpoint items: what the table holds of a shard, and what has settled of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

from dynamodb_counters._assumptions import CHECKPOINT_KEPT, SETTLED_AFTER
from dynamodb_counters._items.bookkeeping import bookkeeping_key, read_fields, read_value, typed_values
from dynamodb_counters._items.table_schema import CHECKPOINT, SEQUENCE_DIGITS, TTL, TYPE
from dynamodb_counters._items.watermarks import shard_digest

WITNESS: Final = "WITNESS"
"""Sort key of the item that proves that there was a checkpoint."""

BOOK: Final = ">"
"""Between a shard's name and the first record of a later book; no shard is called so."""

PLACES: Final = ("since", "met", "met_at", "successor", "successor_at")
"""Facts that must outlive the checkpoint."""

LAST_SEQUENCE: Final = "9" * SEQUENCE_DIGITS

_MOST_PROGRESS: Final = 8


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of a shard: padded sequence numbers ("" for none) and stamps in seconds since 1970."""

    seen: float = 0.0
    applied_through: str = ""
    at: float = 0.0
    mark: str = ""
    mark_at: float = 0.0
    settled: str = ""
    lost_before: float = 0.0
    """The checkpoint was lost: records created earlier may have been counted."""
    progress: tuple[tuple[str, str], ...] = ()
    """Sequence numbers and places of batches that failed: all groups before the place have applied all records up to
    the number."""
    just_lost: bool = False
    """Whether this process has just found out."""
    since: str = ""
    """The first record of a shard's first book; "" if it is unknown."""
    met: str = ""
    """No record up to this one belongs to a later book."""
    met_at: float = 0.0
    """When that record was created, or earlier."""
    tried: str = ""
    """Up to this record, an invocation may count in this book until `busy`."""
    busy: float = 0.0
    successor: str = ""
    """The first record of the book after this one."""
    successor_at: float = 0.0
    """When that record was created, or earlier."""
    blurred: bool = False
    """Whether records between those counted may not have been."""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint an item holds; ValueError if it is spoiled."""
        values = read_fields(cls, item)
        for name, text in values.items():
            if isinstance(text, str) and text and not is_sequence(text):
                raise ValueError(f"invalid {name}={text!r:.80}: expected {SEQUENCE_DIGITS} digits")
        parts = (part.partition(":") for part in read_value(item, "progress", "str", "").split())
        return cls(**values, progress=tuple((through, place) for through, _, place in parts if is_sequence(through)))

    def applied_through_at(self, place: str) -> str:
        """The last record that the groups at a place have applied, as far as is known."""
        return max((through for through, before in self.progress if place < before), default="")

    def with_progress(self, progress: Iterable[tuple[str, str]]) -> Checkpoint:
        """The same, of which more is known; without what says nothing that other progress does not."""
        known = {one for one in (*self.progress, *progress) if one[0] > self.applied_through}
        telling = [
            one for one in known if not any(one != two and one[0] <= two[0] and one[1] <= two[1] for two in known)
        ]
        return replace(self, progress=tuple(sorted(telling)[-_MOST_PROGRESS:]))

    def settled_through(self, now: float) -> str:
        """Every invocation that may still run has read a checkpoint at or beyond this."""
        if self.applied_through and self.at + SETTLED_AFTER < now:
            return self.applied_through
        if self.mark and self.mark_at + SETTLED_AFTER < now:
            return self.mark
        return self.settled


def is_sequence(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.isdecimal() and len(text) == SEQUENCE_DIGITS


def progress_text(progress: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{through}:{place}" for through, place in progress)


def checkpoint_item(shard: str, values: Mapping[str, Any], now: float, sk: str = "CHECKPOINT") -> dict[str, Any]:
    return {**checkpoint_key(shard_digest(shard), sk), **attributes({TYPE: CHECKPOINT, "shard": shard, **values}, now)}


def witness_item(shard: str, known: Checkpoint, *, moved: bool, now: float) -> dict[str, Any]:
    """Facts that must outlive the checkpoint."""
    values = {"moved": moved} | {name: value for name in PLACES if (value := getattr(known, name))}
    return checkpoint_item(shard, values, now, WITNESS)


def checkpoint_key(digest: str, sk: str = "CHECKPOINT") -> dict[str, Any]:
    return bookkeeping_key(sk, digest)


def attributes(values: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Attributes with the item's TTL. Stamps are rounded up: a later one is only cautious."""
    rounded = {name: math.ceil(value) if isinstance(value, float) else value for name, value in values.items()}
    return typed_values({TTL: math.ceil(now + CHECKPOINT_KEPT), **rounded})
