"""Requests of an invocation are repeated while what they meet may pass, such as throttling, and while there is time.

A batch that failed instead would be delivered again, and cut in two: more writes for a table that is busy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError, HTTPClientError

from dynamodb_counters._table import Table

RESERVE_SECONDS: Final = 12.0
"""No request starts with less time left: one that meets every retry of the client takes about that long."""

_PASSING: Final = frozenset(
    (
        "InternalServerError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    )
)
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html"""


class RetryingClient:
    """The client of one invocation at a time, which ends at its `deadline`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.deadline = math.inf

    def has_time(self) -> bool:
        return self.deadline - self._table.clock() >= RESERVE_SECONDS

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
            except (ClientError, HTTPClientError) as error:
                if not _may_pass(error):
                    raise
                failure = error
        raise failure


def _may_pass(error: ClientError | HTTPClientError) -> bool:
    if isinstance(error, HTTPClientError):
        return True
    response: Any = error.response
    reasons = {reason.get("Code", "None") for reason in response.get("CancellationReasons", ())} - {"None"}
    return response["Error"]["Code"] in _PASSING or bool(reasons and reasons <= _PASSING)
