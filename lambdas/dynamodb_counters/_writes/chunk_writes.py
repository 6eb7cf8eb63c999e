"""Writing a log: decide entries from what is known of it, put the next chunk, and decide again if that is refused."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.bookkeeping import MAX_ITEM_BYTES, item_bytes
from dynamodb_counters._items.chunks import Row, encode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._table import Table, time_left
from dynamodb_counters._writes.chunk_log import GONE, MOST_EVENTS, BucketHoleError, ChunkLog, EventErasedError
from dynamodb_counters._writes.conflicts import is_newer, repetition
from dynamodb_counters._writes.insert import failed
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus
from dynamodb_counters.errors import MalformedImageError

_BATCH_BYTES: Final = 6
"""Bytes of a random batch id: it only has to differ from those that try to put the same chunk."""

_MAX_EVENT_BYTES: Final = 190 * 1024
"""Most bytes of an event: a newer version can take back the one before in the same chunk."""

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
    """Rows that stand or fall together, the entry they are for, and entries that only repeat it."""

    entry: Entry
    rows: list[Row]
    repetitions: list[Entry] = field(default_factory=list)

    @property
    def entries(self) -> list[Entry]:
        return [self.entry, *self.repetitions]

    def is_done(self, event: Event) -> None:
        last = self.rows[-1]
        for entry in self.repetitions:
            is_accepted_again = not entry.retracts and last.sign == "+"
            entry.outcome = repetition(event, entry.values, last.values) if is_accepted_again else DUPLICATE
        self.entry.outcome, self.entry.was_live = ACCEPTED, self.rows[0].sign == "-"


def write_entries(
    table: Table, log: ChunkLog, entries: Sequence[Entry], chunk_bytes: int, *, compares: bool = False
) -> None:
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
    if compares:
        compare_with_log(log, entries)


def compare_with_log(log: ChunkLog, entries: Sequence[Entry]) -> None:
    """Separate conflicts from duplicates: reads each chunk that holds one of them."""
    by_chunk: dict[int, list[Entry]] = {}
    for entry in entries:
        number = log.places.get(entry.digest, GONE)
        if entry.outcome == DUPLICATE and number != GONE:
            by_chunk.setdefault(number, []).append(entry)
    for number, repeated in by_chunk.items():
        try:
            held = log.held(number)
        except (BucketHoleError, MalformedImageError):
            continue  # It is unknown by now.
        except (ClientError, BotoCoreError) as error:
            for entry in repeated:
                entry.outcome = failed(error)
            continue
        for entry in repeated:
            entry.outcome = repetition(log.event, entry.values, held.get(entry.digest, entry.values))


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
        most = _MAX_EVENT_BYTES if [row.sign for row in done[0].rows] == ["+"] else MAX_ITEM_BYTES
        if item_bytes(log.item(blob)) > most:
            allowed = f"{_MAX_EVENT_BYTES // 1024} KB"
            refusal = Outcome(OutcomeStatus.REJECTED, f"expected an event of at most {allowed}, compressed")
            for entry in done[0].entries:
                entry.outcome = refusal
            # Later writes may build on it.
            self._writes.remove(done[0])
            self._decide_anew()
            return True
        if log.put(blob):
            log.append([(write.entry.digest, row) for write in done for row in write.rows])
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
            write.is_done(self._log.event)
        self._writes = self._writes[len(done) :]
        self._next = None

    def _decide_anew(self) -> None:
        self._undecided = [entry for write in self._writes for entry in write.entries]
        self._writes, self._next = [], None

    def _decide(self) -> None:
        """Find out which entries the log lacks; the others are duplicates."""
        writes: list[_Write] = []
        staged: dict[bytes, _Write] = {}
        for entry in self._undecided:
            before = staged.get(entry.digest)
            if before is None and entry.digest not in self._log.places and self._log.is_full(len(writes)):
                # Whoever meets the log for the first time has to read it, and to remember it.
                entry.outcome = Outcome(OutcomeStatus.REJECTED, _FULL_LOG)
                continue
            try:
                rows = self._rows(entry, before)
            except EventErasedError:
                rows = []
            if rows:
                staged[entry.digest] = write = _Write(entry, rows)
                writes.append(write)
            elif before is not None:
                before.repetitions.append(entry)
            else:
                entry.outcome = DUPLICATE
        self._writes, self._undecided = writes, []

    def _rows(self, entry: Entry, before: _Write | None) -> list[Row]:
        """Rows to write for an entry, the first of which takes back what is there; without rows it is a repetition."""
        log, digest = self._log, entry.digest
        place = log.places.get(digest)
        if before is None and place is None:
            return [Row("0" if entry.retracts else "+", entry.values)]
        is_live = before.rows[-1].sign == "+" if before is not None else place != GONE
        if not is_live:
            return []

        def held() -> Image:
            return before.rows[-1].values if before is not None else log.values(digest)

        if entry.retracts:
            return [Row("-", held())]
        version = log.event.version
        if version is None:
            return []
        # An event that was accepted before versions were declared has none, and stands.
        known = before.rows[-1].values.get(version) if before is not None else log.versions.get(digest)
        if known is None or not is_newer(entry.values[version], known):
            return []
        return [Row("-", held()), Row("+", entry.values)]

    def _fitted(self) -> tuple[int, bytes]:
        """How many writes fit the next chunk, found by trying, and the chunk; one always does."""
        low, high, best = 1, min(len(self._writes), _MOST_WRITES), None
        count = min(high, self._guess)
        for tried in range(1, high + _FITTINGS):
            # Events of one partition key resemble each other: side by side they take less.
            alike = sorted(self._writes[:count], key=lambda write: write.entry.pk)
            rows = [row for write in alike for row in write.rows]
            blob = encode_chunk(rows, self._batch)
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
