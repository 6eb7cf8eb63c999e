"""The chunk log of one part and bucket: an append-only log that its writers decide from, and put the next chunk of.

Chunks are numbered from 0 without a gap and never change, but for what is erased. A put of the next one that succeeds
proves that the process knew the whole log, and no read is needed before it (ADR 11).
"""

from __future__ import annotations

import base64
import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import KEPT_LONGER
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.sources import DIGEST_BYTES, EventIdentity
from dynamodb_counters._items.chunks import MAX_NUMBER, Row, chunk_key, decode_chunk, encode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import CHUNK, ERASED, PACK_SUFFIX, PK, SK, TTL, TYPE, item_bytes, typed_values
from dynamodb_counters._table import Remembered, Table, time_left
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, failed
from dynamodb_counters.errors import CountersError, MalformedImageError

# Events that a process remembers, some 70 MB; and those that a log takes, so that it can be read and remembered.
MOST_EVENTS: Final = 500_000
GONE: Final = -1  # Instead of a chunk's number: the event was retracted, for good.
# After so many looks in a row that found nothing, puts go without: a look costs a tenth of a write unit, a refused put
# at least ten times as much.
_WARY: Final = 8
_PAGE: Final = 64  # Chunks that are read at a time. A failure in between must not hide whose the first one was.
_EMPTY_LOG: Final = 8  # Events that an empty log takes.
_BATCH_BYTES: Final = 6  # Of a random batch id: it only has to differ from those that try to put the same chunk.
_MAX_EVENT_BYTES: Final = 190 * 1024  # What takes an event back, or keeps it in the quarantine, fits an item too.
_MOST_WRITES: Final = 1024  # More that resemble each other a lot would be more than is to be read at a time.
_ROW_BYTES: Final = 12
_FULL_LOG: Final = f"its part of the bucket has {MOST_EVENTS:,} events, which is the most"


class BucketHoleError(CountersError):
    """A part of the bucket has expired, so its content is unknown."""


@dataclass(frozen=True, slots=True)
class LogKey:
    """The event's name, its part with its tenant, and the second its bucket begins."""

    event: str
    part: str
    start: int

    def chunk(self, number: int) -> tuple[str, str]:
        return chunk_key(self.event, self.part, self.start, number)


def closing_time(event: Event, start: int) -> float:
    """Return when the retention is over of all events of a bucket, in seconds since 1970, so that it takes no more."""
    assert event.packed is not None
    retention = math.inf if event.retention is None else event.retention.total_seconds()
    return start + event.packed._bucket_seconds + retention


