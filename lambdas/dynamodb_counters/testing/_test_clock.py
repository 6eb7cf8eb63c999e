"""The time of counters in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from dynamodb_counters.errors import InvalidArgumentError


class TestClock:
    """A clock that moves only by `advance`; call it for seconds since 1970.

    `counters_in_memory` makes it: ``counters.clock``.
    """

    __test__ = False
    """It is no test, whatever pytest makes of its name."""

    def __init__(self, now: datetime, expire: Callable[[float], None]) -> None:
        if not isinstance(now, datetime) or now.tzinfo is None:
            raise InvalidArgumentError("now", now, "a datetime with a time zone")
        self._seconds = now.timestamp()
        self._expire = expire

    def __call__(self) -> float:
        return self._seconds

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.fromtimestamp(self._seconds, UTC)

    def advance(self, duration: timedelta) -> None:
        """Let time pass; items whose TTL is over on the way expire at their time, and that is counted.

        DynamoDB itself may take days to delete an expired item. Reads never count one that is still there.

        Parameters
        ----------
        duration : timedelta
            How far; not negative.

        Raises
        ------
        InvalidArgumentError
            If time would go back.
        """
        if not isinstance(duration, timedelta) or duration < timedelta(0):
            raise InvalidArgumentError("duration", duration, "a timedelta that is not negative")
        self._expire(self._seconds + duration.total_seconds())

    def _set(self, seconds: float) -> None:
        self._seconds = max(self._seconds, seconds)
