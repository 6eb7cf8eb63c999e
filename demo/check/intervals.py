"""The interval that windows of the last 24 hours cover."""

from __future__ import annotations

from datetime import datetime, timedelta


def last_day(moment: datetime) -> tuple[datetime, datetime]:
    """Return the 24 hours that end with a moment's minute: from the first up to, not including, the second."""
    end = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return end - timedelta(hours=24), end
