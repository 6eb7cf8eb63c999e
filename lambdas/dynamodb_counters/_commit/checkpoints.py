"""Checkpoints: per shard, the record up to which every item of every batch is committed.

One item per shard. An invocation reads it first and drops the records it covers, so a batch that is delivered again
costs at most a read. A checkpoint is *settled* once it has stood for longer than any invocation that has not read it
can run: then a watermark at or below it can refuse nothing any more, and may be pruned.

The time that counts is when the checkpoint's write had landed. So it is stamped with the deadline of the invocation
that wrote it. On a busy shard the checkpoint moves before it settles; its *mark* is an earlier one that stays until it
has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import (
    ALIVE,
    CHECKPOINT_KEPT,
    FRESH,
    LONGEST_INVOCATION,
    OUTLIVED,
    SETTLED_AFTER,
)
from dynamodb_counters._items.bookkeeping import (
    bookkeeping_key,
    put_as_seen,
    read_fields,
    shard_digest,
    typed_values,
)
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SEQUENCE_DIGITS, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import CheckpointError

WITNESS: Final = "WITNESS"
"""Sort key of the item that proves that there was a checkpoint."""

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
    """Sequence numbers and places of batches that failed in this process: all groups before the place have applied all
    records up to the number."""
    just_lost: bool = False
    """Whether this process has just found out."""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint an item holds; ValueError if it is spoiled."""
        values = read_fields(cls, item)
        for name, text in values.items():
            if isinstance(text, str) and text and not is_sequence(text):
                raise ValueError(f"invalid {name}={text!r:.80}: expected {SEQUENCE_DIGITS} digits")
        return cls(**values)

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


def checkpoint_item(shard: str, values: Mapping[str, Any], now: float, sk: str = "CHECKPOINT") -> dict[str, Any]:
    return {**checkpoint_key(shard_digest(shard), sk), **attributes({TYPE: CHECKPOINT, "shard": shard, **values}, now)}


def witness_item(shard: str, *, moved: bool, now: float) -> dict[str, Any]:
    return checkpoint_item(shard, {"moved": moved}, now, WITNESS)


def checkpoint_key(digest: str, sk: str = "CHECKPOINT") -> dict[str, Any]:
    return bookkeeping_key(sk, digest)


