"""DynamoDB's time: records are created by it, and this machine's clock may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

from dynamodb_counters._control.deployment_items import history_key
from dynamodb_counters._table import Table

ASKED_EVERY: Final = 5.0
"""Seconds; a monotonic clock measures the time in between."""


class ServiceTime:
    """The time in the headers of DynamoDB's answers; the local time if they have none."""

    def __init__(self, table: Table, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._monotonic = monotonic
        self._told = 0.0
        self._told_at: float | None = None

    def __call__(self) -> float:
        if self._told_at is None or self._monotonic() >= self._told_at + ASKED_EVERY:
            date = self._date()
            if date is None:
                return self._table.clock()
            # The date is carried on from when it has come: from when it was asked for, it would run ahead.
            at = self._monotonic()
            self._told, self._told_at = max(date, self._carried_on(at)), at
        return self._carried_on(self._monotonic())

    def _carried_on(self, at: float) -> float:
        """The last answer's time, carried on to a monotonic time."""
        return 0.0 if self._told_at is None else self._told + at - self._told_at

    def _date(self) -> float | None:
        answer = self._table.client.get_item(TableName=self._table.name, Key=history_key())
        header = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        try:
            return parsedate_to_datetime(header).timestamp() if header else None
        except ValueError:
            return None
