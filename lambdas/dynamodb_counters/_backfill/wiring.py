"""Wiring of a run: its feeds, looked up from its table, and DynamoDB's time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from dynamodb_counters._assumptions import KNOWN_AT_ONCE, ONE_CLOCK
from dynamodb_counters._backfill.feeds import feeds_of
from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._control.deployment_items import history_key
from dynamodb_counters._table import Table

ASKED_EVERY: Final = 5.0
"""Seconds; a monotonic clock measures the time in between."""

Kind = TypeVar("Kind", bound=Runner)


class ServiceTime:
    """The time in the headers of DynamoDB's answers, by which records are created; the local time if they have none."""

    def __init__(self, table: Table, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._monotonic = monotonic
        self._ahead = self._asked_at = -math.inf

    def __call__(self) -> float:
        if self._monotonic() >= self._asked_at + ASKED_EVERY:
            date = self._date()
            if date is None:
                return self._table.clock()
            # The date is carried on from when it has come: from when it was asked for, it would run ahead.
            self._asked_at = self._monotonic()
            self._ahead = max(self._ahead, date - self._asked_at)
        return self._monotonic() + self._ahead

    def _date(self) -> float | None:
        answer = self._table.client.get_item(TableName=self._table.name, Key=history_key())
        header = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        try:
            return parsedate_to_datetime(header).timestamp() if header else None
        except ValueError:
            return None


def make_runner(
    kind: type[Kind], table: Table, streams: Any, *, now: Callable[[], float] | None = None, **options: Any
) -> Kind:
    """Make what works on a run; `now` is DynamoDB's time if not its own."""
    feeds = feeds_of(table, streams)
    if feeds.clocks == ONE_CLOCK:
        options["open_after"] = KNOWN_AT_ONCE
    return kind(table=table, feeds=feeds, now=now or ServiceTime(table), **options)
