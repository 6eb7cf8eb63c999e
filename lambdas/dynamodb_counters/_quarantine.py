"""Quarantine: what cannot be counted is kept, once, however often it is delivered; redriven, or given up.

A redrive changes the state of the quarantine item. The stream record of that change stands for what the item holds, so
it is folded and committed like any record: exactly once, however often it is requested or delivered.
A discarded entry is never counted. Nothing else knows of it: its item cannot be folded either, when it is
scanned or deleted, so an entry that can be, now or later, is refused.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from dynamodb_counters._fold import records
from dynamodb_counters._fold.fold import InvalidImage, fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Aside, Change, Origin, Origins, Record
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import base64_text, binary, parse_number
from dynamodb_counters._items.schema import PK, QUARANTINE, SK, TTL, TYPE, put_as_seen, update_as_seen
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CommitError, InvalidArgumentError

STATE: Final = "state"
WAITING: Final = "waiting"
REDRIVEN: Final = "released"
DISCARDED: Final = "discarded"
PROVISIONAL: Final = "provisional"  # A backfill has met it: it waits once it is known to be what the baseline lacks.
STATES: Final = {WAITING: "waiting", REDRIVEN: "redriven", DISCARDED: "discarded"}  # Stored, and as a person sees it.

CHANGED_AT: Final = "changed_at"  # When an entry was redriven or discarded.
REASON: Final = "reason"
RECORD: Final = "record"
DELTA: Final = "sum"
NAMES: Final = "names"  # The declarations that an image waits for; an entry without is one of all.
PARTITIONS: Final = tuple(f"{schema.QUARANTINE_PREFIX}{number}" for number in range(32))
MAX_REASON: Final = 1000
# An item is 400 KB at most; keys, reason and bookkeeping take the rest.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_CONTENT_BYTES: Final = 380_000
_PLAIN_BYTES: Final = 32_000

UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error)
"""Errors of reading an item that was edited by hand."""
WAITING_ITEM: Final = {TYPE: {"S": QUARANTINE}, STATE: {"S": WAITING}}
_REDRIVEN: Final = {**WAITING_ITEM, STATE: {"S": REDRIVEN}}
_IMAGE_KEY_END: Final = re.compile(r"#(\d{40})#((?:NewImage|OldImage)(?:#\d{1,7})?)(#[0-9a-f]{8})?$")
_AFTER: Final = "~"  # After every sequence number.
PREFIX: Final = "aws/lambda/"  # Of Lambda's objects, before the mapping's id, the shard, date, time and random text.
MOST_BYTES: Final = 4_000_000  # Nothing is counted after so many, for 500 read units: what waits is a lower bound.
_PAGE, _MOST_PAGES = 50, 10
RETENTION: Final = 90 * DAY  # Of what an operator's command has put there.
_LEAST: Final = 2 * DAY  # For which an entry stays, whatever its image says.


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An entry of the quarantine: an image that could not be counted, or a delta that its item could not take.

    Parameters
    ----------
    shard : str
        Stream shard of the record.
    sequence : str
        Sequence number of the record in that shard, padded to 40 digits.
    reason : str
        Why it could not be counted.
    content : dict
        The stream record with the one image that could not be folded; or, if an item could not take a delta,
        the declaration's ``name``, the ``group`` and the ``numbers``.
    names : tuple of str
        The declarations that could not count the image, while the others did; empty if none did, or for a delta.
    redriven : bool
        Whether it was redriven.
    key : tuple of str
        Partition and sort key of the quarantine item.
    """

    shard: str
    sequence: str
    reason: str
    content: dict[str, Any]
    names: tuple[str, ...]
    redriven: bool
    key: tuple[str, str]


def quarantine_key(shard: str, entry_id: str) -> dict[str, Any]:
    # Those of a shard lie together, to be looked up at once: a shard has no more records than a key takes entries.
    partition = PARTITIONS[zlib.crc32(shard.encode()) % len(PARTITIONS)]
    return {PK: {"S": partition}, SK: {"S": f"{shard}#{entry_id}"}}


