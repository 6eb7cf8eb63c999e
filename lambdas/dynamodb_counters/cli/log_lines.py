"""Lines of web servers' access logs: Common and Combined Log Format, column by column."""

from __future__ import annotations

import re
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final

from dynamodb_counters._items.conversions import converted

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


def log_request(line: str) -> dict[str, Any]:
    """The request that a line, without its line break, logs; ValueError for a line that could be read in two ways."""
    # The target stays as logged, escapes and percent codes included. Columns logged as `-` are left out.
    parts = _LINE.fullmatch(line)
    if parts is None or _CONTROL.search(line):
        raise ValueError("no line of an access log in common or combined format")
    who, rest = parts["who"].split(" "), _REST.fullmatch(parts["rest"])
    if len(who) != 3 or not _is_client(who[0]) or who[1] != "-" or not who[2] or _is_address(who[2]):  # noqa: PLR2004
        raise ValueError(f"{parts['who']!r:.80} before the time: expected an address, '-' and a user, a space between")
    if parts["request"] == "-":
        raise ValueError(f"it logs no request: the client sent none, and was answered {parts['status']!s:.80}")
    request = _REQUEST.fullmatch(parts["request"])
    if request is None:
        raise ValueError(f"the request {parts['request']!r:.80}: expected a method, a target and HTTP/ with a version")
    if re.fullmatch("[1-5][0-9]{2}", parts["status"]) is None or re.fullmatch("[0-9]+|-", parts["bytes"]) is None:
        raise ValueError(f"'{parts['status']} {parts['bytes']}' after the request: expected a status and a size")
    if rest is None:
        raise ValueError(f"{parts['rest']!r:.80} at the end: expected a referer and an agent in quotes, or nothing")
    found = {"client": who[0], "time": _utc(parts["time"]), **request.groupdict(), "status": int(parts["status"])}
    if parts["bytes"] != "-":
        found["bytes"] = int(parts["bytes"])
    optional = {"user": who[2], **rest.groupdict()}
    return found | {name: text for name, text in optional.items() if text not in (None, "", "-")}


def _is_client(text: str) -> bool:
    return _is_address(text) or _HOST.fullmatch(text) is not None


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _utc(text: str) -> str:
    """The text that its moment has as a `datetime`, so that a request and its line are one event."""
    parts = _TIME.fullmatch(text)
    try:
        if parts is not None and int(parts[3]) in _YEARS:
            month = _MONTHS.index(parts[2]) + 1
            return str(
                converted("time", datetime.fromisoformat(f"{parts[3]}-{month:02}-{parts[1]}T{parts[4]}{parts[5]}"))
            )
    except ValueError:
        pass
    raise ValueError(f"the time {text!r:.80}: expected one such as '20/Nov/2026:10:30:00 +0000'")
