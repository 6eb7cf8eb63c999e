"""Views read from a web server's access log: Common or Combined Log Format, plain or gzip."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from demo.blog.traffic import View
from demo.options import InputError
from dynamodb_counters.cli.log_lines import log_request

MAX_LINE_BYTES: Final = 64 * 1024
"""A longer line counts as unparsable: web servers truncate a request line long before."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


class LogError(InputError):
    """The log cannot be read. The message names the file and the cause."""


def parse_line(line: str) -> View | None:
    """Parse one line, without its line break; None when it is of neither format or holds no request."""
    try:
        found = log_request(line)
    except ValueError:
        return None
    return View(found["url"], found["time"], found["client"], found.get("bytes"))


def read_log(path: Path) -> Iterator[View | None]:
    r"""Parse a log line by line, None for each that cannot be parsed; gzip is recognized by content, not by name.

    Bytes that are not UTF-8 become `\xhh`, as web servers themselves write bytes that they consider unprintable.
    """
    try:
        with path.open("rb") as file:
            lines = _lines(_decompressed(file))
            first = next(lines, None)
            if first is None:
                return
            yield parse_line(first.removeprefix(_BYTE_ORDER_MARK))
            yield from map(parse_line, lines)
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise LogError(f"cannot read the log {path}: its gzip data is damaged or cut off ({error})") from error


def _decompressed(file: io.BufferedReader) -> BinaryIO:
    # Peeking, not seeking: the log may be a pipe.
    if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return file


def _lines(stream: BinaryIO) -> Iterator[str]:
    while chunk := stream.readline(MAX_LINE_BYTES):
        if len(chunk) == MAX_LINE_BYTES and not chunk.endswith(b"\n"):
            while chunk and not chunk.endswith(b"\n"):
                chunk = stream.readline(MAX_LINE_BYTES)
            yield ""
            continue
        yield chunk.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="backslashreplace")
