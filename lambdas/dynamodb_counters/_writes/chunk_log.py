"""The chunk log of one part and bucket: an append-only log that its writers decide from.

Chunks are numbered from 0 without a gap and never change, but for what is erased. A process remembers which events it
has seen in them. It puts the next chunk on condition that there is none of that number; so a put that succeeds proves
that the process knew the whole log, and no read is needed before it (ADR 11). An outcome without a put, "it is a
duplicate", is true of every log that begins like the known one: an event that is in the log stays in it, at least as a
digest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.sources import DIGEST_BYTES, EventIdentity
from dynamodb_counters._items.bookkeeping import typed_values
from dynamodb_counters._items.chunks import MAX_NUMBER, Chunk, chunk_key, decode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import CHUNK, ERASED, PACK_SUFFIX, PK, SK, TTL, TYPE
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import CountersError

MOST_EVENTS: Final = 500_000
"""Events that a process remembers, some 70 MB; and those that a log takes, so that it can be read and remembered."""

GONE: Final = -1
"""Instead of a chunk's number: the event was retracted, for good."""

_WARY: Final = 8
"""After so many looks in a row that found nothing, puts go without: a look costs a tenth of a write unit, a refused put
at least ten times as much."""

_PAGE: Final = 64
"""Chunks that are read at a time. A failure in between must not hide whose the first one was."""

_EMPTY_LOG: Final = 8
"""Events that an empty log takes."""


class BucketHoleError(CountersError):
    """A part of the bucket has expired, so its content is unknown."""


@dataclass(frozen=True, slots=True)
class LogKey:
    """Which log: the event's name, its part with its tenant, and the second its bucket begins."""

    event: str
    part: str
    start: int

    def chunk(self, number: int) -> tuple[str, str]:
        return chunk_key(self.event, self.part, self.start, number)


class ChunkLog:
    """Knowledge of a process of one log: its first chunks."""

    def __init__(self, table: Table, event: Event, key: LogKey, expires_at: int | None) -> None:
        self.lock = Lock()
        self.key = key
        self.next = 0
        """The number after the last chunk known."""
        self.is_known = False
        self.places: dict[bytes, int] = {}
        """Number of each event's chunk, or `GONE`."""
        self._wary = 0
        self._table = table
        self._identity = EventIdentity(event)
        self._expires_at = expires_at

    @property
    def is_shared(self) -> bool:
        """Whether others have written it lately, so that a look before the next put is worth its price."""
        return self._wary > 0

    def is_full(self, more: int) -> bool:
        """Whether the log takes no other event once it has some more."""
        return len(self.places) + more >= MOST_EVENTS

    def look(self, *, consistent: bool) -> dict[int, str]:
        """Read a page on from the last chunk known; return who wrote which of those found."""
        found: dict[int, str] = {}
        page = self._query(self.key.chunk(self.next), self.key.chunk(MAX_NUMBER)[1], consistent=consistent)
        for item in page["Items"]:
            place, expected = self.next, self.key.chunk(self.next)[1]
            if item[SK]["S"] != expected:
                # Only a strongly consistent read shows that a chunk is missing before others.
                if consistent:
                    raise BucketHoleError(f"chunk {expected} has expired, but later ones have not")
                return found | self.look(consistent=True)
            chunk = self._learn(item)
            found[place] = chunk.batch
        self.is_known = "LastEvaluatedKey" not in page
        self._wary = _WARY if found else max(0, self._wary - 1)
        return found

    def put(self, blob: bytes, erased: Collection[bytes] = ()) -> bool:
        """Put the next chunk; False if there is one of that number."""
        item, is_free = self.item(blob, erased), f"attribute_not_exists({PK})"
        return self._table.write("put_item", Item=item, ConditionExpression=is_free)

    def item(self, blob: bytes, erased: Collection[bytes] = ()) -> dict[str, Any]:
        pk, sk = self.key.chunk(self.next)
        item: dict[str, Any] = {PK: {"S": pk}, SK: {"S": sk}, TYPE: {"S": self.key.event + PACK_SUFFIX}}
        if self._expires_at is not None:
            item[TTL] = {"N": str(self._expires_at)}
        if erased:
            item[ERASED] = {"B": b"".join(erased)}
        return {**item, CHUNK: {"B": blob}}

    def append(self, rows: Iterable[tuple[bytes, str]]) -> None:
        """Note the next chunk: the digest and the sign of each row."""
        self.places |= {digest: self.next if sign == "+" else GONE for digest, sign in rows}
        self.next += 1

    def _learn(self, item: Mapping[str, Any]) -> Chunk:
        """Note a chunk that was put, by its columns of the key alone."""
        chunk = decode_chunk(item[CHUNK])
        self.places |= dict.fromkeys(erased_digests(item), GONE)
        self.append(zip(self._identity.digests(chunk), chunk.signs or "+" * chunk.rows, strict=True))
        return chunk

    def values(self, digest: bytes) -> Image | None:
        """The values of an event as the log has them, which a row takes back; None if it was erased meanwhile."""
        key = self.key.chunk(self.places[digest])
        items = self._query(key, key[1], consistent=True)["Items"]
        if not items:
            raise BucketHoleError(f"part of the bucket {key[1]} has expired")
        chunk = decode_chunk(items[0][CHUNK])
        digests = self._identity.digests(chunk)
        if digest in digests:
            return chunk.rows_at([digests.index(digest)])[0].values
        # A later chunk says so to all.
        self.places[digest] = GONE
        return None

    def _query(self, first: tuple[str, str], last: str, *, consistent: bool) -> Any:
        return self._table.client.query(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
            ExpressionAttributeValues=typed_values({":pk": first[0], ":first": first[1], ":last": last}),
            ConsistentRead=consistent,
            Limit=_PAGE,
        )


def erased_digests(item: Mapping[str, Any]) -> list[bytes]:
    joined = bytes(item[ERASED]["B"]) if ERASED in item else b""
    return [joined[place : place + DIGEST_BYTES] for place in range(0, len(joined), DIGEST_BYTES)]


class ChunkLogs(Remembered):
    """The logs that a process remembers of one table: those used last, bounded by their number of events."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._lock = Lock()
        self._logs = OrderedDict[LogKey, ChunkLog]()
        self._used = set[LogKey]()
        self._sizes: dict[LogKey, int] = {}
        self._total = 0

    def get(self, event: Event, key: LogKey, expires_at: int | None) -> ChunkLog:
        with self._lock:
            log = self._logs.pop(key, None) or ChunkLog(self._table, event, key, expires_at)
            self._logs[key] = log
            self._used.add(key)
            return log

    def forget(self) -> None:
        """Drop the logs used longest ago until the rest is small enough, now that those used have grown."""
        with self._lock:
            for key in self._used & self._logs.keys():
                size = len(self._logs[key].places) + _EMPTY_LOG
                self._total += size - self._sizes.get(key, 0)
                self._sizes[key] = size
            self._used.clear()
            while self._total > MOST_EVENTS and len(self._logs) > 1:
                oldest, _ = self._logs.popitem(last=False)
                self._total -= self._sizes.pop(oldest, 0)
