"""Counts by brute force: each record is added by the specs of the names that count."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal, Inexact
from typing import Any, Final, TypeAlias

from boto3.dynamodb.types import TypeDeserializer

from dynamodb_counters._declarations import Window
from simulation.memory.memory_stream import Record
from simulation.oracle.chunks import CHUNK_TYPE, ROW_SIGNS, rows_of
from simulation.oracle.specs import EXACTLY, ONE, RETENTION, SPECS, TRADE, UNCOUNTABLE, Parts, Spec, Values

Counts: TypeAlias = dict[tuple[str, str, str], dict[str, Decimal]]
"""By declaration, partition key and sort key: attribute and number; no zeros, and no bucket whose retention is over."""

Change: TypeAlias = tuple[Values | None, Values | None, bool]
"""An event before and after a write, and whether TTL deleted it."""

Entry: TypeAlias = tuple[str, str, str]
"""An image that may be in quarantine: shard, sequence number, name, which ends in the row if it is one of a chunk."""

Waiting: TypeAlias = dict[Entry, frozenset[str]]
"""The declarations that could not count an image."""

EXACT: Final = Context(prec=400, Emax=9999, Emin=-9999, traps=[Inexact])

_SPREAD: Final = re.compile(r"#~\d+$")
_ENTRY: Final = re.compile(r"^(.*?)#(\d{40})#((?:NewImage|OldImage)(?:#\d{1,7}(?![0-9a-f]))?)?")
_IMAGE: Final = re.compile(r"#(NewImage|OldImage)(#\d{1,7})?$")
_SIGNS: Final = {"NewImage": 1, "OldImage": -1}
_TTL_MATTERS: Final = 5 * 365 * 86_400
_PLAIN: Final = TypeDeserializer()


@dataclass(frozen=True)
class Aside:
    """Entries that code put aside for a declaration because it failed on events that are counted by mended code."""

    name: str = ""
    entries: frozenset[Entry] = frozenset()

    def has(self, entry: Entry, values: Values) -> bool:
        return entry in self.entries and fails(int(values["id"]))


def fails(number: int) -> bool:
    """Whether code that is mended later fails on the event of a number."""
    return number % 2 == 1


@dataclass
class Truth:
    """Results of the records of a table's stream.

    `waiting` is what must be in quarantine, by declarations, `images` what each entry holds, and `events` the event and
    its sign; `unclear` are the groups that images may or may not have been counted in, with what they would add.
    """

    specs: Sequence[Spec] = ()
    aside: Aside = Aside()
    counts: Counts = field(default_factory=dict)
    waiting: Waiting = field(default_factory=dict)
    images: dict[Entry, str] = field(default_factory=dict)
    events: dict[Entry, tuple[Values, int]] = field(default_factory=dict)

    def wanted(self, now: float) -> Counts:
        return comparable(self.counts, now)


def truth(
    records: Iterable[tuple[str, Record]],
    specs: Sequence[Spec],
    unreadable: Collection[Entry] = (),
    aside: Aside = Aside(),
) -> Truth:
    """Add up a stream; `unreadable` entries can never be counted."""
    found = Truth(specs, aside)
    redrives: list[tuple[str, Record]] = []
    for shard, record in records:
        images = record["dynamodb"]
        kind = (images.get("NewImage") or images.get("OldImage") or {}).get("_type", {}).get("S", "")
        if kind == "quarantine":
            redrives += [(shard, record)] if _is_redrive(images) else []
        elif kind in (TRADE.name, CHUNK_TYPE):
            for image in _SIGNS.keys() & images.keys():
                _add_image(found, record, (shard, _padded(record), image))
        elif kind in ("by_desk", "books-members"):
            _add_derived(found, specs, record)
    while ready := [(shard, record) for shard, record in redrives if _redriven(record) in found.waiting]:
        # A redriven image is in quarantine again, and may be redriven once more.
        for shard, record in ready:
            redriven = _redriven(record)
            names, image = found.waiting.pop(redriven), found.images[redriven]
            if redriven in unreadable:
                # The redrive itself is in quarantine until the entry is mended.
                names, image = frozenset(), "NewImage"
            again = shard, _padded(record), image
            event = found.events.pop(redriven)
            names -= _added(found, again, names, event)
            if names or redriven in unreadable:
                found.waiting[again], found.images[again], found.events[again] = names, image, event
        redrives = [redrive for redrive in redrives if redrive not in ready]
    return found


def expected_so_far(specs: Sequence[Spec], history: Iterable[Change], now: float) -> tuple[Counts, int]:
    """Counts by one deployment, and how many images some of its declarations cannot count."""
    counts: Counts = {}
    uncounted = 0
    for old, new, by_ttl in history:
        kept = [spec for spec in specs if not by_ttl or spec.declaration.on_expiry == "subtract"]
        for values, wanted, sign in ((new, specs, 1), (old, kept, -1)):
            if values is not None:
                failed = [spec for spec in wanted if not _add_parts(counts, spec, values, sign)]
                uncounted += bool(failed)
    return _with_derived(comparable(counts, now)), uncounted


def expected_of_rows(specs: Sequence[Spec], rows: Iterable[tuple[Values, int, bool]], now: float) -> Counts:
    """Counts of events, each with its sign and whether TTL has deleted it."""
    counts: Counts = {}
    for values, sign, by_ttl in rows:
        for spec in specs:
            if not by_ttl or spec.declaration.on_expiry == "keep":
                _add_parts(counts, spec, values, sign)
    return _with_derived(comparable(counts, now))


def actual(items: Iterable[Mapping[str, Any]], now: float) -> Counts:
    """The counts in a table's items."""
    counts: Counts = {}
    for item in items:
        name = item.get("_type", {}).get("S", "")
        if name not in _COUNTED:
            continue
        numbers = {
            attribute: Decimal(value["N"])
            for attribute, value in item.items()
            if "N" in value and attribute != "ttl" and not attribute.startswith("_w")
        }
        _add(counts, (name, _SPREAD.sub("", item["pk"]["S"]), item["sk"]["S"]), numbers)
    return comparable(counts, now)