class ChunkLog:
    """Knowledge of a process of one log: its first chunks."""

    def __init__(self, table: Table, event: Event, key: LogKey) -> None:
        assert event.packed is not None
        self.key, self.lock, self.chunk_bytes = key, Lock(), event.packed.chunk_bytes
        self.next = 0  # The number after the last chunk known.
        self.is_current = False
        self.chunks: dict[bytes, int] = {}  # Number of each event's chunk, or `GONE`.
        self.wary = 0  # Above 0 if others have written it lately: a look before the next put is worth its price then.
        self.size = 0  # Events that it has of those that the process remembers.
        self._table, self._identity = table, EventIdentity(event)
        self._expires_at = closing_time(event, key.start) + KEPT_LONGER

    def look(self, *, consistent: bool) -> dict[int, str]:
        """Read a page on from the last chunk known; return who wrote which of those found."""
        writers: dict[int, str] = {}
        (pk, first), (_, last) = self.key.chunk(self.next), self.key.chunk(MAX_NUMBER)
        page = self._table.client.query(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
            ExpressionAttributeValues=typed_values({":pk": pk, ":first": first, ":last": last}),
            ConsistentRead=consistent,
            Limit=_PAGE,
        )
        for item in page["Items"]:
            number, expected = self.next, self.key.chunk(self.next)[1]
            if item[SK]["S"] != expected:
                # Only a strongly consistent read shows that a chunk is missing before others.
                if consistent:
                    raise BucketHoleError(f"chunk {expected} has expired, but later ones have not")
                return writers | self.look(consistent=True)
            # Of a chunk that was put, by its columns of the key alone.
            chunk = decode_chunk(item[CHUNK])
            self.chunks |= dict.fromkeys(erased_digests(item), GONE)
            self.append(zip(self._identity.digests(chunk), chunk.signs or "+" * chunk.rows, strict=True))
            writers[number] = chunk.batch
        self.is_current = "LastEvaluatedKey" not in page
        self.wary = _WARY if writers else max(0, self.wary - 1)
        return writers

    def put(self, blob: bytes, erased: Collection[bytes] = ()) -> bool:
        """Put the next chunk; False if there is one of that number."""
        is_free = f"attribute_not_exists({PK})"
        return self._table.write("put_item", Item=self.item(blob, erased), ConditionExpression=is_free)

    def item(self, blob: bytes, erased: Collection[bytes] = ()) -> dict[str, Any]:
        pk, sk = self.key.chunk(self.next)
        item: dict[str, Any] = {PK: {"S": pk}, SK: {"S": sk}, TYPE: {"S": self.key.event + PACK_SUFFIX}}
        if self._expires_at < math.inf:
            item[TTL] = {"N": str(int(self._expires_at))}
        if erased:
            item[ERASED] = {"B": b"".join(erased)}
        return {**item, CHUNK: {"B": blob}}

    def append(self, rows: Iterable[tuple[bytes, str]]) -> None:
        self.chunks |= {digest: self.next if sign == "+" else GONE for digest, sign in rows}
        self.next += 1

    def values(self, digest: bytes) -> Image | None:
        """Return an event's values as the log has them, which a row takes back; None if it was erased meanwhile."""
        pk, sk = self.key.chunk(self.chunks[digest])
        item = next(self._table.partition(pk, sk), None)
        if item is None:
            raise BucketHoleError(f"part of the bucket {sk} has expired")
        chunk = decode_chunk(item[CHUNK])
        digests = self._identity.digests(chunk)
        if digest in digests:
            return chunk.rows_at([digests.index(digest)])[0].values
        # A later chunk says so to all.
        self.chunks[digest] = GONE
        return None


def erased_digests(item: Mapping[str, Any]) -> list[bytes]:
    joined = bytes(item[ERASED]["B"]) if ERASED in item else b""
    return [joined[start : start + DIGEST_BYTES] for start in range(0, len(joined), DIGEST_BYTES)]


