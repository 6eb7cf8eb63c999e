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
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import ALIVE, FRESH, LONGEST_INVOCATION, OUTLIVED, SETTLED_AFTER, SKEW
from dynamodb_counters._commit.checkpoint_items import (
    LAST_SEQUENCE,
    PLACES,
    WITNESS,
    Checkpoint,
    attributes,
    checkpoint_item,
    checkpoint_key,
    progress_text,
    witness_item,
)
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK
from dynamodb_counters._items.watermarks import shard_digest
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR
from dynamodb_counters.errors import CheckpointError

WORTH_A_WRITE: Final = 100
"""Items touched since the checkpoint moved."""

_READ_AGAIN: Final = HOUR
_KEYS_PER_CALL: Final = 100
_FORWARD: Final = (
    f"attribute_exists({PK}) AND (attribute_not_exists(applied_through) OR applied_through < :applied_through)"
    # Records that were met, but are not committed, stay noted.
    " AND (attribute_not_exists(met) OR met <= :applied_through)"
)
_STILL_OPEN: Final = "attribute_not_exists(successor) AND "


class Checkpoints:
    """The checkpoints of one table, as one process knows them."""

    def __init__(self, table: Table, retrying: Table) -> None:
        self._table = retrying
        self._once = table
        """For requests that may as well be done later."""
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._settled: dict[str, tuple[str, float]] = {}

    def of(self, shard: str, last: str, deadline: float, begins: Mapping[str, Any] | None = None) -> Checkpoint:
        """The checkpoint of a shard whose batch ends with `last`; a new one holds what it `begins` with, too."""
        before, read_at = self._read.get(shard, (None, 0.0))
        now = self._now()
        if before is not None and (before.applied_through >= last or read_at + FRESH > now):
            return before
        # The item exists before anything else is written.
        item = self._item(shard)
        found = self._read_item(shard, item) or self._create(shard, deadline, item, begins or {})
        if found.seen + ALIVE < now:
            awake: dict[str, Any] = {"seen": deadline}
            if _may_be_outlived(found, now + ALIVE):
                # Watermarks may have been pruned that its checkpoint does not cover; of no record that came once it
                # was silent, for whoever had counted that would have said so.
                awake["lost_before"] = min(now, found.seen + ALIVE + SKEW)
            self._write(self._table, shard, awake, f"attribute_exists({PK})")
            found = replace(found, **awake)
        found = found.with_progress(before.progress if before is not None else ())
        self._read[shard] = replace(found, just_lost=False), now
        return found

    def amend(self, shard: str, seen: Checkpoint, values: Mapping[str, Any]) -> bool:
        """Note more of where a book ends; False if another process has noted something since."""
        self._read.pop(shard, None)
        condition, compared = f"{_STILL_OPEN}attribute_not_exists(met)", {}
        if seen.met:
            condition, compared = f"{_STILL_OPEN}met = :known", {"known": {"S": seen.met}}
        with suppress(self._table.client.exceptions.ConditionalCheckFailedException):
            self._write(self._table, shard, values, condition, **compared)
            if "successor" in values:
                item = witness_item(shard, replace(seen, **values), moved=bool(seen.applied_through), now=self._now())
                self._table.client.put_item(TableName=self._table.name, Item=item)
            return True
        return False

    def committed(self, shard: str, last: str, created: float, touched: int, deadline: float) -> float:
        """Note that a batch is committed; move the checkpoint if that is worth a write, and return its units."""
        self._touched[shard] += touched
        return self.advance(shard, last, created, deadline) if self._touched[shard] >= WORTH_A_WRITE else 0.0

    def advance(self, shard: str, last: str, created: float, deadline: float) -> float:
        """Move the checkpoint forward to `last`, which was `created` at a time, 0 if that is not known."""
        found, read_at = self._read.get(shard) or (self._read_item(shard, self._item(shard)), self._now())
        if found is None or last <= found.applied_through:
            return 0.0
        moved: dict[str, Any] = {"applied_through": last, "at": deadline, "seen": deadline}
        if created:
            moved |= {"met": last, "met_at": math.floor(created)}
        settled = found.settled_through(self._now())
        if not found.mark or settled != found.settled:
            # The mark is replaced only once it, or what came after it, has settled.
            moved |= {"mark": last, "mark_at": deadline, "settled": settled}
        units = 1.0
        try:
            if not found.applied_through:
                units += 1.0
                # Nothing has been pruned so far. From now on, a checkpoint that is missing was lost.
                item = witness_item(shard, found, moved=True, now=self._now())
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
        """Note how far a batch came that fails, so that its next delivery comes farther."""
        known, _ = self._read.get(shard, (None, 0.0))
        found = (known or Checkpoint()).with_progress([(through, place)])
        if known is not None:
            self._read[shard] = found, -math.inf
        # For another process, in what is left of this one's time.
        values = {"progress": progress_text(found.progress)}
        for _ in self._once.tries():
            with suppress(ClientError, BotoCoreError):
                self._write(self._once, shard, values, f"attribute_exists({PK})")
                return

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

    def _create(self, shard: str, deadline: float, spoiled: Mapping[str, Any], begins: Mapping[str, Any]) -> Checkpoint:
        moved, known = self._witness(shard, begins)
        created = {"seen": deadline, **{name: value for name, value in known.items() if value != ""}}
        if moved:
            # Records created later had not settled: its watermarks are in place.
            created["lost_before"] = self._now() - LONGEST_INVOCATION
        if not self._put(checkpoint_item(shard, created, self._now()), spoiled):
            item = self._item(shard)
            return self._read_item(shard, item) or self._create(shard, deadline, item, begins)
        return Checkpoint(**created, just_lost=moved)

    def _witness(self, shard: str, begins: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        """Return the facts that outlive the checkpoint: whether it has ever moved, and where its book lies."""
        item = self._item(shard, WITNESS)
        if not item:
            if self._put(witness_item(shard, Checkpoint(**begins), moved=False, now=self._now())):
                return False, dict(begins)
            return self._witness(shard, begins)
        try:
            known = Checkpoint.of(item)
            # Attempts were noted in the lost checkpoint alone.
            told = {name: getattr(known, name) for name in PLACES} if known.met else {}
            lost = {"tried": LAST_SEQUENCE, "busy": self._now() + SETTLED_AFTER}
            return bool(item["moved"]["BOOL"]), {**begins, "since": "", **told, **lost}
        except (LookupError, ValueError):  # It is spoiled.
            return True, {**begins, "since": ""}

    def _put(self, item: dict[str, Any], spoiled: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Put an item that is not there, or is as it was when found to be spoiled; return whether it was."""
        return self._table.write("put_item", **put_as_seen(self._table.name, item, spoiled, spoiled))

    def _write(self, table: Table, shard: str, values: Mapping[str, Any], condition: str, **compared: Any) -> None:
        written = attributes(values, table.clock())
        table.client.update_item(
            TableName=table.name,
            Key=checkpoint_key(shard_digest(shard)),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in written),
            # A checkpoint that is lost is created again, never by chance.
            ConditionExpression=condition,
            ExpressionAttributeNames={f"#{name}": name for name in written},
            ExpressionAttributeValues={f":{name}": value for name, value in {**written, **compared}.items()},
        )


def _readable(item: Mapping[str, Any]) -> Checkpoint | None:
    try:
        # Either name of two shards with the same digest is right.
        is_named = shard_digest(item["shard"]["S"]) == item[PK]["S"].removeprefix(CHECKPOINT_PREFIX)
        return Checkpoint.of(item) if is_named else None
    except (LookupError, ValueError):
        return None


def _may_be_outlived(checkpoint: Checkpoint, now: float) -> bool:
    """Whether its watermarks may be pruned though it does not cover them; those of a closed book wait for a redrive."""
    return checkpoint.seen + OUTLIVED < now and not checkpoint.successor
