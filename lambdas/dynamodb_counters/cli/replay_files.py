"""Files of events: JSON lines, CSV, access logs; plain or gzip."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import click

from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters.cli.log_lines import log_request

FORMATS: Final = ("jsonl", "csv", "log")

_BY_SUFFIX: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".log": "log"}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_MOST_SHOWN: Final = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a file, numbered from 1: its values, or why it has none."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    text: str = ""


def format_of(path: Path) -> str:
    """By the file's name; a usage error if that does not tell."""
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix not in _BY_SUFFIX:
        raise click.UsageError(f"{path.name!r} does not tell its format: give --format {', '.join(FORMATS)}")
    return _BY_SUFFIX[name.suffix]


def rows(file: BinaryIO, kind: str, numbers: Sequence[str] = ()) -> Iterator[Row]:
    """The records of an open file; empty lines are none. `numbers` are the columns of a CSV that hold some."""
    reader = {"jsonl": _json_rows, "log": _log_rows}.get(kind)
    opened = _decompressed(file)
    try:
        yield from _csv_rows(opened, numbers) if reader is None else reader(opened)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise click.UsageError(f"its gzip data is damaged or cut off: {error}") from error


def _json_rows(file: BinaryIO) -> Iterator[Row]:
    for number, line in _lines(file):
        try:
            values = read_json(line.decode())
            if not isinstance(values, dict):
                raise ValueError("expected a JSON object in each line")
            yield Row(number, values)
        except (ValueError, RecursionError) as error:
            yield Row(number, problem=f"not JSON within the limits: {error}", text=_shown(line))


def _log_rows(file: BinaryIO) -> Iterator[Row]:
    # Bytes that are not UTF-8 become \xhh, as web servers write bytes that they consider unprintable.
    for number, line in _lines(file):
        values = log_request(line.decode("utf-8", errors="backslashreplace"))
        if values is None:
            yield Row(number, problem="no line of an access log in common or combined format", text=_shown(line))
        else:
            yield Row(number, values)


def _csv_rows(file: BinaryIO, numbers: Sequence[str]) -> Iterator[Row]:
    text = io.TextIOWrapper(cast("Any", file), "utf-8-sig", errors="backslashreplace", newline="")
    reader = csv.reader(text, strict=True)
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise click.UsageError(f"the first line of the CSV names no columns: {error}") from error
    if not names or len(set(names)) < len(names) or not all(names):
        raise click.UsageError("the first line of a CSV names its columns, each once")
    if unknown := [name for name in numbers if name not in names]:
        raise click.UsageError(f"there is no column {unknown[0]!r}; the columns are: {', '.join(names)}")
    try:
        for number, (cells, problem) in enumerate(_cells(reader), start=1):
            try:
                yield Row(number, {}, problem) if problem else Row(number, _named(names, cells, numbers))
            except ValueError as error:
                yield Row(number, {}, str(error), ",".join(cells)[:_MOST_SHOWN])
    finally:
        text.detach()  # Whoever opened the file closes it.


def _named(names: list[str], cells: list[str], numbers: Sequence[str]) -> dict[str, Any]:
    """The values of a line by column; an empty cell is none."""
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells; expected {len(names)}")
    values: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    for name in numbers:
        if name in values and not _NUMBER.fullmatch(values[name]):
            raise ValueError(f"{name} {values[name]!r:.80} is no number")
        if name in values:
            values[name] = Decimal(values[name])
    return values


def _cells(reader: Iterable[list[str]]) -> Iterator[tuple[list[str], str]]:
    cells = iter(reader)
    while True:
        try:
            found = next(cells)
        except StopIteration:
            return
        except csv.Error as error:
            yield [], f"no CSV: {error}"
            continue
        if found:
            yield found, ""


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        content = line.strip(b"\r\n")
        if number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        if content.strip():
            yield number, content


def _decompressed(file: BinaryIO) -> BinaryIO:
    # Peeking, not seeking: it may be a pipe.
    peeked = cast("io.BufferedReader", file).peek(len(_GZIP_MAGIC))
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if peeked.startswith(_GZIP_MAGIC) else file


def _shown(line: bytes) -> str:
    return line[:_MOST_SHOWN].decode("utf-8", errors="backslashreplace")