def attributes(values: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Attributes with the item's TTL. Stamps are rounded up: a later one is only cautious."""
    rounded = {name: math.ceil(value) if isinstance(value, float) else value for name, value in values.items()}
    return typed_values({TTL: math.ceil(now + CHECKPOINT_KEPT), **rounded})


WORTH_A_WRITE: Final = 100
"""Items touched since the checkpoint moved."""

_READ_AGAIN: Final = HOUR
_KEYS_PER_CALL: Final = 100
_FORWARD: Final = (
    f"attribute_exists({PK}) AND (attribute_not_exists(applied_through) OR applied_through < :applied_through)"
)


class Checkpoints:
    """The checkpoints of one table, as one process knows them."""

    def __init__(self, table: Table, retrying: Table) -> None:
        self._table = retrying
        self._once = table
        """For requests that may as well be done later."""
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._settled: dict[str, tuple[str, float]] = {}

    def of(self, shard: str, last: str, deadline: float) -> Checkpoint:
        """The checkpoint of a shard whose batch ends with `last`."""
        before, read_at = self._read.get(shard, (None, 0.0))
        now = self._now()
        if before is not None and (before.applied_through >= last or read_at + FRESH > now):
            return before
        # The item exists before anything else is written.
        item = self._item(shard)
        found = self._read_item(shard, item) or self._create(shard, deadline, item)
        if found.seen + ALIVE < now:
            self._write(self._table, shard, {"seen": deadline}, f"attribute_exists({PK})")
            found = replace(found, seen=deadline)
        found = found.with_progress(before.progress if before is not None else ())
        self._read[shard] = replace(found, just_lost=False), now
        return found

    def committed(self, shard: str, last: str, touched: int, deadline: float) -> float:
        """Note that a batch is committed; move the checkpoint if that is worth a write, and return its units."""
        self._touched[shard] += touched
        return self.advance(shard, last, deadline) if self._touched[shard] >= WORTH_A_WRITE else 0.0

    def advance(self, shard: str, last: str, deadline: float) -> float:
        """Move the checkpoint forward to `last`."""
        found, read_at = self._read.get(shard) or (self._read_item(shard, self._item(shard)), self._now())
        if found is None or last <= found.applied_through:
            return 0.0
        moved: dict[str, Any] = {"applied_through": last, "at": deadline, "seen": deadline}
        settled = found.settled_through(self._now())
        if not found.mark or settled != found.settled:
            # The mark is replaced only once it, or what came after it, has settled.
            moved |= {"mark": last, "mark_at": deadline, "settled": settled}
        units = 1.0
        try:
            if not found.applied_through:
                units += 1.0
                # Nothing has been pruned so far. From now on, a checkpoint that is missing was lost.
                item = witness_item(shard, moved=True, now=self._now())
                self._once.client.put_item(TableName=self._table.name, Item=item)
            self._write(self._once, shard, moved, _FORWARD)
        except (ClientError, BotoCoreError):
            # An old checkpoint is only cautious.
            self._read.pop(shard, None)
            return units
        self._touched[shard] = 0
        self._read[shard] = replace(found, **moved), read_at
        return units

    def remember(self, shard: str, through: str, place: str) -> None:
        """Note how far a batch came that fails, so that its next delivery to this process comes farther."""
        if (known := self._read.get(shard)) is not None:
            self._read[shard] = known[0].with_progress([(through, place)]), -math.inf

    def settled(self, watermarks: Mapping[str, str]) -> set[str]:
        """Which shards, by digest, have a settled checkpoint at or beyond the given sequence number."""
        now = self._now()
        unknown = [
            digest
            for digest, sequence in watermarks.items()
            for settled, read_at in [self._settled.get(digest, ("", 0.0))]
            if settled < sequence and read_at + _READ_AGAIN <= now
        ]
        outlived: set[str] = set()
        for start in range(0, len(unknown), _KEYS_PER_CALL):
            # An old answer is only cautious, so the read need not be consistent, nor complete.
            keys = [checkpoint_key(digest) for digest in unknown[start : start + _KEYS_PER_CALL]]
            answer = self._once.client.batch_get_item(RequestItems={self._table.name: {"Keys": keys}})
            for item in answer["Responses"].get(self._table.name, []):
                digest, found = item[PK]["S"].removeprefix(CHECKPOINT_PREFIX), _readable(item)
                if found is None:
                    continue
                # A checkpoint that has settled by now has settled for good. A silent shard may come alive.
                self._settled[digest] = found.settled_through(now), now
                if _may_be_outlived(found, now) and self._is_silent(digest, now):
                    outlived.add(digest)
        settled = {
            digest for digest, sequence in watermarks.items() if sequence <= self._settled.get(digest, ("", 0.0))[0]
        }
        return settled | outlived

    def _is_silent(self, digest: str, now: float) -> bool:
        found = _readable(self._table.read_item(checkpoint_key(digest)))
        return found is not None and _may_be_outlived(found, now)

    def _now(self) -> float:
        return self._table.clock()

    def _item(self, shard: str, sk: str = "CHECKPOINT") -> Mapping[str, Any]:
        return self._table.read_item(checkpoint_key(shard_digest(shard), sk))

    def _read_item(self, shard: str, item: Mapping[str, Any]) -> Checkpoint | None:
        """The checkpoint of an item; one that is spoiled is as good as lost."""
        found = _readable(item)
        if found is not None and item["shard"]["S"] != shard:
            raise CheckpointError(f"the shards {shard!r} and {item['shard']['S']!r} have the same digest")
        return found

    def _create(self, shard: str, deadline: float, spoiled: Mapping[str, Any]) -> Checkpoint:
        moved = self._has_moved(shard)
        created: dict[str, Any] = {"seen": deadline}
        if moved:
            # Records created later had not settled: its watermarks are in place.
            created["lost_before"] = self._now() - LONGEST_INVOCATION
        if not self._put(checkpoint_item(shard, created, self._now()), spoiled):
            item = self._item(shard)
            return self._read_item(shard, item) or self._create(shard, deadline, item)
        return Checkpoint(**created, just_lost=moved)

    def _has_moved(self, shard: str) -> bool:
        """Whether the checkpoint of a shard has ever moved, as its witness says; put that if there is none."""
        item = self._item(shard, WITNESS)
        if not item:
            return not self._put(witness_item(shard, moved=False, now=self._now())) and self._has_moved(shard)
        try:
            return bool(item["moved"]["BOOL"])
        except LookupError:  # It is spoiled.
            return True

    def _put(self, item: dict[str, Any], spoiled: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Put an item that is not there, or is as it was when found to be spoiled; return whether it was."""
        return self._table.write("put_item", **put_as_seen(self._table.name, item, spoiled, spoiled))

    def _write(self, table: Table, shard: str, values: Mapping[str, Any], condition: str) -> None:
        written = attributes(values, table.clock())
        table.client.update_item(
            TableName=table.name,
            Key=checkpoint_key(shard_digest(shard)),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in written),
            # A checkpoint that is lost is created again, never by chance.
            ConditionExpression=condition,
            ExpressionAttributeNames={f"#{name}": name for name in written},
            ExpressionAttributeValues={f":{name}": value for name, value in written.items()},
        )


def _readable(item: Mapping[str, Any]) -> Checkpoint | None:
    try:
        # Either name of two shards with the same digest is right.
        is_named = shard_digest(item["shard"]["S"]) == item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)
        return Checkpoint.of(item) if is_named else None
    except (LookupError, ValueError):
        return None


def _may_be_outlived(checkpoint: Checkpoint, now: float) -> bool:
    """Whether its watermarks may be pruned though it does not cover them."""
    return checkpoint.seen + OUTLIVED < now
