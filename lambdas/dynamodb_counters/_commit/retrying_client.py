"""Requests of an invocation are repeated while what they meet may pass, such as throttling, and while there is time.

A batch that failed instead would be delivered again, and cut in two: more writes for a table that is busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._clients import may_pass
from dynamodb_counters._table import Table, time_left


class RetryingClient:
    """The client of invocations, each of which ends at its deadline."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def has_time(self) -> bool:
        return time_left(self._table.clock()) >= LONGEST_REQUEST

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table.client, name)
        if name in ("exceptions", "meta"):
            return found
        return lambda **request: self._send(found, request)

    def _send(self, send: Callable[..., Any], request: dict[str, Any]) -> Any:
        failure: Exception = TimeoutError("the invocation's time is nearly up")
        for _ in self._table.tries(None):
            if not self.has_time():
                break
            try:
                return send(**request)
            except (ClientError, BotoCoreError) as error:
                if not may_pass(error):
                    raise
                failure = error
        raise failure
