"""Event times: from epoch seconds, epoch milliseconds or ISO 8601 to whole seconds since 1970 UTC."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynamodb_counters._items.conversions import converted, value_text
from dynamodb_counters._items.decimals import parse_number
from dynamodb_counters._timeline.times import DAY, FIRST_SECOND, LAST_SECOND
from dynamodb_counters.errors import MalformedImageError

# 10^11 is the year 5138 in seconds and 1973 in milliseconds: no plausible event is on the wrong side.
_FIRST_MILLISECONDS: Final = 10**11
_FIRST_MICROSECONDS: Final = 10**14
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FINER: Final = re.compile(r"[.,]\d{6}(\d*[1-9])")
_LEAP: Final = re.compile(r":60([.,]\d+)?([Zz]|[+-].*)\Z", re.DOTALL)


def event_seconds(value: Mapping[str, Any]) -> int:
    """The time of a typed attribute in whole seconds, rounded down; numbers from 10^11 on are milliseconds."""
    # A number in a key is both.
    seconds = _iso_seconds(value["S"]) if "S" in value and "N" not in value else _number_seconds(value)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise MalformedImageError(f"{value_text(value)} is not in the years 1 to 9999 of UTC")
    return seconds


def canonical_time(text: str) -> str:
    """The text that its moment has as a `datetime`; digits finer than microseconds stay, as events may differ in them.

    >>> canonical_time("2026-11-20T11:00:00.000+01:00"), canonical_time("2026-11-20T10:00:00.0000001Z")
    ('2026-11-20T10:00:00Z', '2026-11-20T10:00:00.0000001Z')
    """
    found, finer = str(converted("time", _moment(text))), _FINER.search(text)
    if finer is None:
        return found
    return f"{found[:-1]}{'' if '.' in found else '.000000'}{finer[1]}Z"


def sortable_time(text: str) -> str:
    """A canonical text with nine digits of a second, so that texts sort as their moments.

    >>> sortable_time("2026-11-20T10:00:00Z")
    '2026-11-20T10:00:00.000000000Z'
    """
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction:0<9}Z"


def _moment(text: str) -> datetime:
    try:
        # RFC 3339 allows a small z, Python does not.
        moment = datetime.fromisoformat(f"{text[:-1]}Z" if text.endswith("z") else text)
    except ValueError:
        reason = "is a leap second, which no count can hold" if _LEAP.search(text) else "is not an ISO 8601 time"
        raise MalformedImageError(f"{text!r:.80} {reason}") from None
    if moment.tzinfo is None:
        hint = "so its moment is ambiguous; write ...Z or +02:00"
        raise MalformedImageError(f"{text!r:.80} has no offset from UTC, {hint}")
    return moment


def _iso_seconds(text: str) -> int:
    moment = _moment(text)
    # Not timestamp(): far from 1970, a float rounds the last microsecond of a second up to the next.
    since = moment - _EPOCH
    return since.days * DAY + since.seconds


def _number_seconds(value: Mapping[str, Any]) -> int:
    text = value.get("N")
    if text is None:
        raise MalformedImageError(f"{value_text(value)} is not a time: expected a string or a number")
    try:
        number = parse_number(text)
    except ValueError as error:
        raise MalformedImageError(str(error)) from None
    if -_FIRST_MILLISECONDS < number < _FIRST_MILLISECONDS:
        return math.floor(number)
    if -_FIRST_MICROSECONDS < number < _FIRST_MICROSECONDS:
        return math.floor(number) // 1000
    raise MalformedImageError(f"{number} is neither epoch seconds nor milliseconds")