def differences(want: Counts, have: Counts, unclear: Sequence[tuple[tuple[str, str, str], Parts]] = ()) -> list[str]:
    """Where two sets of counts differ, one line per item; by no more than what is `unclear` is no difference."""
    wrong = []
    for key in sorted({*want, *have}):
        low, high = dict(want.get(key, {})), dict(want.get(key, {}))
        for other, parts in unclear:
            if other == key:
                for name, part in parts.items():
                    bound = high if part > 0 else low
                    bound[name] = EXACT.add(bound.get(name, Decimal(0)), part)
        found = have.get(key, {})
        names = {*low, *high, *found}
        zero = Decimal(0)
        if not all(low.get(name, zero) <= found.get(name, zero) <= high.get(name, zero) for name in names):
            wrong.append(f"{key}: expected {_shown(want.get(key, {}))}, found {_shown(found)}")
    return wrong


def comparable(counts: Counts, now: float) -> Counts:
    return {
        key: kept
        for key, numbers in counts.items()
        if (kept := {name: number for name, number in numbers.items() if number})
        and not (key[0] in _RETAINED and _bucket_end(key[2]) + RETENTION.total_seconds() <= now)
    }


_COUNTED: Final = {spec.name for spec in SPECS} | {"crowded", "sizes", "books"}
_RETAINED: Final = {s.name for s in SPECS if isinstance(s.declaration, Window) and s.declaration.retention}


def _added(found: Truth, entry: Entry, names: frozenset[str], event: tuple[Values, int]) -> frozenset[str]:
    """The declaration in which mended code counts a redriven event that former code could not count."""
    (values, sign), name = event, found.aside.name
    if name not in names or not fails(int(values["id"])) or found.aside.has(entry, values):
        return frozenset()
    [spec] = [spec for spec in found.specs if spec.name == name]
    return frozenset({name}) if _add_parts(found.counts, spec, values, sign) else frozenset()


def _add_image(found: Truth, record: Record, entry: Entry) -> None:
    wanted, aside = found.specs, found.aside
    if entry[-1] == "OldImage" and is_expiry(record):
        wanted = [spec for spec in wanted if spec.declaration.on_expiry == "subtract"]
    for event, values, sign in _events_of(record["dynamodb"][entry[-1]], entry):
        counts: Counts = {}
        names = frozenset(
            spec.name
            for spec in wanted
            if (spec.name == aside.name and aside.has(event, values)) or not _add_parts(counts, spec, values, sign)
        )
        for key, parts in counts.items():
            _add(found.counts, key, parts)
        if names:
            found.waiting[event] = names
            found.images[event] = "NewImage" if sign > 0 else "OldImage"
            found.events[event] = values, sign