class ChunkLogs(Remembered):
    """The logs that a process remembers of one table: those used last, bounded by their number of events."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._lock, self._logs, self._total = Lock(), OrderedDict[LogKey, ChunkLog](), 0

    def get(self, event: Event, key: LogKey) -> ChunkLog:
        with self._lock:
            if key not in self._logs:
                self._logs[key] = ChunkLog(self._table, event, key)
            self._logs.move_to_end(key)
            return self._logs[key]

    def forget(self, key: LogKey) -> None:
        """Drop the logs used longest ago until the rest is small enough, now that one has grown."""
        with self._lock:
            if log := self._logs.get(key):
                before, log.size = log.size, len(log.chunks) + _EMPTY_LOG
                self._total += log.size - before
            while self._total > MOST_EVENTS and len(self._logs) > 1:
                self._total -= self._logs.popitem(last=False)[1].size


@dataclass(slots=True, eq=False)
class Entry:
    """An event to accept or to retract, and what has become of it."""

    pk: str
    digest: bytes
    values: Image
    retracts: bool
    outcome: Outcome | None = None
    row: Row = field(init=False)  # The row that the log lacks, if it lacks one.


def write_entries(table: Table, log: ChunkLog, entries: Sequence[Entry]) -> list[Outcome]:
    """Write what a log lacks of entries; return what has become of each."""
    firsts: dict[bytes, Entry] = {}
    for entry in entries:
        firsts.setdefault(entry.digest, entry)
    with log.lock:
        try:
            rest = Outcome(OutcomeStatus.FAILED, _Writing(log, [*firsts.values()]).run(table))
        except BucketHoleError as error:
            rest = Outcome(OutcomeStatus.TOO_LATE, str(error))
        except MalformedImageError as error:
            rest = Outcome(OutcomeStatus.FAILED, f"{log.key.chunk(log.next)}: {error}")
    outcomes = [(firsts[entry.digest] is entry, firsts[entry.digest].outcome or rest) for entry in entries]
    return [outcome if is_first or outcome != ACCEPTED else DUPLICATE for is_first, outcome in outcomes]


class _Writing:
    def __init__(self, log: ChunkLog, entries: list[Entry]) -> None:
        self._log = log
        self._batch = base64.urlsafe_b64encode(uuid4().bytes[:_BATCH_BYTES]).decode()
        self._guess = max(1, log.chunk_bytes // _ROW_BYTES)
        self._pending, self._is_decided = entries, False
        # How many entries the next chunk takes, and the chunk: the same whenever it is tried again.
        self._next: tuple[int, bytes] | None = None

    def run(self, table: Table) -> str:
        """Write until all is done, or it was tried too often: return why."""
        reason, log = "", self._log
        for number in table.tries():
            try:
                if log.wary and not number:
                    log.look(consistent=False)
                while self._pending:
                    if time_left(table.clock()) <= 0:
                        return "no time was left for its log: the next try goes on from there"
                    if not log.is_current:
                        log.look(consistent=False)
                    elif not self._is_decided:
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
        """Put the next chunk; False if others came first, so that the rest must be decided again."""
        log = self._log
        self._next = count, blob = self._next or self._fitted()
        entries, rest, number = self._pending[:count], self._pending[count:], log.next
        outcome = ACCEPTED
        if entries[0].row.sign == "+" and item_bytes(log.item(blob)) > _MAX_EVENT_BYTES:
            reason = f"expected an event of at most {_MAX_EVENT_BYTES // 1024} KB, compressed"
            outcome = Outcome(OutcomeStatus.REJECTED, reason)
        elif log.put(blob):
            log.append((entry.digest, entry.row.sign) for entry in entries)
        elif log.look(consistent=True).get(number) == self._batch:
            # Its own batch in the log: the put was done, only its answer was lost.
            self._is_decided = False
        else:
            self._is_decided, self._next = False, None
            return False
        for entry in entries:
            # A row that only keeps an event out has taken nothing back.
            entry.outcome = DUPLICATE if entry.row.sign == "0" else outcome
        self._pending, self._next = rest, None
        return True

    def _decide(self) -> None:
        chunks, lacking = self._log.chunks, list[Entry]()
        for entry in self._pending:
            if entry.digest not in chunks and len(chunks) + len(lacking) >= MOST_EVENTS:
                # Whoever meets the log for the first time has to read it, and to remember it.
                entry.outcome = Outcome(OutcomeStatus.REJECTED, _FULL_LOG)
            elif (row := self._row(entry)) is not None:
                entry.row = row
                lacking.append(entry)
            else:
                entry.outcome = DUPLICATE
        self._pending, self._is_decided = lacking, True

    def _row(self, entry: Entry) -> Row | None:
        number = self._log.chunks.get(entry.digest)
        if number is None:
            return Row("0" if entry.retracts else "+", entry.values)
        if number == GONE or not entry.retracts:
            return None
        values = self._log.values(entry.digest)
        return None if values is None else Row("-", values)

    def _fitted(self) -> tuple[int, bytes]:
        """Find how many entries fit the next chunk, by trying fewer and fewer, and the chunk; one always does."""
        count = min(len(self._pending), _MOST_WRITES, self._guess)
        while True:
            # Events of one partition key resemble each other: side by side they take less.
            alike = sorted(self._pending[:count], key=lambda entry: entry.pk)
            blob = encode_chunk([entry.row for entry in alike], self._batch)
            filled = item_bytes(self._log.item(blob)) / self._log.chunk_bytes
            # For the next one, or the next try.
            self._guess = max(1, int(count / filled * 0.99))
            if filled <= 1 or count == 1:
                return count, blob
            count = min(count - 1, self._guess)