def quarantine_item(
    key: Mapping[str, Any], reason: str, content: Mapping[str, Any], names: Sequence[str], expires_at: int
) -> dict[str, Any]:
    """Return the typed item of an entry; `content` is the attribute that holds the record or the delta."""
    item = {**key, **WAITING_ITEM, TTL: {"N": str(expires_at)}, REASON: {"S": reason[:MAX_REASON]}}
    return {**item, **({NAMES: {"SS": list(names)}} if names else {}), **content}


def read_quarantine_item(item: Mapping[str, Any]) -> Quarantined:
    """Return the entry that an item holds; one that is spoiled has no content."""
    reason, origin = str(item.get(REASON, {}).get("S", "")), origin_of(item, None)
    try:
        content, names = unpack(item[DELTA] if DELTA in item else item[RECORD]), names_of(item)
    except UNREADABLE as error:
        content, names, reason = {}, (), f"{type(error).__name__}: the entry cannot be read. {reason}"
    key = item[PK]["S"], item[SK]["S"]
    return Quarantined(origin.shard, origin.sequence, reason, content, names, state_of(item) == REDRIVEN, key)


def names_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of an entry; one without is of all declarations."""
    return tuple(sorted(item[NAMES]["SS"])) if NAMES in item else ()


def origin_of(item: Mapping[str, Any], created: Any) -> Origin:
    shard, sequence = [*item[SK]["S"].split("#"), ""][:2]
    return Origin(shard, sequence, float(created or 0))


def redriven_item(change: Mapping[str, Any]) -> Image | None:
    """Return the new image of a quarantine item if this change, a record's ``dynamodb``, redrives it; else None."""
    new, old = change.get("NewImage"), change.get("OldImage")
    if not isinstance(new, dict) or not isinstance(old, dict):
        return None
    return new if new.items() >= _REDRIVEN.items() and old.items() >= WAITING_ITEM.items() else None


