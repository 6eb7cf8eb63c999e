"""What items hold: events in chunks, entries of the quarantine, groups; read by the documented layout alone."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from boto3.dynamodb.types import TypeDeserializer

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._items.conversions import unescape
from simulation.memory.memory_stream import Record
from simulation.oracle.aggregates import SECONDS, Group, Row, epoch, timestamp

_CHUNK_TYPE: Final = "tap#pack"

EventKey: TypeAlias = tuple[str, int, int]
"""Device, id and time of a tap."""

SignedRow: TypeAlias = tuple[str, dict[str, Any]]

ROW_SIGNS: Final = {"+": 1, "-": -1}
"""Signs of the rows that count."""

_PLAIN: Final = TypeDeserializer()


def rows_of(image: Mapping[str, Any]) -> list[SignedRow]:
    """Return the rows of a chunk: sign and plain values."""
    blob = image["_chunk"]["B"]
    document = json.loads(zlib.decompress(base64.b64decode(blob) if isinstance(blob, str) else bytes(blob)))
    _, _, number, columns, *signs = document
    rows: list[dict[str, Any]] = [{} for _ in range(number)]
    for name, column in columns.items():
        kind, cells = ("S", column) if isinstance(column, str) else column
        for row, cell in zip(rows, cells.split("\x7f") if isinstance(cells, str) else cells, strict=True):
            if cell is not None:
                typed: Any = {kind: cell} if kind else cell
                row[name] = _PLAIN.deserialize(typed)
    return [(sign, plain_values(row)) for sign, row in zip(signs[0] if signs else "+" * number, rows, strict=True)]


def plain_values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: int(value) if name in ("at", "id", "ref") else value for name, value in row.items()}


def event_key(values: Row) -> EventKey:
    return values["device"], int(values["id"]), int(values["at"])


@dataclass
class LoggedEvent:
    """An event in its log: what was accepted, and whether it was taken back."""

    values: Row | None = None
    is_live: bool = False
    is_gone: bool = False


@dataclass
class Logs:
    """All that was ever written to the logs of a table, and what is `wrong` with them.

    `rows` are those that count: values, sign, and whether TTL has deleted the chunk.
    """

    events: dict[EventKey, LoggedEvent] = field(default_factory=dict)
    rows: list[tuple[Row, int, bool]] = field(default_factory=list)
    chunks: int = 0
    wrong: list[str] = field(default_factory=list)


def read_logs(records: Iterable[tuple[str, Record]]) -> Logs:
    """Follow each log from chunk to chunk, as the stream shows them."""
    logs, content, expired = Logs(), dict[tuple[str, str], dict[int, list[SignedRow]]](), set[tuple[str, str, int]]()
    for _, record in records:
        change = record["dynamodb"]
        image = change.get("NewImage") or change.get("OldImage") or {}
        if image.get("_type") != {"S": _CHUNK_TYPE}:
            continue
        bucket, _, number = image["sk"]["S"].rpartition("#")
        log = image["pk"]["S"], bucket
        if record["eventName"] == "REMOVE":
            expired.add((*log, int(number)))
            continue
        chunks = content.setdefault(log, {})
        if record["eventName"] != "INSERT" or int(number) != len(chunks):
            logs.wrong.append(f"log {log}: {record['eventName']} of chunk {number} after {len(chunks)}")
        if any((*log, other) in expired for other in range(len(chunks))):
            logs.wrong.append(f"log {log}: chunk {number} was written when some had expired")
        chunks[int(number)] = rows_of(image)
    for log, chunks in content.items():
        for number, rows in sorted(chunks.items()):
            logs.chunks += 1
            is_expired = (*log, number) in expired
            logs.rows += [(row, ROW_SIGNS[sign], is_expired) for sign, row in rows if sign in ROW_SIGNS]
            logs.wrong += [f"log {log}, chunk {number}: {text}" for text in _follow(logs.events, rows)]
    return logs


def _follow(events: dict[EventKey, LoggedEvent], rows: Iterable[SignedRow]) -> Iterator[str]:
    """Note what a chunk does to its events; yield what it must not do."""
    for sign, values in rows:
        event = events.setdefault(event_key(values), LoggedEvent())
        if event.is_gone:
            yield f"{sign} of {values}, which is gone"
        if sign == "+":
            if event.values is not None:
                yield f"+ of {values} after {event.values}"
            event.values, event.is_live = values, True
            continue
        if sign == "-" and (not event.is_live or values != event.values):
            yield f"- of {values}, when there was {event.values}"
        event.is_live, event.is_gone = False, True


Entry: TypeAlias = tuple[str, str, str]
"""An image that may be in quarantine: shard, sequence number, name, which ends in the row if it is one of a chunk."""

_ENTRY: Final = re.compile(r"^(.*?)#(\d{40})#((?:NewImage|OldImage)(?:#\d{1,7}(?![0-9a-f]))?)?")
_IMAGE: Final = re.compile(r"#(NewImage|OldImage)(#\d{1,7})?$")
_TTL_MATTERS: Final = 5 * 365 * 86_400


def is_waiting(item: Mapping[str, Any]) -> bool:
    """Return whether an item is an entry of the quarantine that waits."""
    return (item.get("_type"), item.get("state")) == ({"S": "quarantine"}, {"S": "waiting"})


def is_image(sort_key: str) -> bool:
    """Return whether a quarantine item's sort key is that of an image, or of an event, that is not counted."""
    return _IMAGE.search(sort_key) is not None


