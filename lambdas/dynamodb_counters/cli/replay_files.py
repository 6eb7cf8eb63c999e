"""Files of events: JSON lines, CSV, access logs; plain or gzip."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
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
MOST_SHOWN: Final = 1000
_QUOTED: Final = r'"(?:[^"]|"")*+"'
_CELL: Final = re.compile(rf'({_QUOTED}|(?![ \t])[^",\r\n]*+(?<![ \t]))(,|\Z)')
_OPEN: Final = re.compile(rf'(?:(?:{_QUOTED}|[^",]*+),)*+"(?:[^"]|"")*+')
"""A line that ends within quotes."""
_NO_TEXT: Final = "bytes that are not UTF-8"
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


def rows(
    file: BinaryIO, kind: str, numbers: Sequence[str] = (), check: Callable[[Sequence[str]], None] = lambda _: None
) -> Iterator[Row]:
    """The records of an open file; empty lines are none. `numbers` are columns of a CSV, of which `check` takes all."""
    read = {"jsonl": _json_values, "log": _log_values}.get(kind)
    opened = _decompressed(file)
    try:
        yield from _csv_rows(opened, numbers, check) if read is None else _line_rows(opened, read)
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
            yield Row(number, problem=str(error), text=content[:MOST_SHOWN].decode("utf-8", errors="backslashreplace"))


def _json_values(line: bytes) -> dict[str, Any]:
    try:
        values = read_json(line.decode())
        if isinstance(values, dict):
            return values
        raise ValueError("expected a JSON object in each line")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON within the limits: {error}") from error


def _log_values(line: bytes) -> dict[str, Any]:
    try:
        return log_request(line.decode())
    except UnicodeDecodeError:
        raise ValueError(_NO_TEXT) from None


def _csv_rows(file: BinaryIO, numbers: Sequence[str], check: Callable[[Sequence[str]], None]) -> Iterator[Row]:
    text = io.TextIOWrapper(cast("Any", file), "utf-8-sig", errors="surrogateescape", newline="")
    records = _records(text)
    try:
        names = _cells(*next(records, ("", "")))
    except ValueError as error:
        raise click.UsageError(f"the first line of the CSV names no columns: {error}") from error
    if len(set(names)) < len(names) or not all(name and name == name.strip() for name in names):
        raise click.UsageError("the first line of a CSV names its columns, each once, without blanks around them")
    if unknown := [name for name in numbers if name not in names]:
        raise click.UsageError(f"there is no column {unknown[0]!r}; the columns are: {', '.join(names)}")
    check(names)
    try:
        for number, (record, problem) in enumerate(records, start=1):
            try:
                yield Row(number, _named(names, _cells(record, problem), numbers), size=len(record))
            except ValueError as error:
                shown = record[:MOST_SHOWN].encode(errors="surrogateescape")
                yield Row(number, problem=str(error), text=shown.decode(errors="backslashreplace"))
    finally:
        text.detach()  # The caller opened the file, and closes it.


def _named(names: list[str], cells: list[str], numbers: Sequence[str]) -> dict[str, Any]:
    """The values of a record by column; an empty cell is none."""
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells; expected {len(names)}")
    values: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    for name in numbers:
        if name in values and not NUMBER.fullmatch(values[name]):
            raise ValueError(f"{name} {values[name]!r:.80} is no number")
        if name in values:
            values[name] = Decimal(values[name])
    return values


def _records(text: TextIO) -> Iterator[tuple[str, str]]:
    """The records of a CSV that are not empty; of one that is too long its beginning, and the reason."""
    lines = _whole_lines(text)
    for line, is_line_whole in lines:
        is_whole, parts, length, quotes = is_line_whole, [line], len(line), line.count('"')
        last = line
        while quotes % 2 and _OPEN.fullmatch(last):
            more, is_more_whole = next(lines, ("", False))
            # It begins within quotes.
            last, length, quotes = f'"{more}', length + len(more), quotes + more.count('"')
            is_whole &= is_more_whole
            if length <= MAX_BODY_BYTES:
                parts.append(more)
            if not more:
                break
        record = "".join(parts).removesuffix("\n").removesuffix("\r")
        if record:
            yield record, "" if is_whole and length <= MAX_BODY_BYTES + len("\r\n") else _TOO_LONG


def _cells(record: str, problem: str) -> list[str]:
    """The cells of a record by RFC 4180, which has quotes around a whole cell only; blanks need them."""
    if problem:
        raise ValueError(problem)
    if not _is_unicode(record):
        raise ValueError(_NO_TEXT)
    cells, end, separator = list[str](), 0, ","
    while separator:
        found = _CELL.match(record, end)
        if found is None:
            raise ValueError(f"{record[end:]!r:.80} is no CSV: expected a cell without blanks around it, or in quotes")
        cell, separator = found.groups()
        cells.append(cell[1:-1].replace('""', '"') if cell.startswith('"') else cell)
        end = found.end()
    return cells


def _is_unicode(text: str) -> bool:
    """Whether a text had no byte that is not UTF-8: these were read as lone surrogates."""
    return text.isascii() or not any("\udc80" <= character <= "\udcff" for character in text)


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
