"""Event times: from epoch seconds, epoch milliseconds or ISO 8601 to whole seconds since 1970 UTC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynamodb_counters._items.decimals import parse_number
from dynamodb_counters._timeline.times import DAY, FIRST_SECOND, LAST_SECOND
from dynamodb_counters.errors import MalformedImageError

# 10^11 is the year 5138 in seconds and 1973 in milliseconds: no plausible event is on the wrong side.
_FIRST_MILLISECONDS: Final = 10**11
_FIRST_MICROSECONDS: Final = 10**14
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def event_seconds(value: Mapping[str, Any]) -> int:
    """The time of a typed attribute in whole seconds, rounded down; numbers from 10^11 on are milliseconds."""
    # A number in a key is both.
    seconds = _iso_seconds(value["S"]) if "S" in value and "N" not in value else _number_seconds(value)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise MalformedImageError(f"{_content(value)!r:.80} is not in the years 1 to 9999 of UTC")
    return seconds


def _iso_seconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedImageError(f"{text!r:.80} is not an ISO 8601 time") from None
    if moment.tzinfo is None:
        hint = "so its moment is ambiguous; write ...Z or +02:00"
        raise MalformedImageError(f"{text!r:.80} has no offset from UTC, {hint}")
    # Not timestamp(): far from 1970, a float rounds the last microsecond of a second up to the next.
    since = moment - _EPOCH
    return since.days * DAY + since.seconds


def _number_seconds(value: Mapping[str, Any]) -> int:
    text = value.get("N")
    if text is None:
        raise MalformedImageError(f"{_content(value)!r:.80} is not a time: expected a string or a number")
    try:
        number = parse_number(text)
    except ValueError as error:
        raise MalformedImageError(str(error)) from None
    if -_FIRST_MILLISECONDS < number < _FIRST_MILLISECONDS:
        return math.floor(number)
    if -_FIRST_MICROSECONDS < number < _FIRST_MICROSECONDS:
        return math.floor(number) // 1000
    raise MalformedImageError(f"{number} is neither epoch seconds nor milliseconds")


def _content(value: Mapping[str, Any]) -> Any:
    return next(iter(value.values()), None)
