"""Views read from a web server's access log: Common or Combined Log Format, plain or gzip."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, Final, cast

from demo.blog.traffic import View
from demo.options import InputError

MAX_LINE_BYTES: Final = 64 * 1024
"""A longer line counts as unparsable: web servers truncate a request line long before."""

# The request ends at the first quote followed by two columns, since not all servers escape quotes in it.
_LINE: Final = re.compile(
    r'(?P<who>[^["]*) \[(?P<time>[^]"]*)] "(?P<request>(?:[^"\\]|\\.|"(?! \S+ \S+(?: "|\Z)))*)" '
    r"(?P<status>\S+) (?P<bytes>\S+)(?P<rest>.*)",
    re.DOTALL,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_TIME: Final = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d\d[0-5]\d)", re.ASCII)
# A method is a token (RFC 9110, 5.6.2), a target one of four forms (RFC 9112, 3.2). HTTP/0.9 had no version.
_REQUEST: Final = re.compile(
    r"(?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+) (?P<url>/\S*|\*|[A-Za-z][A-Za-z0-9+.-]*://\S+|\S+:\d+)"
    r"(?: HTTP/\d(?:\.\d)?)?",
    re.ASCII,
)
_REST: Final = re.compile(r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?', re.DOTALL)
# Not strptime's %b, whose names change with the locale.
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# No server logged anything earlier or later, and windows at either end of Python's calendar cannot be computed.
_YEARS: Final = range(1970, 9999)

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


class LogError(InputError):
    """The log cannot be read. The message names the file and the cause."""


def parse_line(line: str) -> View | None:
    """Parse one line, without its line break; None for one that holds no request, or could be read in two ways."""
    # The target stays as logged, escapes and percent codes included.
    parts = _LINE.fullmatch(line)
    if parts is None or _CONTROL.search(line):
        return None
    who, request, time = parts["who"].split(" "), _REQUEST.fullmatch(parts["request"]), _utc(parts["time"])
    if len(who) != 3 or not _is_client(who[0]) or who[1] != "-" or not who[2] or _is_address(who[2]):  # noqa: PLR2004
        return None
    if request is None or time is None or _REST.fullmatch(parts["rest"]) is None:
        return None
    if re.fullmatch("[1-5][0-9]{2}", parts["status"]) is None or re.fullmatch("[0-9]+|-", parts["bytes"]) is None:
        return None
    return View(request["url"], time, who[0], None if parts["bytes"] == "-" else int(parts["bytes"]))


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


def _is_client(text: str) -> bool:
    return _is_address(text) or _HOST.fullmatch(text) is not None


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _utc(text: str) -> str | None:
    """Return the text that its moment has as a `datetime`, so that a request and its line are one event."""
    parts = _TIME.fullmatch(text)
    if parts is None or parts[2] not in _MONTHS or int(parts[3]) not in _YEARS:
        return None
    month = _MONTHS.index(parts[2]) + 1
    try:
        moment = datetime.fromisoformat(f"{parts[3]}-{month:02}-{parts[1]}T{parts[4]}{parts[5]}")
    except ValueError:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
