"""Packed events: their rows are taken out of the chunks.

First the log records that the events are gone: by a retraction, or by their digests in a chunk of its own. From then on
no process writes anything that builds on their rows, since a put takes knowing the whole log. Then the rows go. Their
digests stay, so that the events are still duplicates if they come again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from dynamodb_counters._declarations.sources import EventIdentity
from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._items.bookkeeping import typed_values, update_as_seen
from dynamodb_counters._items.chunks import chunk_bucket, decode_chunk, encode_chunk
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import CHUNK, ERASED, PACK_PREFIX, PK, SK, TTL
from dynamodb_counters._layouts import Layouts, all_parts
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters._writes.chunk_log import GONE, BucketHoleError, ChunkLog, LogKey, erased_digests
from dynamodb_counters._writes.chunk_writes import Entry, write_entries
from dynamodb_counters.errors import CountersError, MalformedImageError


@dataclass(slots=True)
class _Log:
    """The chunks of one part and bucket that hold wanted events."""

    bucket: str
    part: str
    expires_at: int | None
    events: dict[bytes, Image] = field(default_factory=dict)


class PackedEvents:
    def __init__(self, table: Table, wanted: Wanted) -> None:
        self._table, self._wanted = table, wanted
        self._identity = EventIdentity(wanted.event)
        self._prefix = f"{PACK_PREFIX}{wanted.event.name}#"

    def sweep(self, *, keeps_counts: bool, writes: bool) -> int:
        """Take the events out of the chunks; return how many there were."""
        found = 0
        for chunks in self._all_chunks():
            logs: dict[tuple[str, str], _Log] = {}
            for item in chunks:
                self._note(logs, item)
            found += sum(len(log.events) for log in logs.values())
            if writes:
                for log in logs.values():
                    self._tell(log, keeps_counts=keeps_counts)
                    self._take_out(log)
        return found

    def _all_chunks(self) -> Iterator[Iterable[Mapping[str, Any]]]:
        """Part by part, if the values determine their parts, else those of the whole table."""
        packed, texts = self._wanted.event.packed, self._wanted.texts
        if packed is None:
            return
        Layouts.of_table(self._table).require(self._wanted.event)
        if packed.tenant not in (None, *texts):
            yield self._table.of_types(self._wanted.chunk_type)
            return
        values: Image = {name: {"S": text} for name, text in texts.items()}
        for part in all_parts(packed, values):
            yield self._table.partition(self._prefix + part)

    def _note(self, logs: dict[tuple[str, str], _Log], item: Mapping[str, Any]) -> None:
        try:
            rows = decode_chunk(item[CHUNK]).all_rows()
        except MalformedImageError:
            return
        for row in rows:
            if self._wanted.has_values(row.values):
                part, bucket = item[PK]["S"].removeprefix(self._prefix), chunk_bucket(item[SK]["S"])
                expires_at = int(item[TTL]["N"]) if TTL in item else None
                log = logs.setdefault((part, bucket), _Log(bucket, part, expires_at))
                log.events[self._identity.digest(row.values)] = row.values

    def _tell(self, found: _Log, *, keeps_counts: bool) -> None:
        """Record in the log that the events are gone, unless its bucket takes no events any more."""
        event, now = self._wanted.event, self._table.clock()
        assert event.packed is not None
        if found.expires_at is not None and found.expires_at - DAY <= now:
            return
        start = int(datetime.fromisoformat(found.bucket).timestamp())
        log = ChunkLog(self._table, event, LogKey(event.name, found.part, start), found.expires_at)
        try:
            if not keeps_counts:
                entries = [Entry(0, "", digest, values, retracts=True) for digest, values in found.events.items()]
                write_entries(self._table, log, entries, event.packed.chunk_bytes)
                for entry in entries:
                    assert entry.outcome is not None
                    if entry.outcome.status not in ("accepted", "duplicate", "too_late"):
                        raise CountersError(f"some events may not be retracted: {entry.outcome.reason}")
            self._mark(log, found.events)
        except (BucketHoleError, MalformedImageError):
            return  # No process writes to such a log.

    def _mark(self, log: ChunkLog, digests: Iterable[bytes]) -> None:
        """Put a chunk with digests alone, unless the log has already that these events are gone."""
        batch = uuid4().hex[:8]
        log.look(consistent=True)
        while not log.is_known:
            log.look(consistent=True)
        for _ in self._table.tries():
            left = sorted(digest for digest in digests if log.places[digest] != GONE)
            if not left:
                return
            log.put(encode_chunk([], batch), left)
            log.look(consistent=True)
        raise CountersError(f"the log {log.key} changes all the time")

    def _take_out(self, log: _Log) -> None:
        for _ in self._table.tries():
            if all(self._shrink(item, log) for item in self._table.partition(self._prefix + log.part, log.bucket)):
                return
        raise CountersError(f"the chunks of {log.bucket} change all the time")

    def _shrink(self, item: Mapping[str, Any], log: _Log) -> bool:
        """Take the rows out of a chunk; False if it has changed since it was read."""
        try:
            chunk = decode_chunk(item[CHUNK])
        except MalformedImageError:
            return True
        kept, erased = [], dict.fromkeys(erased_digests(item))
        for row in chunk.all_rows():
            if self._wanted.has_values(row.values) and (digest := self._identity.digest(row.values)) in log.events:
                erased[digest] = None
            else:
                kept.append(row)
        if len(kept) == chunk.rows:
            return True
        left = typed_values({CHUNK: encode_chunk(kept, chunk.batch), ERASED: b"".join(erased)})
        key, seen = {PK: item[PK], SK: item[SK]}, {CHUNK: item[CHUNK]}
        return self._table.write("update_item", **update_as_seen(self._table.name, key, left, seen))