def _events_of(image: Mapping[str, Any], entry: Entry) -> list[tuple[Entry, Values, int]]:
    """The events of an image, each with the entry that it would be in quarantine, and its sign."""
    shard, sequence, name = entry
    if image["_type"]["S"] != CHUNK_TYPE:
        return [(entry, _values(image), _SIGNS[name])]
    return [
        ((shard, sequence, f"{name}#{index}"), values, _SIGNS[name] * ROW_SIGNS[sign])
        for index, (sign, values) in enumerate(rows_of(image))
        if sign in ROW_SIGNS
    ]


def _add_derived(found: Truth, specs: Sequence[Spec], record: Record) -> None:
    """Add what looks at the groups of another aggregate: it sees their keys and numbers only."""
    for image, sign in _SIGNS.items():
        item = record["dynamodb"].get(image)
        if item is None:
            continue
        name = item["_type"]["S"]
        if not any(spec.name == name for spec in specs):
            continue
        numbers = {attribute: Decimal(value["N"]) for attribute, value in item.items() if "N" in value}
        for key, parts in _derived(name, item["pk"]["S"], numbers):
            _add(found.counts, key, _signed(parts, sign))


def _derived(name: str, region: str, numbers: Mapping[str, Decimal]) -> Iterator[tuple[tuple[str, str, str], Parts]]:
    if name == "books-members":
        if numbers.get("items", 0) >= 1:
            yield ("books", region, "BOOKS"), {"distinct": ONE}
    elif trades := numbers.get("trades", Decimal(0)):
        if trades >= 2:
            yield ("crowded", "CROWDED", region), {"desks": ONE, "trades": trades}
        exactly = {f"exactly.{number}": ONE for number in EXACTLY if trades == number}
        yield ("sizes", "SIZES", region), exactly | {"capped": min(trades, Decimal(3))}


def _with_derived(counts: Counts) -> Counts:
    derived: Counts = {}
    for (name, region, _), numbers in counts.items():
        if name in ("by_desk", "books-members"):
            for key, parts in _derived(name, region, numbers):
                _add(derived, key, parts)
    return counts | derived


def is_waiting(item: Mapping[str, Any]) -> bool:
    """Whether an item is an entry of the quarantine that waits."""
    return (item.get("_type"), item.get("state")) == ({"S": "quarantine"}, {"S": "waiting"})


def is_image(sort_key: str) -> bool:
    """Whether a quarantine item's sort key is that of an image, or of an event, that is known not to be counted."""
    return _IMAGE.search(sort_key) is not None


def entry_of(sort_key: str) -> Entry:
    """The image that a quarantine item's sort key names."""
    found = _ENTRY.search(sort_key)
    return (found[1], found[2], found[3] or "") if found else ("", "", "")


def _redriven(record: Record) -> Entry:
    return entry_of(record["dynamodb"]["Keys"]["sk"]["S"])


def _padded(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"]).zfill(40)


def _is_redrive(images: Mapping[str, Any]) -> bool:
    states = [images.get(image, {}).get("state", {}).get("S") for image in ("OldImage", "NewImage")]
    return states == ["waiting", "released"]


def _values(image: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: _PLAIN.deserialize(value) for name, value in image.items()}
    return {name: int(value) if name in ("at", "id") else value for name, value in values.items()}


def is_expiry(record: Record) -> bool:
    """Whether TTL has deleted the item."""
    change = record["dynamodb"]
    if record["eventName"] != "REMOVE":
        return False
    age = change["ApproximateCreationDateTime"] - float(change["OldImage"].get("ttl", {"N": "inf"})["N"])
    return "userIdentity" in record or 0 <= age < _TTL_MATTERS


def _add_parts(counts: Counts, spec: Spec, values: Values, sign: int) -> bool:
    """Add what an event adds; False if the spec cannot count it."""
    try:
        places = spec.places(values)
    except UNCOUNTABLE:
        return False
    for key, parts in places:
        _add(counts, (spec.name, *key), _signed(parts, sign))
    return True


def _signed(parts: Parts, sign: int) -> Parts:
    return parts if sign > 0 else {name: part.copy_negate() for name, part in parts.items()}


def _add(counts: Counts, key: tuple[str, str, str], parts: Parts) -> None:
    numbers = counts.setdefault(key, {})
    for name, number in parts.items():
        numbers[name] = EXACT.add(numbers.get(name, Decimal(0)), number)


def _bucket_end(sort_key: str) -> float:
    return datetime.fromisoformat(sort_key.rpartition("#")[2] + ":00+00:00").timestamp() + 3600


def _shown(numbers: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items())) or "nothing"