def pack(content: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Return typed JSON, compressed if long; a record too large for an item keeps its keys only."""
    text = json.dumps(content, default=_plain, separators=(",", ":"))
    if len(text) <= _PLAIN_BYTES:
        return {"S": text}
    packed = zlib.compress(text.encode(), 9)
    if len(packed) <= MAX_CONTENT_BYTES:
        return {"B": packed}
    keys = {name: value for name, value in content["dynamodb"].items() if not name.endswith("Image")}
    return {"S": json.dumps({**content, "dynamodb": keys}, default=_plain, separators=(",", ":"))}


def unpack(value: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `pack`; binary comes as bytes or, in a stream record, as base64 text."""
    content = json.loads(value["S"] if "S" in value else zlib.decompress(binary(value["B"])))
    if not isinstance(content, dict):
        raise TypeError("expected a JSON object")
    return content


def _plain(value: Any) -> str:
    return base64_text(value) if isinstance(value, bytes | bytearray) else str(value)


@dataclass(slots=True)
class Waiting:
    """The number of entries that wait, and the age of the oldest in seconds."""

    count: int = 0
    oldest: float = 0.0


def waiting_in_quarantine(table: Table, retention_seconds: float) -> Waiting:
    """Count the entries that are not redriven: all of them, unless that would cost too much."""
    now, waiting, size = table.clock(), Waiting(), 0
    for item in stored_entries(table, ConsistentRead=False, Limit=_PAGE):
        size += schema.item_bytes(item)
        if size > MOST_BYTES:
            break
        expires_at = float(item.get(TTL, {}).get("N", 0))
        if state_of(item) == WAITING and expires_at > now:
            # The entry may stay for less than the quarantine's retention.
            try:
                created = float(unpack(item[RECORD])["dynamodb"]["ApproximateCreationDateTime"])
            except UNREADABLE:
                created = expires_at - retention_seconds
            waiting.count, waiting.oldest = waiting.count + 1, max(waiting.oldest, now - created)
    return waiting


def waiting_in_bucket(s3: Any, bucket: str, now: float) -> Waiting:
    """Count Lambda's objects; at most 10,000."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX)
    objects = [content for page in islice(pages, _MOST_PAGES) for content in page.get("Contents", ())]
    return Waiting(len(objects), max((now - item["LastModified"].timestamp() for item in objects), default=0.0))


def aside_by_sequence(entries: Iterable[Image]) -> Mapping[str, Aside]:
    """Return what entries hold of each record; an entry without names is of all declarations."""
    aside: dict[str, dict[str, tuple[frozenset[str] | None, bool]]] = {}
    for item in entries:
        if (match := _IMAGE_KEY_END.search(item[SK]["S"])) is not None:
            sequence, image_name, digest = match.groups()
            of_record, names = aside.setdefault(sequence, {}), item.get(NAMES)
            before, has_own = of_record.get(image_name, (frozenset(), False))
            # Of names that are malformed none is known.
            after = None if before is None or names is None else before.union(names.get("SS", ()))
            of_record[image_name] = after, has_own or not digest
    return aside


class Quarantine:
    """The quarantine of one table: entries stay for `retention_seconds`, or as long as the item's own `ttl_of` says."""

    def __init__(self, table: Table, retention_seconds: float, ttl_of: records.TtlOf = lambda _: TTL) -> None:
        self._table, self._retention_seconds, self._ttl_of = table, retention_seconds, ttl_of
        self._aside: dict[str, tuple[str, Mapping[str, Aside]]] = {}
        """By shard: from which record on it is known what was put aside, and what, by sequence number."""

    def leave_aside(self, shard: str, changes: Sequence[Change]) -> None:
        """Leave to the quarantine what an earlier delivery has put there, though newer code may fold it."""
        # Once per shard and process: what this one meets later, it meets with its own code.
        since, aside = self._aside.get(shard, (_AFTER, {}))
        if changes[0].sequence < since:
            since = changes[0].sequence
            first, last = quarantine_key(shard, since), quarantine_key(shard, _AFTER)
            request: dict[str, Any] = {
                "KeyConditionExpression": f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
                "ExpressionAttributeValues": {":pk": first[PK], ":first": first[SK], ":last": last[SK]},
                "ProjectionExpression": f"{SK}, #names",
                "ExpressionAttributeNames": {"#names": NAMES},
            }
            aside = aside_by_sequence(self._table.partition(first[PK]["S"], **request))
            self._aside[shard] = since, aside
        if aside:
            for change in changes:
                change.aside = aside.get(change.sequence, {})

    def keep(self, shard: str, images: Sequence[InvalidImage], state: str = WAITING) -> int:
        """Put images that are not there yet and return how many; `CommitError` means: deliver the batch again."""
        results = [result for _, result in self._table.side_by_side(partial(self.keep_one, shard, state=state), images)]
        if failures := [result for result in results if isinstance(result, Exception)]:
            raise CommitError(failures)
        return results.count(True)

    def keep_one(self, shard: str, image: InvalidImage, state: str = WAITING) -> bool:
        key, content = quarantine_key(shard, image.entry_id), {RECORD: pack(image.record), STATE: {"S": state}}
        return self.put(quarantine_item(key, image.reason, content, image.names, self._expires_at(image.record)))

    def _expires_at(self, record: Record) -> int:
        """Return a time no later than what the image itself says, but so that one can look at the entry."""
        now, ttl = self._table.clock(), self._ttl_of(record) or ""
        images = [record["dynamodb"].get(name) or {} for name in (NEW, OLD)]
        expiries = [float(image[ttl]["N"]) for image in images if "N" in image.get(ttl, {})]
        latest = min([now + self._retention_seconds, *(at for at in expiries if at > now - records.MAX_TTL_AGE)])
        return int(max(latest, min(now + _LEAST, now + self._retention_seconds)))

    def item_of(self, delta: Mapping[str, Any], shard: str, entry_id: str, reason: str) -> dict[str, Any]:
        key, expires_at = quarantine_key(shard, entry_id), int(self._table.clock() + self._retention_seconds)
        return quarantine_item(key, reason, {DELTA: pack(delta)}, (), expires_at)

    def put(self, item: dict[str, Any]) -> bool:
        return self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ()))


