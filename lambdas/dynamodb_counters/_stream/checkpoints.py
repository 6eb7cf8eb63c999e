"""Checkpoints: per shard, the record up to which every item of every batch is committed.

One item per shard. An invocation reads it first and drops the records it covers, so a batch that is delivered again
costs at most a read. A checkpoint is *settled* once it has stood for longer than any invocation that has not read it
can run: then a watermark at or below it can refuse nothing any more, and may be pruned.

What counts is when the checkpoint's write had landed. So it is stamped with the deadline of the invocation that wrote
it. On a busy shard the checkpoint moves before it settles; its *mark* is an earlier one that stays until it has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SEQUENCE_DIGITS, SK, TTL, TYPE
from dynamodb_counters._stream.quarantine_items import OLD_FORMAT, WATERMARKS, token_key
from dynamodb_counters._stream.watermarks import shard_digest
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY, MINUTE
from dynamodb_counters.errors import CheckpointError

LONGEST_INVOCATION: Final = 15 * MINUTE
"""https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

FRESH: Final = MINUTE
"""A process may rely so long on what it has read."""

SKEW: Final = 5 * MINUTE
"""Clocks differ, and requests land after they were sent, by less than this together."""

SETTLED_AFTER: Final = LONGEST_INVOCATION + FRESH + SKEW

ALIVE: Final = DAY
"""A shard that wakes up after longer says so before it commits anything."""

OUTLIVED: Final = 7 * DAY
"""A shard silent for longer has no records young enough to be folded."""

WORTH_A_WRITE: Final = 100
"""Items touched since the checkpoint moved."""

_KEPT: Final = 30 * DAY
_READ_AGAIN: Final = 10 * MINUTE
_KEYS_PER_CALL: Final = 100
_EVERYTHING: Final = "9" * SEQUENCE_DIGITS


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
    old_format: bool = False
    """Whether items hold this shard's watermark in the format of versions without checkpoints."""
    just_lost: bool = False
    """Whether this process has just found out."""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Checkpoint:
        def number(name: str) -> float:
            return float(item.get(name, {}).get("N", 0))

        def text(name: str) -> str:
            return str(item.get(name, {}).get("S", ""))

        return cls(
            number("seen"),
            text("applied_through"),
            number("at"),
            text("mark"),
            number("mark_at"),
            text("settled"),
            number("lost_before"),
            bool(item.get("old_format", {}).get("BOOL")),
        )

    def settled_through(self, now: float) -> str:
        """Every invocation that may still run has read a checkpoint at or beyond this."""
        if self.applied_through and self.at + SETTLED_AFTER < now:
            return self.applied_through
        if self.mark and self.mark_at + SETTLED_AFTER < now:
            return self.mark
        return self.settled


class Checkpoints:
    """The checkpoints of one table, as one process knows them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._settled: dict[str, tuple[str, float]] = {}

    def of(self, shard: str, last: str, deadline: float) -> Checkpoint:
        """The checkpoint of a shard whose batch ends with `last`; the item exists before anything else is written."""
        found, read_at = self._read.get(shard, (None, 0.0))
        now = self._table.clock()
        if found is None or (found.applied_through < last and read_at + FRESH <= now):
            found = self._get(shard) or self._create(shard, deadline)
            if found.seen + ALIVE < now:
                self._write(shard, {"seen": deadline})
            self._read[shard] = replace(found, just_lost=False), now
        return found

    def committed(self, shard: str, last: str, touched: int, deadline: float) -> float:
        """Note that a batch is committed; move the checkpoint if that is worth a write, and return its units."""
        self._touched[shard] += touched
        return self.advance(shard, last, deadline) if self._touched[shard] >= WORTH_A_WRITE else 0.0

    def advance(self, shard: str, last: str, deadline: float) -> float:
        """Move the checkpoint forward; a refusal or failure is passed over, for an old checkpoint is only cautious."""
        if shard in self._read:
            found, read_at = self._read[shard]
        else:
            found, read_at = self._get(shard) or Checkpoint(), self._table.clock()
        if last <= found.applied_through:
            return 0.0
        moved: dict[str, Any] = {"applied_through": last, "at": deadline, "seen": deadline}
        settled = found.settled_through(self._table.clock())
        if not found.mark or settled != found.settled:
            # The mark is replaced only once it, or what came after it, has settled.
            moved |= {"mark": last, "mark_at": deadline, "settled": settled}
        try:
            self._write(shard, moved, "attribute_not_exists(applied_through) OR applied_through < :applied_through")
        except (ClientError, BotoCoreError):
            self._read.pop(shard, None)
            return 1.0
        self._touched[shard] = 0
        self._read[shard] = replace(found, **moved), read_at
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
            keys = [_key(digest) for digest in unknown[start : start + _KEYS_PER_CALL]]
            answer = self._table.client.batch_get_item(RequestItems={self._table.name: {"Keys": keys}})
            for item in answer["Responses"].get(self._table.name, []):
                found = Checkpoint.of(item)
                settled = _EVERYTHING if found.seen + OUTLIVED < now else found.settled_through(now)
                self._settled[item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)] = settled, now
        return {digest for digest, sequence in watermarks.items() if sequence <= self._settled.get(digest, ("",))[0]}

    def _get(self, shard: str) -> Checkpoint | None:
        item = self._consistent(_key(shard_digest(shard)))
        if item is None:
            return None
        if item["shard"]["S"] != shard:
            raise CheckpointError(f"the shards {shard!r} and {item['shard']['S']!r} have the same digest")
        return Checkpoint.of(item)

    def _create(self, shard: str, deadline: float) -> Checkpoint:
        # The fencing token is written after the checkpoint: what it tells of the format, a checkpoint told before.
        token = self._consistent(token_key(shard))
        created: dict[str, Any] = {"seen": deadline}
        lost = token is not None and WATERMARKS in token
        if lost:
            # What was created later had not settled: its watermarks are in place.
            created["lost_before"] = self._table.clock() - LONGEST_INVOCATION
        if token is not None:
            created["old_format"] = token.get(WATERMARKS, {"S": OLD_FORMAT})["S"] == OLD_FORMAT
        try:
            self._write(shard, {"shard": shard, **created}, f"attribute_not_exists({PK})")
        except self._table.client.exceptions.ConditionalCheckFailedException:
            return self._get(shard) or Checkpoint()
        return Checkpoint(**created, just_lost=lost)

    def _consistent(self, key: dict[str, Any]) -> Mapping[str, Any] | None:
        answer = self._table.client.get_item(TableName=self._table.name, Key=key, ConsistentRead=True)
        return answer.get("Item")

    def _write(self, shard: str, values: Mapping[str, Any], condition: str | None = None) -> None:
        values = {TYPE: CHECKPOINT, TTL: self._table.clock() + _KEPT, **values}
        request: dict[str, Any] = {
            "TableName": self._table.name,
            "Key": _key(shard_digest(shard)),
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values),
            "ExpressionAttributeNames": {f"#{name}": name for name in values},
            "ExpressionAttributeValues": {f":{name}": _typed(value) for name, value in values.items()},
        }
        if condition is not None:
            request["ConditionExpression"] = condition
        self._table.client.update_item(**request)


def _key(digest: str) -> dict[str, Any]:
    return {PK: {"S": CHECKPOINT_PREFIX + digest}, SK: {"S": "CHECKPOINT"}}


def _typed(value: str | float | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    # Stamps are rounded up: a later one is only cautious.
    return {"S": value} if isinstance(value, str) else {"N": str(math.ceil(value))}
