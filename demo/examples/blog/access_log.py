"""Views read from a web server's access log: Common or Combined Log Format, plain or gzip."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import BinaryIO, Final, cast

from demo.examples.blog.traffic import View
from demo.options import InputError

MAX_LINE_BYTES: Final = 64 * 1024
"""A longer line counts as unparsable: web servers truncate a request line long before."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"

# The user may contain spaces. The request ends at the first quote followed by a status and a size, since not all
# servers escape quotes in it. What follows the size is ignored: real logs have truncated lines and extra fields.
_LINE: Final = re.compile(
    r"(?P<client>\S+) \S+ .+? "
    r"\[(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<clock>\d\d:\d\d:\d\d) (?P<offset>[+-]\d{4})\] "
    r'"(?P<request>(?:[^"\\]|\\.|"(?! \d{3} (?:\d+|-)(?:\s|$)))*)" \d{3} (?:\d+|-)(?:\s.*)?',
    re.ASCII | re.DOTALL,
)
# A method is a token (RFC 9110, 5.6.2). The version may be missing: HTTP/0.9 had none.
_REQUEST: Final = re.compile(
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]+ (?P<target>.*?)(?: HTTP/\d+(?:\.\d+)?)?", re.ASCII | re.DOTALL
)
# Not strptime's %b, whose names change with the locale.
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTES_AN_HOUR: Final = 60
# No server logged anything earlier or later, and windows at either end of Python's calendar cannot be computed.
_YEARS: Final = range(1970, 9999)


class LogError(InputError):
    """The log cannot be read. The message names the file and the cause."""


def parse_line(line: str) -> View | None:
    """Parse one line, without its line break; None when it is of neither format or holds no request.

    The target stays as logged, escapes and percent codes included. The time is converted to UTC, so that one instant
    logged with two offsets is one time.
    """
    parts = _LINE.fullmatch(line)
    if parts is None:
        return None
    request = _REQUEST.fullmatch(parts["request"])
    time = _utc(parts)
    if request is None or time is None:
        return None
    return View(request["target"], time, parts["client"])


def _utc(parts: re.Match[str]) -> str | None:
    hours, minutes = int(parts["offset"][1:3]), int(parts["offset"][3:])
    if parts["month"] not in _MONTHS or int(parts["year"]) not in _YEARS or minutes >= _MINUTES_AN_HOUR:
        return None
    month = _MONTHS.index(parts["month"]) + 1
    ahead = timedelta(hours=hours, minutes=minutes) * (-1 if parts["offset"][0] == "-" else 1)
    try:
        local = datetime.fromisoformat(f"{parts['year']}-{month:02}-{parts['day']}T{parts['clock']}")
        return local.replace(tzinfo=timezone(ahead)).astimezone(UTC).isoformat()
    except ValueError:
        return None


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
