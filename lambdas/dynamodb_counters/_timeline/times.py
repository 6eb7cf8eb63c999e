"""Moments as seconds since 1970-01-01T00:00Z, and the units they are counted in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from dynamodb_counters.errors import InvalidArgumentError

DAY: Final = 86_400
HOUR: Final = 3600
MINUTE: Final = 60

# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: buckets outside this range have no name.
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def seconds_of(argument: str, moment: datetime) -> float:
    """The seconds since 1970 of an aware datetime; a naive one is refused under the name `argument`."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidArgumentError(argument, moment, "a datetime with a time zone")
    return moment.timestamp()
