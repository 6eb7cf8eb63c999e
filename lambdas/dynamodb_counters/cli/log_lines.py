"""Lines of web servers' access logs: Common and Combined Log Format."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

# The user may contain spaces. The request ends at the first quote followed by a status and a size, since not all
# servers escape quotes in it. The rest is ignored: real logs have truncated lines and extra fields.
_LINE: Final = re.compile(
    r"(?P<client>\S+) \S+ (?P<user>.+?) "
    r"\[(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<clock>\d\d:\d\d:\d\d) (?P<offset>[+-]\d\d[0-5]\d)\] "
    r'"(?P<request>(?:[^"\\]|\\.|"(?! \d{3} (?:\d+|-)(?:\s|$)))*)" (?P<status>\d{3}) (?P<bytes>\d+|-)'
    r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"(?=\s|$))?(?:\s.*)?',
    re.ASCII | re.DOTALL,
)
# A method is a token (RFC 9110, 5.6.2). The version may be missing: HTTP/0.9 had none.
_REQUEST: Final = re.compile(
    r"(?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+) (?P<target>.*?)(?: HTTP/\d+(?:\.\d+)?)?", re.ASCII | re.DOTALL
)
# Not strptime's %b, whose names change with the locale.
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# No server logged anything earlier or later, and windows at either end of Python's calendar cannot be computed.
_YEARS: Final = range(1970, 9999)
_OPTIONAL: Final = ("user", "referer", "agent")


def log_request(line: str) -> dict[str, Any] | None:
    """The request that a line, without its line break, logs; None when it is of neither format or holds no request."""
    # The target stays as logged, escapes and percent codes included. The time is converted to UTC, so that one instant
    # logged with two offsets is one time. Fields logged as ``-`` are left out.
    parts = _LINE.fullmatch(line)
    if parts is None:
        return None
    request = _REQUEST.fullmatch(parts["request"])
    time = _utc(parts)
    if request is None or time is None:
        return None
    found: dict[str, Any] = {
        "client": parts["client"],
        "time": time,
        "method": request["method"],
        "url": request["target"],
        "status": int(parts["status"]),
    }
    if parts["bytes"] != "-":
        found["bytes"] = int(parts["bytes"])
    return found | {name: parts[name] for name in _OPTIONAL if parts[name] not in (None, "", "-")}


def _utc(parts: re.Match[str]) -> str | None:
    try:
        month = _MONTHS.index(parts["month"]) + 1
        local = datetime.fromisoformat("{year}-{0:02}-{day}T{clock}{offset}".format(month, **parts.groupdict()))
        return local.astimezone(UTC).isoformat() if local.year in _YEARS else None
    except (ValueError, OverflowError):
        return None
