"""Chunks, read by what is documented of them alone, and what a log of them must be like."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from boto3.dynamodb.types import TypeDeserializer

from simulation.memory.memory_stream import Record
from simulation.oracle.aggregates import Row

_CHUNK_TYPE: Final = "tap#pack"

EventKey: TypeAlias = tuple[str, int, int]
"""Device, id and time of a tap."""

SignedRow: TypeAlias = tuple[str, dict[str, Any]]

ROW_SIGNS: Final = {"+": 1, "-": -1}
"""Signs of the rows that count."""

_PLAIN: Final = TypeDeserializer()


def rows_of(image: Mapping[str, Any]) -> list[SignedRow]:
    """The rows of a chunk: sign and plain values."""
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
    logs, written, expired = Logs(), dict[tuple[str, str], dict[int, list[SignedRow]]](), set[tuple[str, str, int]]()
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
        chunks = written.setdefault(log, {})
        if record["eventName"] != "INSERT" or int(number) != len(chunks):
            logs.wrong.append(f"log {log}: {record['eventName']} of chunk {number} after {len(chunks)}")
        if any((*log, other) in expired for other in range(len(chunks))):
            logs.wrong.append(f"log {log}: chunk {number} was written when some had expired")
        chunks[int(number)] = rows_of(image)
    for log, chunks in written.items():
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
