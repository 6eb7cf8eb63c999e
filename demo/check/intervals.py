"""The interval that windows of the last 24 hours cover."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple


class Interval(NamedTuple):
    """From `start` up to, not including, `end`."""

    start: datetime
    end: datetime


def last_day(moment: datetime) -> Interval:
    """Return the 24 hours that end with a moment's minute."""
    end = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Interval(end - timedelta(hours=24), end)
