"""Chunks: many events in one item, their attributes in columns, compressed.

A chunk is never changed, except that rows of erased events are taken out. docs/writing-events.md documents the format.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from dynamodb_counters._items.conditions import Image, TypedValue
from dynamodb_counters._items.conversions import base64_text, binary
from dynamodb_counters._items.schema import PACK_PREFIX
from dynamodb_counters._tiers import FIRST_SECOND, utc
from dynamodb_counters.errors import MalformedImageError

Sign: TypeAlias = Literal["+", "-", "0"]  # Of a row: accepted, taken back, or a tombstone.
Cells: TypeAlias = Sequence[Any]  # Texts, or typed values in a column of kind ""; None where a row lacks the attribute.

MAX_NUMBER: Final = 999_999  # The last chunk of a bucket.
_VERSION: Final = 1
_SIGNS: Final = frozenset(get_args(Sign))
_SEPARATOR: Final = "\x7f"  # A character that JSON need not escape and that hardly any text has: DEL.


class Row(NamedTuple):
    sign: Sign
    values: Image


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of a chunk by columns: attribute name to kind (S, N or "" for any) and cells; `batch` wrote it."""

    batch: str
    rows: int
    columns: Mapping[str, tuple[str, Cells]]
    signs: str = ""  # One per row; empty if all are accepted events.

    def typed(self, name: str) -> list[TypedValue | None]:
        kind, cells = self.columns.get(name, ("", [None] * self.rows))
        return [{kind: cell} if kind and cell is not None else cell for cell in cells]

    def all_rows(self) -> list[Row]:
        return self.rows_at(range(self.rows))

    def rows_at(self, numbers: Sequence[int]) -> list[Row]:
        images: list[dict[str, Any]] = [{} for _ in numbers]
        for name, (kind, cells) in self.columns.items():
            for image, number in zip(images, numbers, strict=True):
                if (cell := cells[number]) is not None:
                    image[name] = {kind: cell} if kind else cell
        signs: Any = self.signs or "+" * self.rows
        return [Row(signs[number], image) for image, number in zip(images, numbers, strict=True)]


def chunk_key(event_name: str, part: str, start: int, number: int) -> tuple[str, str]:
    begin = utc(max(start, FIRST_SECOND)).isoformat().replace("+00:00", "Z")
    return f"{PACK_PREFIX}{event_name}#{part}", f"{begin}#{number:06}"


def chunk_bucket(sk: str) -> str:
    return sk.partition("#")[0]


def lost_rows(before: Chunk, after: Chunk) -> Chunk:
    """Return the rows that a chunk had `before` some were taken out of it, and has no more."""
    remaining, rows = deque(after.all_rows()), list[Row]()
    for row in before.all_rows():
        if remaining and row == remaining[0]:
            remaining.popleft()
        else:
            rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row.values)
    columns = {name: ("", [row.values.get(name) for row in rows]) for name in names}
    return Chunk(before.batch, len(rows), columns, "".join([row.sign for row in rows]))


def encode_chunk(rows: Sequence[Row], batch: str) -> bytes:
    names = dict.fromkeys(name for row in rows for name in row.values)
    columns = {name: _column([row.values.get(name) for row in rows]) for name in names}
    signs = "".join([row.sign for row in rows])
    document = [_VERSION, batch, len(rows), columns, *([signs] if signs.strip("+") else [])]
    # JSON takes typed values as they are, binary as base64.
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=base64_text)
    return zlib.compress(text.encode(), 9)


def decode_chunk(value: Mapping[str, Any]) -> Chunk:
    """Return the chunk in a typed attribute, binary or, in a stream record, base64; MalformedImageError for others."""
    try:
        version, batch, rows, columns, *signs = json.loads(zlib.decompress(binary(value["B"])))
        if version != _VERSION or not isinstance(batch, str):
            raise ValueError(f"it is {version!r:.20}, {batch!r:.20}: expected version {_VERSION} and a batch id")
        chunk = Chunk(batch, rows, {name: _cells(column) for name, column in columns.items()}, *signs)
        if any(len(cells) != chunk.rows for _, cells in chunk.columns.values()):
            raise ValueError(f"expected {chunk.rows} rows in every column")
        if chunk.signs and (len(chunk.signs) != chunk.rows or not _SIGNS.issuperset(chunk.signs)):
            raise ValueError(f"expected {chunk.rows} signs among {', '.join(sorted(_SIGNS))}")
    except (LookupError, TypeError, AttributeError, ValueError, zlib.error) as error:
        raise MalformedImageError(f"the chunk cannot be read: {type(error).__name__}: {error}") from error
    return chunk


def _column(values: Sequence[Mapping[str, Any] | None]) -> Any:
    """Return texts joined if they can be taken apart again, shorter and faster to decode; else kind and cells."""
    kinds = {kind for value in values if value is not None for kind in value}
    if kinds not in ({"S"}, {"N"}):
        return ["", values]
    [kind] = kinds
    cells: list[Any] = [None if value is None else value[kind] for value in values]
    if any(cell is None or _SEPARATOR in cell for cell in cells):
        return [kind, cells]
    joined = _SEPARATOR.join(cells)
    return joined if kind == "S" else [kind, joined]


def _cells(column: Any) -> tuple[str, Cells]:
    kind, cells = ("S", column) if isinstance(column, str) else column
    if kind and isinstance(cells, str):
        return kind, cells.split(_SEPARATOR)
    kinds = (str if kind else dict, type(None))
    if kind not in ("S", "N", "") or not all(isinstance(cell, kinds) for cell in cells):
        raise ValueError(f"a column of kind {kind!r:.20} holds other cells")
    return kind, list(cells)
