"""Ranges of sort keys that begin with a time: all texts that events of a span of time may have there. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from dynamodb_counters._items.escaping import LAST_CHARACTER

Range: TypeAlias = tuple[str, str]
"""First and last key."""

_DAYS: Final = ("%Y-%m-%d", "%Y%m%d", "%G-W%V", "%GW%V")
"""All ways in which ISO 8601 texts of a moment may begin, by the day or the week."""

_WIDEST_OFFSET: Final = timedelta(days=1)
_FIRST: Final = 10**9
_LAST: Final = 10**10
"""Between these, seconds since 1970 have ten digits, and milliseconds begin with the same ten."""


def time_ranges(prefix: str, start: float, end: float) -> list[Range]:
    """The ranges, in order and apart; all keys with the prefix where the span has no end, or times sort otherwise."""
    if not _FIRST + 86_400 <= start < end <= _LAST - 86_400:
        return [(prefix, prefix + LAST_CHARACTER)]
    earliest = datetime.fromtimestamp(start, UTC) - _WIDEST_OFFSET
    latest = datetime.fromtimestamp(end, UTC) + _WIDEST_OFFSET
    texts = [(f"{earliest:{form}}", f"{latest:{form}}") for form in _DAYS]
    found: list[Range] = []
    for low, high in sorted([*texts, (str(int(start)), str(int(end)))]):
        first, last = prefix + low, prefix + high + LAST_CHARACTER
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found
