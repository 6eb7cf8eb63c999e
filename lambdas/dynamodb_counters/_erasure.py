"""Erase: the events of a declaration with certain key fields, from every place where copies of them lie.

Packed events: first the log records that the events are gone, by a retraction, or by their digests in a chunk of its
own. From then on no process writes anything that builds on their rows, since a put takes knowing the whole log. Then
the rows go. Their digests stay, so that the events are still duplicates if they come again.

Entries of the quarantine: one that waits to be counted stays until it is redriven or discarded. Of any other, the
content goes. The entry stays until it would have gone anyway, for it distinguishes a record that is delivered again
from a new one, so that what was decided of it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, get_args
from uuid import uuid4

from dynamodb_counters import _quarantine as quarantine
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.sources import EventIdentity
from dynamodb_counters._fold.records import NEW, OLD, Record
from dynamodb_counters._items import schema
from dynamodb_counters._items.chunks import chunk_bucket, decode_chunk, encode_chunk
from dynamodb_counters._items.conditions import Image, text_reader
from dynamodb_counters._items.conversions import base64_text, key_text
from dynamodb_counters._items.schema import CHUNK, ERASED, PK, SK, TYPE, key_of, update_as_seen
from dynamodb_counters._quarantine import PROVISIONAL, REASON, RECORD, STATE, WAITING
from dynamodb_counters._registry import Layouts, all_parts, note_surplus, read_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters._writes.chunk_writes import LogKey, closing_time
from dynamodb_counters.errors import CountersError, InvalidArgumentError, MalformedImageError, UnavailableError

_AT_A_TIME: Final = 256


class Selection:
    """The events of a declaration with certain values in fields of their key."""

    def __init__(self, event: object, values: object) -> None:
        if not isinstance(event, Event):
            raise InvalidArgumentError("event", event, "an Event")
        if not isinstance(values, Mapping) or not values or not values.keys() <= set(event.fields):
            allowed = f"a value for one or more fields of the key: {', '.join(event.fields)}"
            raise InvalidArgumentError("values", values, allowed)
        self.event = event
        self.texts = {name: key_text(name, value) for name, value in event._canonical(values).items()}
        self.chunk_type = event.name + schema.PACK_SUFFIX
        self.identity = EventIdentity(event)
        self._types = {event.name, event.name + schema.ONCE_SUFFIX}
        self._readers = [(text_reader(name, literal=True), text) for name, text in self.texts.items()]

    def is_event(self, image: Image) -> bool:
        return image.get(TYPE, {}).get("S") in self._types and self.has_values(image)

    def has_values(self, image: Image) -> bool:
        try:
            return all(read(image) == text for read, text in self._readers)
        except MalformedImageError:
            return False

    def rows_of(self, item: Image) -> dict[bytes, Image]:
        """Return the values of the events in a chunk, by their digests; none of one that cannot be read."""
        try:
            rows = decode_chunk(item[CHUNK]).all_rows()
        except MalformedImageError:
            return {}
        return {self.identity.digest(row.values): row.values for row in rows if self.has_values(row.values)}

    def is_key(self, pk: str, sk: str) -> bool:
        """Return whether a key alone shows that its item is one of the events."""
        if self.texts.keys() >= set(self.event.fields):  # It may be hashed.
            return (pk, sk) == (self.event._pk_template.render(self.texts), self.event._sk_template.render(self.texts))
        try:
            texts = self.event._pk_template.parse(pk) | self.event._sk_template.parse(sk)
        except MalformedImageError:
            return False
        return texts.items() >= self.texts.items()

    def is_quoted_in(self, text: str) -> bool:
        """Return whether a text that cannot be read otherwise names one of the values."""
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for value in self.texts.values())


def without(record: Record, selection: Selection) -> tuple[int, Record | None]:
    """Return how many of the events a record holds, and the record without them; None if nothing remains."""
    change = record["dynamodb"]
    images = {name: change[name] for name in (NEW, OLD) if isinstance(change.get(name), Mapping)}
    if not images:
        # Huge images are not kept, keys are.
        keys = change.get("Keys", {})
        is_selected = PK in keys and SK in keys and selection.is_key(keys[PK]["S"], keys[SK]["S"])
        return (1, None) if is_selected else (0, record)
    parts = {name: _image_without(image, selection) for name, image in images.items()}
    remaining = {name: image for name, (_, image) in parts.items() if image is not None}
    rest = {name: value for name, value in change.items() if name not in images}
    number = max(number for number, _ in parts.values())
    return number, {**record, "dynamodb": {**rest, **remaining}} if remaining else None


def _image_without(image: Image, selection: Selection) -> tuple[int, Image | None]:
    if selection.is_event(image):
        return 1, None
    kind = image.get(TYPE, {}).get("S")
    if kind == selection.chunk_type and CHUNK in image:
        chunk = decode_chunk(image[CHUNK])
        rows = chunk.all_rows()
        remaining = [row for row in rows if not selection.has_values(row.values)]
        new = {**image, CHUNK: {"B": base64_text(encode_chunk(remaining, chunk.batch))}}
        return len(rows) - len(remaining), new if remaining or not rows else None
    if kind == schema.QUARANTINE and RECORD in image:
        # An entry that could not be read when it was redriven is kept in an entry of its own.
        number, record = without(quarantine.unpack(image[RECORD]), selection)
        return number, None if record is None else {**image, RECORD: quarantine.pack(record)}
    return 0, image


CountsOfErased: TypeAlias = Literal["keep", "take_back"]


@dataclass(frozen=True, slots=True)
class Erased:
    """How many copies of the events were found, by place; of those erased, nothing is left there, but for `left`.

    Parameters
    ----------
    events, packed, quarantined : int
        Items of their own; in chunks; in entries of the quarantine.
    left : int
        Of these, copies that stay, because they wait to be counted, or may once a backfill is over that has met them.
        Redrive or discard them, then run it again.
    """

    events: int = 0
    packed: int = 0
    quarantined: int = 0
    left: int = 0


class Eraser:
    def __init__(self, table: Table, event: object, values: object) -> None:
        self._table, self._selection = table, Selection(event, values)

    def find(self) -> Erased:
        return self._sweep(None)

    def erase(self, counts: CountsOfErased) -> Erased:
        """Erase; a run that ended halfway is completed by the next."""
        require_choice("counts", counts, get_args(CountsOfErased))
        # What is deleted may be subtracted, while the copy that waits has not been added.
        if waiting := self._sweep_entries(writes=False)[1]:
            cure = "redrive or discard them, or await the backfill that has met them"
            raise UnavailableError(f"{waiting} copies wait in quarantine to be counted: {cure}")
        return self._sweep(counts)

    def _sweep(self, counts: CountsOfErased | None) -> Erased:
        # The quarantine last, where it may end.
        events, packed = self._sweep_items(counts), self._sweep_chunks(counts)
        return Erased(events, packed, *self._sweep_entries(writes=counts is not None))

    def _sweep_items(self, counts: CountsOfErased | None) -> int:
        """Delete items, as expired ones if their counts are kept; return how many there were."""
        event, texts = self._selection.event, self._selection.texts
        if texts.keys() >= set(event._pk_template.fields):
            items = self._table.partition(event._pk_template.render(texts))
        else:
            items = self._table.of_types(event.name, event.name + schema.ONCE_SUFFIX)
        number, events = 0, filter(self._selection.is_event, items)
        while batch := list(islice(events, _AT_A_TIME)):
            if counts == "keep":
                self._note()
            number += len(batch)
            if counts is not None:
                self._table.each(self._expire if counts == "keep" else self._delete, batch)
        return number

    def _note(self) -> None:
        """Note, before anything goes, which names go on counting it: a copy of the table need not have met that."""
        registry, source = read_registry(self._table), self._selection.event.name
        declarations = (entry for entry in registry.counting if entry.source.name == source)
        note_surplus(self._table, registry, [entry.name for entry in declarations if entry.on_expiry == "keep"])

    def _delete(self, item: Image) -> None:
        self._table.client.delete_item(TableName=self._table.name, Key=key_of(item))

    def _expire(self, item: Image) -> None:
        """Mark an event and let its time run out, then delete it: its counts stay."""
        # No clock is wrong by a day, so its deletion is an expiry to all.
        over = {"N": str(int(self._table.clock() - DAY))}
        request: Any = {
            "Key": key_of(item),
            "ExpressionAttributeNames": {"#ttl": schema.TTL, "#erased": ERASED},
            "ExpressionAttributeValues": {":over": over, ":erased": {"BOOL": True}},
        }
        marks = {"UpdateExpression": "SET #ttl = :over, #erased = :erased"}
        for _ in self._table.tries():
            if not self._table.write("update_item", **request, **marks, ConditionExpression=f"attribute_exists({PK})"):
                return
            # A newer version may come in between, whose own time runs out likewise.
            if self._table.write("delete_item", **request, ConditionExpression="#ttl = :over AND #erased = :erased"):
                return
        raise CountersError("an event that is to be erased changes all the time")

    def _sweep_chunks(self, counts: CountsOfErased | None) -> int:
        """Take packed events out of their chunks; return how many there were."""
        number, name = 0, self._selection.event.name
        for chunks in self._all_chunks():
            logs: dict[LogKey, dict[bytes, Image]] = {}
            for item in chunks:
                for digest, values in self._selection.rows_of(item).items():
                    start = int(datetime.fromisoformat(chunk_bucket(item[SK]["S"])).timestamp())
                    key = LogKey(name, item[PK]["S"].removeprefix(f"{schema.PACK_PREFIX}{name}#"), start)
                    logs.setdefault(key, {})[digest] = values
            number += sum(map(len, logs.values()))
            if logs and counts is not None:
                # Rows that are taken back leave their chunk, too.
                self._note()
                for key, events in logs.items():
                    self._record(key, events, counts)
                    self._take_out(key, events)
        return number

    def _all_chunks(self) -> Iterator[Iterable[Image]]:
        """Yield chunks part by part if the values determine their parts, else those of the whole table."""
        event, texts = self._selection.event, self._selection.texts
        if event.packed is None:
            return
        Layouts.of_table(self._table).require(event)
        if event.packed.tenant not in (None, *texts):
            yield self._table.of_types(self._selection.chunk_type)
            return
        for part in all_parts(event.packed, {name: {"S": text} for name, text in texts.items()}):
            yield self._table.partition(f"{schema.PACK_PREFIX}{event.name}#{part}")

    def _record(self, key: LogKey, events: Mapping[bytes, Image], counts: CountsOfErased) -> None:
        """Record in the log that events are gone, unless its bucket takes no events any more."""
        if closing_time(self._selection.event, key.start) <= self._table.clock():
            return
        log = chunk_writes.ChunkLog(self._table, self._selection.event, key)
        if counts == "take_back":
            entries = [chunk_writes.Entry("", digest, values, retracts=True) for digest, values in events.items()]
            for outcome in chunk_writes.write_entries(self._table, log, entries):
                if outcome.status not in ("accepted", "duplicate", "too_late"):
                    raise CountersError(f"some events may not be retracted: {outcome.reason}")
            return
        batch = uuid4().hex[:8]
        try:
            for _ in self._table.tries():
                log.is_current = False
                while not log.is_current:
                    log.look(consistent=True)
                digests = sorted(digest for digest in events if log.chunks[digest] != chunk_writes.GONE)
                if not digests or log.put(encode_chunk([], batch), digests):
                    return
        except (chunk_writes.BucketHoleError, MalformedImageError):
            return  # No process writes to such a log.
        raise CountersError(f"the log {key} changes all the time")

    def _take_out(self, key: LogKey, events: Mapping[bytes, Image]) -> None:
        pk, first = key.chunk(0)
        for _ in self._table.tries():
            if all(self._shrink(item, events) for item in self._table.partition(pk, chunk_bucket(first))):
                return
        raise CountersError(f"the chunks of {key} change all the time")

    def _shrink(self, item: Image, events: Mapping[bytes, Image]) -> bool:
        """Take the rows out of a chunk; False if it has changed since it was read."""
        gone = self._selection.rows_of(item).keys() & events.keys()
        if not gone:
            return True
        chunk = decode_chunk(item[CHUNK])
        rows = zip(chunk.all_rows(), self._selection.identity.digests(chunk), strict=True)
        blob = encode_chunk([row for row, digest in rows if digest not in gone], chunk.batch)
        erased = b"".join(sorted({*chunk_writes.erased_digests(item), *gone}))
        update = {CHUNK: {"B": blob}, ERASED: {"B": erased}}
        request = update_as_seen(self._table.name, key_of(item), update, {CHUNK: item[CHUNK]})
        return self._table.write("update_item", **request)

    def _sweep_entries(self, *, writes: bool) -> tuple[int, int]:
        """Take out the events; return how many there were, and how many of them stay."""
        events = staying = 0
        for item in (item for item in quarantine.stored_entries(self._table) if RECORD in item):
            try:
                number, rest = without(quarantine.unpack(item[RECORD]), self._selection)
            except quarantine.UNREADABLE:
                # A spoiled entry can never be counted.
                number, rest = int(self._selection.is_quoted_in(str(item[RECORD].get("S", "")))), None
            if not number:
                continue
            state = quarantine.state_of(item)
            # One that a backfill has met waits, perhaps, when that ends.
            stays = state == WAITING or (state == PROVISIONAL and bool(read_registry(self._table).runs))
            events, staying = events + number, staying + number * stays
            if writes and not stays:
                self._reduce(item, rest)
        return events, staying

    def _reduce(self, item: Image, rest: Record | None) -> None:
        new: dict[str, Any] = {RECORD: None, REASON: None, STATE: None}
        if rest is not None:
            is_quoted = self._selection.is_quoted_in(item.get(REASON, {}).get("S", ""))
            new = {RECORD: quarantine.pack(rest), **({REASON: None} if is_quoted else {})}
        request = update_as_seen(self._table.name, key_of(item), new, {RECORD: item[RECORD]})
        # If it is not as it was seen, it has expired, or another run has been here.
        self._table.write("update_item", **request)
