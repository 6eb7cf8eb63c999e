"""Writing a log: decide entries from what is known of it, put the next chunk, and decide again if that is refused."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._items.bookkeeping import item_bytes
from dynamodb_counters._items.chunks import Row, encode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._table import Table, time_left
from dynamodb_counters._writes.chunk_log import GONE, MOST_EVENTS, BucketHoleError, ChunkLog
from dynamodb_counters._writes.insert import failed
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus
from dynamodb_counters.errors import MalformedImageError

_BATCH_BYTES: Final = 6
"""Bytes of a random batch id: it only has to differ from those that try to put the same chunk."""

_MAX_EVENT_BYTES: Final = 190 * 1024
"""Most bytes of an event: what takes it back, or keeps it in the quarantine, fits an item too."""

_MOST_WRITES: Final = 1024
"""Most writes of a chunk: more that resemble each other a lot would be more than is to be read at a time."""

_FULL_LOG: Final = f"its part of the bucket has {MOST_EVENTS:,} events, which is the most"
_ROW_BYTES: Final = 12
_FITTINGS: Final = 4
_FULL: Final = 0.96


@dataclass(slots=True, eq=False)
class Entry:
    """An event to accept or to retract, and what has become of it."""

    index: int
    pk: str
    digest: bytes
    values: Image
    retracts: bool
    expires_at: int | None = None
    outcome: Outcome | None = None
    was_live: bool = False


@dataclass(slots=True, eq=False)
class _Write:
    """A row, the entry it is for, and entries that only repeat it."""

    entry: Entry
    row: Row
    repetitions: list[Entry] = field(default_factory=list)

    @property
    def entries(self) -> list[Entry]:
        return [self.entry, *self.repetitions]

    def is_done(self) -> None:
        for entry in self.repetitions:
            entry.outcome = DUPLICATE
        self.entry.outcome, self.entry.was_live = ACCEPTED, self.row.sign == "-"


def write_entries(table: Table, log: ChunkLog, entries: Sequence[Entry], chunk_bytes: int) -> None:
    """Give each entry its outcome."""
    with log.lock:
        try:
            outcome = Outcome(OutcomeStatus.FAILED, _Writing(log, chunk_bytes, entries).run(table))
        except BucketHoleError as error:
            outcome = Outcome(OutcomeStatus.TOO_LATE, str(error))
        except MalformedImageError as error:
            outcome = Outcome(OutcomeStatus.FAILED, f"{log.key.chunk(log.next)}: {error}")
        for entry in entries:
            entry.outcome = entry.outcome or outcome


class _Writing:
    def __init__(self, log: ChunkLog, chunk_bytes: int, entries: Sequence[Entry]) -> None:
        self._log = log
        self._chunk_bytes = chunk_bytes
        self._batch = base64.urlsafe_b64encode(uuid4().bytes[:_BATCH_BYTES]).decode()
        self._guess = max(1, chunk_bytes // _ROW_BYTES)
        self._undecided = list(entries)
        self._writes: list[_Write] = []
        self._next: tuple[int, bytes] | None = None
        """How many writes the next chunk takes, and the chunk: the same whenever it is tried again."""

    def run(self, table: Table) -> str:
        """Write until all is done, or it was tried too often: return why."""
        reason, has_looked = "", False
        for _ in table.tries():
            try:
                if not has_looked and (self._log.is_shared or not self._log.is_known):
                    self._log.look(consistent=False)
                has_looked = True
                while self._undecided or self._writes:
                    if not self._log.is_known:
                        if time_left(table.clock()) <= 0:
                            return "its log is longer than could be read in time: the next try goes on from there"
                        self._log.look(consistent=False)
                    elif self._undecided:
                        self._decide()
                    elif not self._put_next():
                        reason = "other writers came first"
                        break
                else:
                    return ""
            except (ClientError, BotoCoreError) as error:
                # A put without an answer may have landed, or may yet: trying it again shows which.
                reason = str(failed(error).reason)
        return reason

    def _put_next(self) -> bool:
        """Put the next chunk; False if others came first, so that what is left must be decided again."""
        log = self._log
        if self._next is None:
            self._next = self._fitted()
        (count, blob), number = self._next, log.next
        done = self._writes[:count]
        if done[0].row.sign == "+" and item_bytes(log.item(blob)) > _MAX_EVENT_BYTES:
            allowed = f"{_MAX_EVENT_BYTES // 1024} KB"
            refusal = Outcome(OutcomeStatus.REJECTED, f"expected an event of at most {allowed}, compressed")
            for entry in done[0].entries:
                entry.outcome = refusal
            self._writes, self._next = self._writes[1:], None
            return True
        if log.put(blob):
            log.append((write.entry.digest, write.row.sign) for write in done)
            self._settle(done)
            return True
        # Its own batch in the log: the put was done, only its answer was lost.
        is_mine = log.look(consistent=True).get(number) == self._batch
        if is_mine:
            self._settle(done)
        self._decide_anew()
        return is_mine

    def _settle(self, done: Sequence[_Write]) -> None:
        for write in done:
            write.is_done()
        self._writes = self._writes[len(done) :]
        self._next = None

    def _decide_anew(self) -> None:
        self._undecided = [entry for write in self._writes for entry in write.entries]
        self._writes, self._next = [], None

    def _decide(self) -> None:
        """Find out which entries the log lacks; the others are duplicates."""
        writes: dict[bytes, _Write] = {}
        for entry in self._undecided:
            if entry.digest in writes:
                writes[entry.digest].repetitions.append(entry)
            elif entry.digest not in self._log.places and self._log.is_full(len(writes)):
                # Whoever meets the log for the first time has to read it, and to remember it.
                entry.outcome = Outcome(OutcomeStatus.REJECTED, _FULL_LOG)
            elif (row := self._row(entry)) is not None:
                writes[entry.digest] = _Write(entry, row)
            else:
                entry.outcome = DUPLICATE
        self._writes, self._undecided = [*writes.values()], []

    def _row(self, entry: Entry) -> Row | None:
        """Return the row that the log lacks, if it lacks one."""
        place = self._log.places.get(entry.digest)
        if place is None:
            return Row("0" if entry.retracts else "+", entry.values)
        if place == GONE or not entry.retracts:
            return None
        values = self._log.values(entry.digest)
        return None if values is None else Row("-", values)

    def _fitted(self) -> tuple[int, bytes]:
        """How many writes fit the next chunk, found by trying, and the chunk; one always does."""
        low, high, best = 1, min(len(self._writes), _MOST_WRITES), None
        count = min(high, self._guess)
        for tried in range(1, high + _FITTINGS):
            # Events of one partition key resemble each other: side by side they take less.
            alike = sorted(self._writes[:count], key=lambda write: write.entry.pk)
            blob = encode_chunk([write.row for write in alike], self._batch)
            size = item_bytes(self._log.item(blob))
            if size <= self._chunk_bytes or count == 1:
                best, low = (count, blob), count + 1
                if size >= _FULL * self._chunk_bytes:
                    break
            else:
                high = count - 1
            if low > high or (best is not None and tried >= _FITTINGS):
                break
            count = min(max(int(count * self._chunk_bytes / size * 0.99), low), high)
        assert best is not None
        self._guess = best[0]
        return best
