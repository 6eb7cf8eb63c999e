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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import CHECKPOINT_KEPT, FRESH, SETTLED_AFTER
from dynamodb_counters._items.bookkeeping import bookkeeping_key, read_fields, shard_digest, typed_values
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SEQUENCE_DIGITS, SK, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of a shard: padded sequence numbers ("" for none) and stamps in seconds since 1970."""

    applied_through: str = ""
    at: float = 0.0
    mark: str = ""
    mark_at: float = 0.0
    settled: str = ""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint an item holds; ValueError if it is spoiled."""
        values = read_fields(cls, item)
        for name, text in values.items():
            if isinstance(text, str) and text and not is_sequence(text):
                raise ValueError(f"invalid {name}={text!r:.80}: expected {SEQUENCE_DIGITS} digits")
        return cls(**values)

    def settled_through(self, now: float) -> str:
        """Every invocation that may still run has read a checkpoint at or beyond this."""
        if self.applied_through and self.at + SETTLED_AFTER < now:
            return self.applied_through
        if self.mark and self.mark_at + SETTLED_AFTER < now:
            return self.mark
        return self.settled


def is_sequence(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.isdecimal() and len(text) == SEQUENCE_DIGITS


def checkpoint_key(digest: str) -> dict[str, Any]:
    return bookkeeping_key("CHECKPOINT", digest)


WORTH_A_WRITE: Final = 100
"""Items touched since the checkpoint moved."""

_READ_AGAIN: Final = HOUR
_KEYS_PER_CALL: Final = 100
_FORWARD: Final = "attribute_not_exists(applied_through) OR applied_through < :applied_through"


class Checkpoints:
    """The checkpoints of one table, as one process knows them."""

    def __init__(self, table: Table, retrying: Table) -> None:
        self._table = retrying
        self._once = table
        """For requests that may as well be done later."""
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._settled: dict[str, tuple[str, float]] = {}

    def of(self, shard: str, last: str) -> Checkpoint:
        """The checkpoint of a shard whose batch ends with `last`."""
        cached, read_at = self._read.get(shard, (None, 0.0))
        now = self._table.clock()
        if cached is not None and (cached.applied_through >= last or read_at + FRESH > now):
            return cached
        checkpoint = self._read_item(shard)
        self._read[shard] = checkpoint, now
        return checkpoint

    def committed(self, shard: str, last: str, touched: int, deadline: float) -> float:
        """Note that a batch is committed; move the checkpoint if that is worth a write, and return its units."""
        self._touched[shard] += touched
        return self._move(self._once, shard, last, deadline) if self._touched[shard] >= WORTH_A_WRITE else 0.0

    def advance(self, shard: str, last: str, deadline: float) -> float:
        """Move the checkpoint forward to `last`, where nothing may do so later; return the units."""
        return self._move(self._table, shard, last, deadline)

    def _move(self, table: Table, shard: str, last: str, deadline: float) -> float:
        checkpoint, read_at = self._read.get(shard) or (self._read_item(shard), self._table.clock())
        if last <= checkpoint.applied_through:
            return 0.0
        moved: dict[str, Any] = {"applied_through": last, "at": deadline}
        settled = checkpoint.settled_through(self._table.clock())
        if not checkpoint.mark or settled != checkpoint.settled:
            # The mark is replaced only once it, or what came after it, has settled.
            moved |= {"mark": last, "mark_at": deadline, "settled": settled}
        try:
            self._write(table, shard, moved)
        except (ClientError, BotoCoreError):
            # An old checkpoint is only cautious.
            self._read.pop(shard, None)
            return 1.0
        self._touched[shard] = 0
        self._read[shard] = replace(checkpoint, **moved), read_at
        return 1.0

    def settled(self, watermarks: Mapping[str, str]) -> set[str]:
        """Which shards, by digest, have a settled checkpoint at or beyond the given sequence number."""
        now = self._table.clock()
        unknown = [
            digest
            for digest, sequence in watermarks.items()
            for settled, read_at in [self._settled.get(digest, ("", 0.0))]
            if settled < sequence and read_at + _READ_AGAIN <= now
        ]
        for start in range(0, len(unknown), _KEYS_PER_CALL):
            # An old answer is only cautious, so the read need not be consistent, nor complete.
            part = unknown[start : start + _KEYS_PER_CALL]
            self._settled |= {digest: (self._settled.get(digest, ("", 0.0))[0], now) for digest in part}
            keys = [checkpoint_key(digest) for digest in part]
            answer = self._once.client.batch_get_item(RequestItems={self._table.name: {"Keys": keys}})
            for item in answer["Responses"].get(self._table.name, []):
                if (checkpoint := _readable(item)) is not None:
                    # A checkpoint that has settled by now has settled for good.
                    digest = item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)
                    self._settled[digest] = checkpoint.settled_through(now), now
        return {
            digest for digest, sequence in watermarks.items() if sequence <= self._settled.get(digest, ("", 0.0))[0]
        }

    def _read_item(self, shard: str) -> Checkpoint:
        item = self._table.read_item(checkpoint_key(shard_digest(shard)))
        checkpoint = checkpoint_of(item)
        if item and item["shard"]["S"] != shard:
            raise CheckpointError(f"the shards {shard!r} and {item['shard']['S']!r} have the same digest")
        return checkpoint

    def _write(self, table: Table, shard: str, moved: Mapping[str, Any]) -> None:
        # Stamps are rounded up: a later one is only cautious.
        stamps = {name: math.ceil(value) for name, value in moved.items() if isinstance(value, float)}
        expires_at = math.ceil(self._table.clock() + CHECKPOINT_KEPT)
        written = typed_values({TYPE: CHECKPOINT, "shard": shard, TTL: expires_at, **moved, **stamps})
        table.client.update_item(
            TableName=table.name,
            Key=checkpoint_key(shard_digest(shard)),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in written),
            ConditionExpression=_FORWARD,
            ExpressionAttributeNames={f"#{name}": name for name in written},
            ExpressionAttributeValues={f":{name}": value for name, value in written.items()},
        )


def checkpoint_of(item: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint that a shard's item holds, if there is one; refuse one that is malformed."""
    if item and _readable(item) is None:
        raise CheckpointError(
            f"the item {item[PK]['S']!r}, {item[SK]['S']!r} is malformed: delete it, then run `counters repair`, as "
            "records may have been counted twice"
        )
    return Checkpoint.of(item)


def _readable(item: Mapping[str, Any]) -> Checkpoint | None:
    try:
        # Either name of two shards with the same digest is right.
        is_named = shard_digest(item["shard"]["S"]) == item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)
        return Checkpoint.of(item) if is_named else None
    except (LookupError, ValueError):
        return None