def list_quarantined(table: Table, *, redriven: bool) -> Iterator[Quarantined]:
    """Yield entries in no particular order; those redriven already only on request."""
    states = (WAITING, REDRIVEN) if redriven else (WAITING,)
    return (read_quarantine_item(item) for item in stored_entries(table) if state_of(item) in states)


def stored_entries(table: Table, **request: Any) -> Iterator[Image]:
    """Yield the items of the quarantine, whatever became of them."""
    return chain.from_iterable(table.partition(pk, **request) for pk in PARTITIONS)


def state_of(item: Image) -> str:
    return str(item.get(STATE, {}).get("S", ""))


def redrive(table: Table, entry: Quarantined) -> bool:
    """Send an entry back through the stream; False if it was redriven before or has expired."""
    if not isinstance(entry, Quarantined):
        raise InvalidArgumentError("entry", entry, "a Quarantined, one of quarantined()")
    return table.write("update_item", **state_request(table, stored_key(entry), WAITING, REDRIVEN))


def discard(table: Table, entry: Quarantined, plan: Plan, origins: Origins) -> bool:
    """Give an entry up for good; False if it has changed meanwhile."""
    key = stored_key(entry)
    if _can_count(plan, origins, table.read_item(key), table.clock()):
        raise InvalidArgumentError("entry", entry.key[1], "one that cannot be counted: redrive it")
    return table.write("update_item", **state_request(table, key, WAITING, DISCARDED))


def _can_count(plan: Plan, origins: Origins, item: Image, now: float) -> bool:
    try:
        folded = fold(plan, [held_by(item, records.inserted({}, now), origins)])
    except UNREADABLE:
        return False
    return bool(folded.deltas or folded.early)


def held_by(item: Image, delivered: Record, origins: Origins) -> Change:
    """Return the change that an entry holds; one that could not be counted when redriven holds a redriven entry."""
    if DELTA in item:
        content = unpack(item[DELTA])
        numbers = tuple((name, parse_number(text)) for name, text in content["numbers"].items())
        delta = content["name"], tuple(content["group"]), numbers
        return Change(delivered, delta=delta, origin=origin_of(item, content.get("created")))
    record = unpack(item[RECORD])
    if not isinstance(record["dynamodb"], dict):
        raise TypeError("expected a stream record")
    is_foreign = origins.is_foreign(record)
    if not is_foreign and (inner := redriven_item(record["dynamodb"])) is not None:
        return held_by(inner, delivered, origins)
    names = frozenset(names_of(item)) or None
    origin = origin_of(item, record["dynamodb"].get("ApproximateCreationDateTime"))
    return Change(delivered, record, names=names, is_foreign=is_foreign, origin=origin)


def confirm(table: Table, key: Mapping[str, Any], twin: Mapping[str, Any] | None = None) -> bool:
    """Let a provisional entry wait, unless its twin, which stands for the same, does, or did."""
    update = state_request(table, key, PROVISIONAL, WAITING)
    if twin is None:
        return table.write("update_item", **update)
    check = {
        "TableName": table.name,
        "Key": twin,
        "ConditionExpression": "attribute_not_exists(#state) OR #state = :provisional",
        "ExpressionAttributeNames": {"#state": STATE},
        "ExpressionAttributeValues": {":provisional": {"S": PROVISIONAL}},
    }
    return table.write_together([{"Update": update}, {"ConditionCheck": check}])


def stored_key(entry: Quarantined) -> dict[str, Any]:
    return {PK: {"S": entry.key[0]}, SK: {"S": entry.key[1]}}


def state_request(table: Table, key: Mapping[str, Any], before: str, after: str) -> dict[str, Any]:
    new = {STATE: {"S": after}, CHANGED_AT: {"N": f"{table.clock():.0f}"}}
    return update_as_seen(table.name, key, new, {STATE: {"S": before}})
