"""Books: the stretches of a shard whose records share a checkpoint and watermarks.

A shard has one book, unless Lambda may have given up on records of it. Such records are counted after records
that came later, and a watermark holds only the last record. So where records may be missing, those that follow are in
another book: the one before keeps the state of its own.

Lambda gives up on records at the age of 23 hours. So none are missing before a record that is delivered within 23 hours
after the one before it was created. A batch that comes later opens a book. It is refused by the watermarks of all books
before, too: an invocation may have counted a part of it, together with records that are missing now. Such an invocation
is over: one that counts records of nearly that age notes until when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dynamodb_counters._assumptions import BOOK_NOTED_AFTER, BOOK_OPEN_AFTER, MOST_BOOKS, SKEW
from dynamodb_counters._commit.checkpoint_items import BOOK, Checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._fold.records import Change


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