def entry_of(sort_key: str) -> Entry:
    """Return the image that a quarantine item's sort key names."""
    match = _ENTRY.search(sort_key)
    return (match[1], match[2], match[3] or "") if match else ("", "", "")


def is_expiry(record: Record) -> bool:
    """Return whether TTL has deleted the item."""
    change = record["dynamodb"]
    if record["eventName"] != "REMOVE":
        return False
    age = change["ApproximateCreationDateTime"] - float(change["OldImage"].get("ttl", {"N": "inf"})["N"])
    return "userIdentity" in record or 0 <= age < _TTL_MATTERS


Image = Mapping[str, Any]

PAGE: Final = "PAGE#"
_DIGIT: Final = len("#~0")


@dataclass(frozen=True)
class HeldGroup:
    """A group in an item; `names` are those that its measures' attributes have there."""

    declaration: Aggregate
    group: Group
    item: Image
    names: Mapping[str, str]

    @property
    def place(self) -> tuple[str, Group]:
        return self.declaration.name, self.group

    @property
    def key(self) -> dict[str, Any]:
        return {"pk": self.item["pk"], "sk": self.item["sk"]}

    @property
    def measures(self) -> list[str]:
        """The attributes of measures that it has."""
        return [name for name in self.declaration._attributes if self.names[name] in self.item]

    @property
    def is_counted(self) -> bool:
        return any(name in self.item for name in self.names.values())


def is_page(item: Image) -> bool:
    return bool("_type" in item and item["sk"]["S"].startswith(f"{PAGE}{item['_type']['S']}#"))


def _unit(members: Aggregate, stretch: str, code: str) -> str:
    """Return the unit of time that two digits of a member's page mean: the one of its stretch, or of the one before."""
    seconds = SECONDS[members.fields[-1].partition(":")[2]]
    first = epoch(stretch) // seconds - members._longest
    return timestamp((first + (int(code, 36) - first) % 1296) * seconds, seconds)


def held_groups(declaration: Aggregate, item: Image) -> Iterator[HeldGroup]:
    """Yield the groups of an item of a declaration."""
    if not declaration.pages:
        values = values_of(declaration, item)
        assert values is not None
        group = tuple(values[field] for field in declaration.fields)
        yield HeldGroup(declaration, group, item, {name: name for name in (*declaration._attributes, "_score")})
        return
    shelf = item["sk"]["S"].removeprefix(f"{PAGE}{declaration.name}#").split("#")[: declaration._shelved]
    for text in [name[1:] for name in item if name.startswith("=")]:
        values = declaration._pk_template.parse(item["pk"]["S"][:-_DIGIT])
        texts = [unescape(shelf[0]), _unit(declaration, unescape(shelf[0]), text)] if declaration._longest else None
        texts = texts or [unescape(part) for part in (*shelf, *text.split("#"))]
        values |= zip(declaration._sk_template.fields, texts, strict=True)
        group = tuple(values[field] for field in declaration.fields)
        marks = ["", *(chr(ord("a") + index) for index in range(1, len(declaration._attributes)))]
        names = [f"{mark}={text}" for mark in marks]
        yield HeldGroup(declaration, group, item, dict(zip(declaration._attributes, names, strict=True)))
