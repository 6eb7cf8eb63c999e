"""Checkpoints: per shard, the record up to which every item of every batch is committed.

An invocation reads its shard's first and drops the records it covers. A checkpoint is *settled* once it has stood for
longer than any invocation that has not read it can run: watermarks at or below it may be pruned. It is stamped with the
deadline of its writer, as its write may land until then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import CHECKPOINT_KEPT, FRESH, SETTLED_AFTER
from dynamodb_counters._items.schema import (
    CHECKPOINT,
    CHECKPOINT_PREFIX,
    PK,
    SEQUENCE_DIGITS,
    SK,
    TTL,
    TYPE,
    bookkeeping_key,
    typed_values,
)
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import MINUTE
from dynamodb_counters.errors import CheckpointError
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, shard_digest


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of a shard: padded sequence numbers ("" for none) and stamps in seconds since 1970."""

    applied_through: str = ""
    at: float = 0.0

    def settled_through(self, now: float) -> str:
        """Every invocation that may still run has read a checkpoint at or beyond this."""
        return self.applied_through if self.at + SETTLED_AFTER < now else ""


def is_sequence(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.isdecimal() and len(text) == SEQUENCE_DIGITS


def checkpoint_key(digest: str) -> dict[str, Any]:
    return bookkeeping_key("CHECKPOINT", digest)


WORTH_A_WRITE: Final = 100
"""Items touched since the checkpoint moved."""

_READ_AGAIN: Final = 5 * MINUTE
_KEYS_PER_CALL: Final = 100
_FORWARD: Final = "attribute_not_exists(applied_through) OR applied_through < :applied_through"


@dataclass(slots=True)
class _Observed:
    """What a process knows of the checkpoint of a shard that it prunes the watermarks of."""

    settled: str = ""
    pending: Checkpoint = Checkpoint()
    read_at: float = 0.0

    def observe(self, checkpoint: Checkpoint, now: float) -> None:
        """Take note of a checkpoint; one that was read earlier settles, too, although it has moved since."""
        self.settled = max(self.settled, checkpoint.settled_through(now), self.pending.settled_through(now))
        if self.settled >= self.pending.applied_through:
            self.pending = checkpoint


class Checkpoints:
    """The checkpoints of one table, as one process knows them."""

    def __init__(self, table: Table, retrying: Table) -> None:
        self._table = retrying
        self._once = table
        """For requests that may as well be done later."""
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._observed: dict[str, _Observed] = {}

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
        # The stamp is rounded up: a later one is only cautious.
        position = {"applied_through": last, "at": math.ceil(deadline)}
        expires_at = math.ceil(self._table.clock() + CHECKPOINT_KEPT)
        written = typed_values({TYPE: CHECKPOINT, "shard": shard, TTL: expires_at, **position})
        try:
            table.client.update_item(
                TableName=table.name,
                Key=checkpoint_key(shard_digest(shard)),
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in written),
                ConditionExpression=_FORWARD,
                ExpressionAttributeNames={f"#{name}": name for name in written},
                ExpressionAttributeValues={f":{name}": value for name, value in written.items()},
            )
        except (ClientError, BotoCoreError):
            # An old checkpoint is only cautious.
            self._read.pop(shard, None)
        else:
            self._touched[shard] = 0
            self._read[shard] = Checkpoint(last, deadline), read_at
        return 1.0

    def settled(self, watermarks: Mapping[str, tuple[int, float]]) -> set[str]:
        """The names of watermarks at or below a checkpoint of their shard that has settled."""
        digests = {name: name.removeprefix(WATERMARK_PREFIX) for name in watermarks}
        sequences = {digests[name]: f"{sequence:0{SEQUENCE_DIGITS}}" for name, (sequence, _) in watermarks.items()}
        now = self._table.clock()
        known = {digest: self._observed.setdefault(digest, _Observed()) for digest in sequences}
        unknown = [
            digest
            for digest, observed in known.items()
            if observed.settled < sequences[digest] and observed.read_at + _READ_AGAIN <= now
        ]
        for start in range(0, len(unknown), _KEYS_PER_CALL):
            part = unknown[start : start + _KEYS_PER_CALL]
            # An old answer is only cautious, so the read need not be consistent, nor complete.
            keys = [checkpoint_key(digest) for digest in part]
            answer = self._once.client.batch_get_item(RequestItems={self._table.name: {"Keys": keys}})
            for digest in part:
                known[digest].read_at = now
            for item in answer["Responses"].get(self._table.name, []):
                with suppress(CheckpointError):
                    known[item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)].observe(checkpoint_of(item), now)
        return {name for name, digest in digests.items() if sequences[digest] <= known[digest].settled}

    def _read_item(self, shard: str) -> Checkpoint:
        item = self._table.read_item(checkpoint_key(shard_digest(shard)))
        checkpoint = checkpoint_of(item)
        if item and item["shard"]["S"] != shard:
            raise CheckpointError(f"the shards {shard!r} and {item['shard']['S']!r} have the same digest")
        return checkpoint


def checkpoint_of(item: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint that a shard's item holds, if there is one; refuse one that is malformed."""
    if not item:
        return Checkpoint()
    # Either name of two shards with the same digest is right.
    with suppress(LookupError, ValueError):
        applied_through, digest = item["applied_through"]["S"], shard_digest(item["shard"]["S"])
        if is_sequence(applied_through) and digest == item[PK]["S"].removeprefix(CHECKPOINT_PREFIX):
            return Checkpoint(applied_through, float(item["at"]["N"]))
    raise CheckpointError(
        f"the item {item[PK]['S']!r}, {item[SK]['S']!r} is malformed: delete it, then run `counters verify "
        "--repair`, as records may have been counted twice"
    )
