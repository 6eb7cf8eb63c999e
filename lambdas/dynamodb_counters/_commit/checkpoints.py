"""Checkpoints: per shard, the record up to which every item of every batch is committed.

One item per shard. An invocation reads it first and drops the records it covers, so a batch that is delivered again
costs at most a read. A checkpoint is *settled* once it has stood for longer than any invocation that has not read it
can run: then a watermark at or below it can refuse nothing any more, and may be pruned.

The time that counts is when the checkpoint's write had landed. So it is stamped with the deadline of the invocation
that wrote it. On a busy shard the checkpoint moves before it settles; its *mark* is an earlier one that stays until it
has.

A shard has one *book*, unless Lambda may have given up on records of it. Such records are counted after records that
came later, and a watermark holds only the last record. So where records may be missing, those that follow are in
another book: the one before keeps the state of its own.

Lambda gives up on records at the age of 23 hours. So none are missing before a record that is delivered within 23 hours
after the one before it was created. A batch that comes later opens a book. It is refused by the watermarks of all books
before, too: an invocation may have counted a part of it, together with records that are missing now. Such an invocation
is over: one that counts records of nearly that age notes until when.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import (
    ALIVE,
    BOOK_NOTED_AFTER,
    BOOK_OPEN_AFTER,
    CHECKPOINT_KEPT,
    FRESH,
    LONGEST_INVOCATION,
    MOST_BOOKS,
    OUTLIVED,
    SETTLED_AFTER,
    SKEW,
)
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.bookkeeping import (
    bookkeeping_key,
    put_as_seen,
    read_fields,
    read_value,
    shard_digest,
    typed_values,
)
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SEQUENCE_DIGITS, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import CheckpointError

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


@dataclass(frozen=True, slots=True)
class Book:
    """Consecutive records of a shard that are in one book, with the names of the books before it."""

    shard: str
    name: str
    before: tuple[str, ...]
    checkpoint: Checkpoint
    changes: Sequence[Change]
    moves: bool = True
    """Whether its checkpoint may move past the records."""


class Books:
    """The books of one table's shards."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints

    def of(
        self, shard: str, changes: Sequence[Change], deadline: float, now: float, *, given_up: bool
    ) -> Iterator[Book]:
        """Cut a batch where another book begins; `given_up` says that it comes from the bucket."""
        before: tuple[str, ...] = ()
        name = shard
        place: dict[str, Any] = {"since": changes[0].sequence}
        while changes:
            begins = _met(changes) | place
            checkpoint = self._checkpoints.of(name, changes[-1].sequence, deadline, begins)
            early, changes = _cut(changes, checkpoint.since)
            if early:
                yield self._early(shard, checkpoint.since, early, deadline, given_up=given_up)
            if changes and not given_up:
                is_last = len(before) + 1 == MOST_BOOKS
                checkpoint = self._continued(name, checkpoint, changes, deadline, now, is_last=is_last)
            own, changes = _cut(changes, checkpoint.successor) if checkpoint.successor else (changes, ())
            if own:
                yield Book(shard, name, before, checkpoint, own)
            before, name = (*before, name), f"{shard}{BOOK}{checkpoint.successor}"
            # The process that opened the book may have died before it began.
            place = {"met": checkpoint.successor, "met_at": checkpoint.successor_at}

    def _early(self, shard: str, since: str, changes: Sequence[Change], deadline: float, *, given_up: bool) -> Book:
        """Records before the first that anybody tried to count. From the stream, they come in a replay."""
        name = shard + BOOK
        checkpoint = self._checkpoints.of(name, changes[-1].sequence, deadline, {"successor": since})
        return Book(shard, name, () if given_up else (shard,), checkpoint, changes, moves=given_up)

    def _continued(
        self, name: str, known: Checkpoint, changes: Sequence[Change], deadline: float, now: float, *, is_last: bool
    ) -> Checkpoint:
        """The checkpoint, once it shows as far as need be whether the records are in its book."""
        first, last = changes[0].sequence, changes[-1].sequence
        while not known.successor and now >= known.met_at + BOOK_NOTED_AFTER and last > known.applied_through:
            told = _met(changes)
            missing = first > known.met and now >= known.met_at + BOOK_OPEN_AFTER
            if missing and not is_last:
                if first <= known.tried and now < known.busy:
                    raise TimeoutError(f"an earlier invocation may still count {first}, for {known.busy - now:.0f} s")
                told = {"successor": first, "successor_at": told["met_at"]}
            else:
                if first <= known.met:
                    told |= {"met": known.met, "met_at": known.met_at}
                told |= {"tried": max(last, known.tried), "busy": max(math.ceil(deadline + SKEW), known.busy)}
                told |= {"blurred": True} if missing else {}
            if all(getattr(known, told_name) == value for told_name, value in told.items()):
                break
            is_told = self._checkpoints.amend(name, known, told)
            known = self._checkpoints.of(name, last, deadline, _met(changes))
            if is_told:
                break
        return known


def _met(changes: Sequence[Change]) -> dict[str, Any]:
    first = changes[0]
    return {"met": first.sequence, "met_at": math.floor(first.created or 0)}


def _cut(changes: Sequence[Change], at: str) -> tuple[Sequence[Change], Sequence[Change]]:
    """The records before a sequence number, and the others."""
    if not changes or not at or changes[0].sequence >= at:
        return (), changes
    early = sum(change.sequence < at for change in changes)
    return changes[:early], changes[early:]
