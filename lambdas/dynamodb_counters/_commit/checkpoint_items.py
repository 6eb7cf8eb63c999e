"""Checkpoint items: what the table holds of a shard, and what has settled of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

from dynamodb_counters._assumptions import CHECKPOINT_KEPT, SETTLED_AFTER
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SEQUENCE_DIGITS, SK, TTL, TYPE
from dynamodb_counters._items.watermarks import shard_digest

WITNESS: Final = "WITNESS"
"""Sort key of the item that tells that there was a checkpoint."""

BOOK: Final = ">"
"""Between a shard's name and the first record of a later book; no shard is called so."""

PLACES: Final = ("since", "met", "met_at", "successor", "successor_at")
"""What must not be lost together with the checkpoint."""

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
    """Of batches that failed, sequence numbers and places: all groups before the place have applied all records up to
    the number."""
    just_lost: bool = False
    """Whether this process has just found out."""
    since: str = ""
    """The first record of a shard's first book; "" if nobody can tell."""
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
        """The checkpoint an item holds; ValueError if somebody has spoiled it."""

        def number(name: str) -> float:
            return float(_value(item, name, "N", "0"))

        def sequence(name: str) -> str:
            text = _value(item, name, "S", "")
            if text and not is_sequence(text):
                raise ValueError(f"invalid {name}={text!r:.80}: expected {SEQUENCE_DIGITS} digits")
            return str(text)

        return cls(
            number("seen"),
            sequence("applied_through"),
            number("at"),
            sequence("mark"),
            number("mark_at"),
            sequence("settled"),
            number("lost_before"),
            progress=tuple(
                (through, place)
                for through, _, place in (part.partition(":") for part in _value(item, "progress", "S", "").split())
                if is_sequence(through)
            ),
            since=sequence("since"),
            met=sequence("met"),
            tried=sequence("tried"),
            busy=number("busy"),
            met_at=number("met_at"),
            successor=sequence("successor"),
            successor_at=number("successor_at"),
            blurred=bool(_value(item, "blurred", "BOOL", fallback=False)),
        )

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


def _value(item: Mapping[str, Any], name: str, kind: str, fallback: Any) -> Any:
    typed = item.get(name, {kind: fallback})
    if kind not in typed:
        raise ValueError(f"invalid {name}={typed!r:.80}: expected type {kind}")
    return typed[kind]


def progress_text(progress: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{through}:{place}" for through, place in progress)


def checkpoint_item(shard: str, values: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {**checkpoint_key(shard_digest(shard)), **attributes({TYPE: CHECKPOINT, "shard": shard, **values}, now)}


def witness_item(shard: str, known: Checkpoint, *, moved: bool, now: float) -> dict[str, Any]:
    """What must not be lost together with the checkpoint."""
    values = {"moved": moved} | {name: value for name in PLACES if (value := getattr(known, name))}
    return {**checkpoint_item(shard, values, now), **checkpoint_key(shard_digest(shard), WITNESS)}


def checkpoint_key(digest: str, sk: str = "CHECKPOINT") -> dict[str, Any]:
    return {PK: {"S": CHECKPOINT_PREFIX + digest}, SK: {"S": sk}}


def attributes(values: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Attributes with the item's TTL."""
    return {name: _typed(value) for name, value in {TTL: now + CHECKPOINT_KEPT, **values}.items()}


def _typed(value: str | float | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    # Stamps are rounded up: a later one is only cautious.
    return {"S": value} if isinstance(value, str) else {"N": str(math.ceil(value))}
