"""Files of events: JSON lines, CSV, access logs; plain or gzip."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, AnyStr, BinaryIO, Final, TextIO, cast

import click

from dynamodb_counters._http.gateway_requests import MAX_BODY_BYTES
from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters.cli.arguments import NUMBER
from dynamodb_counters.cli.log_lines import log_request

FORMATS: Final = ("jsonl", "csv", "log")

_BY_SUFFIX: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".log": "log"}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_MOST_SHOWN: Final = 1000
_TOO_LONG: Final = f"a line of more than {MAX_BODY_BYTES:,} bytes"


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a file, numbered from 1: its values, or why it has none."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    text: str = ""
    size: int = 0
    """About how many bytes of memory it takes."""


def format_of(path: Path) -> str:
    """By the file's name; a usage error if that does not show it."""
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix not in _BY_SUFFIX:
        raise click.UsageError(f"{path.name!r} does not show its format: give --format {', '.join(FORMATS)}")
    return _BY_SUFFIX[name.suffix]


def rows(file: BinaryIO, kind: str, numbers: Sequence[str] = ()) -> Iterator[Row]:
    """The records of an open file; empty lines are none. `numbers` are the columns of a CSV that hold some."""
    read = {"jsonl": _json_values, "log": _log_values}.get(kind)
    opened = _decompressed(file)
    try:
        yield from _csv_rows(opened, numbers) if read is None else _line_rows(opened, read)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise click.UsageError(f"its gzip data is damaged or cut off: {error}") from error


def _line_rows(file: BinaryIO, read: Callable[[bytes], dict[str, Any]]) -> Iterator[Row]:
    for number, (line, is_whole) in enumerate(_whole_lines(file), start=1):
        content = line.strip(b"\r\n")
        if number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        try:
            if not is_whole:
                raise ValueError(_TOO_LONG)
            if content.strip():
                yield Row(number, read(content), size=len(content))
        except ValueError as error:
            yield Row(number, problem=str(error), text=content[:_MOST_SHOWN].decode("utf-8", errors="backslashreplace"))


def _json_values(line: bytes) -> dict[str, Any]:
    try:
        values = read_json(line.decode())
        if isinstance(values, dict):
            return values
        raise ValueError("expected a JSON object in each line")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON within the limits: {error}") from error


def _log_values(line: bytes) -> dict[str, Any]:
    # Bytes that are not UTF-8 become \xhh, as web servers write bytes that they consider unprintable.
    values = log_request(line.decode("utf-8", errors="backslashreplace"))
    if values is None:
        raise ValueError("no line of an access log in common or combined format")
    return values


def _csv_rows(file: BinaryIO, numbers: Sequence[str]) -> Iterator[Row]:
    text = io.TextIOWrapper(cast("Any", file), "utf-8-sig", errors="backslashreplace", newline="")
    lines = _RecordLines(text)
    reader = csv.reader(lines, strict=True)
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise click.UsageError(f"the first line of the CSV names no columns: {error}") from error
    if not names or len(set(names)) < len(names) or not all(names):
        raise click.UsageError("the first line of a CSV names its columns, each once")
    if unknown := [name for name in numbers if name not in names]:
        raise click.UsageError(f"there is no column {unknown[0]!r}; the columns are: {', '.join(names)}")
    try:
        for number, (cells, problem) in enumerate(_cells(reader, lines), start=1):
            try:
                values = {} if problem else _named(names, cells, numbers)
                yield Row(number, values, problem, size=lines.length)
            except ValueError as error:
                yield Row(number, {}, str(error), ",".join(cells)[:_MOST_SHOWN])
    finally:
        text.detach()  # The caller opened the file, and closes it.


def _named(names: list[str], cells: list[str], numbers: Sequence[str]) -> dict[str, Any]:
    """The values of a line by column; an empty cell is none."""
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells; expected {len(names)}")
    values: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    for name in numbers:
        if name in values and not NUMBER.fullmatch(values[name]):
            raise ValueError(f"{name} {values[name]!r:.80} is no number")
        if name in values:
            values[name] = Decimal(values[name])
    return values


class _RecordLines:
    """The lines of a CSV; too many for one record, or one that is too long, are an error of the CSV."""

    def __init__(self, text: TextIO) -> None:
        self._lines = _whole_lines(text)
        self.length = 0
        """Length of the lines of this record so far."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, is_whole = next(self._lines)
        self.length += len(line)
        if not is_whole or self.length > MAX_BODY_BYTES:
            raise csv.Error(_TOO_LONG)
        return line


def _cells(reader: Iterable[list[str]], lines: _RecordLines) -> Iterator[tuple[list[str], str]]:
    cells = iter(reader)
    while True:
        lines.length = 0
        try:
            found = next(cells)
        except StopIteration:
            return
        except csv.Error as error:
            yield [], f"no CSV: {error}"
            continue
        if found:
            yield found, ""


def _whole_lines(file: IO[AnyStr]) -> Iterator[tuple[AnyStr, bool]]:
    """The lines of a file; of one that is too long, how it begins: a small file may unpack into one of gigabytes."""
    most = MAX_BODY_BYTES + len("\r\n")
    while line := file.readline(most):
        is_whole = len(line.rstrip("\r\n" if isinstance(line, str) else b"\r\n")) <= MAX_BODY_BYTES
        yield line, is_whole
        while not is_whole and line and not line.endswith(("\n", "\r") if isinstance(line, str) else b"\n"):
            line = file.readline(most)


def _decompressed(file: BinaryIO) -> BinaryIO:
    # Peeking, not seeking: it may be a pipe.
    peeked = cast("io.BufferedReader", file).peek(len(_GZIP_MAGIC))
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if peeked.startswith(_GZIP_MAGIC) else file
