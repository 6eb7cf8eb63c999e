"""What can go wrong with a store call, and a client it goes wrong with."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.harness.actors import Crashed
from tests.harness.failures import failure
from tests.harness.queries import Paginator

_ENDPOINT: Final = "http://harness"
_OPERATIONS: Final = {
    "get_item": "GetItem",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "transact_write_items": "TransactWriteItems",
    "batch_execute_statement": "BatchExecuteStatement",
    "batch_get_item": "BatchGetItem",
    "query": "Query",
}
_THROTTLED: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")


class Fault(Enum):
    """What becomes of one call."""

    NONE = "none"
    THROTTLED = "throttled"
    """Refused, not applied."""
    INTERNAL = "internal error"
    """Failed, not applied."""
    LOST_ACK = "lost acknowledgement"
    """Applied, but the caller sees an error."""
    RETRIED = "lost acknowledgement, retried by the client"
    """Applied, lost, and sent again by botocore: the caller sees the second answer."""
    LATE = "applied late"
    """The caller gives up; the request is applied some time later."""
    LATE_RETRIED = "applied late, after the client's retry"
    """As before, but botocore sends it again: applied now and once more later."""
    SLOW = "slow"
    """Applied, but much of the invocation's time is gone."""
    CRASH_BEFORE = "crash before a call"
    CRASH_AFTER = "crash after a call"


FAULTS: Final = tuple(fault for fault in Fault if fault is not Fault.NONE)


class FaultyClient:
    """A client whose every call is decided about by somebody else.

    Parameters
    ----------
    client : object
        The client that does the work.
    decide : callable
        Told the operation before each request, gives the `Fault` it meets.
    postpone : callable
        Takes a request that is to be applied later.
    delay : callable
        Told by how many seconds a call was slow.
    rng : random.Random
        Decides about error codes.
    """

    def __init__(
        self,
        client: Any,
        decide: Callable[[str], Fault],
        postpone: Callable[[Callable[[], Any]], None],
        delay: Callable[[float], None],
        rng: random.Random,
    ) -> None:
        self._client = client
        self._decide = decide
        self._postpone = postpone
        self._delay = delay
        self._random = rng
        self.exceptions = client.exceptions

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _OPERATIONS[name]
        call = getattr(self._client, name)
        return lambda **request: self._call(operation, lambda: call(**request))

    def get_paginator(self, operation: str) -> Paginator:
        """See boto3."""
        assert operation == "query"
        return Paginator(self.query)

    def _call(self, operation: str, send: Callable[[], Any]) -> Any:  # noqa: C901
        match self._decide(operation):
            case Fault.NONE:
                return send()
            case Fault.THROTTLED:
                raise failure(operation, self._random.choice(_THROTTLED))
            case Fault.INTERNAL:
                raise failure(operation, "InternalServerError")
            case Fault.LOST_ACK:
                _ignored(send)
                raise self._lost(operation)
            case Fault.RETRIED:
                _ignored(send)
                return self._call(operation, send)
            case Fault.LATE:
                self._postpone(lambda: _ignored(send))
                raise ReadTimeoutError(endpoint_url=_ENDPOINT)
            case Fault.LATE_RETRIED:
                self._postpone(lambda: _ignored(send))
                return self._call(operation, send)
            case Fault.SLOW:
                self._delay(self._random.uniform(1, 40))
                return send()
            case Fault.CRASH_BEFORE:
                raise Crashed
            case Fault.CRASH_AFTER:
                _ignored(send)
                raise Crashed

    def _lost(self, operation: str) -> Exception:
        return self._random.choice(
            (
                failure(operation, "InternalServerError"),
                ReadTimeoutError(endpoint_url=_ENDPOINT),
                ConnectionClosedError(endpoint_url=_ENDPOINT),
            )
        )


class FaultPlan:
    """Draws faults from a seed until it has drawn enough.

    Parameters
    ----------
    rng : random.Random
        The seed.
    rate : float
        How many calls of one meet a fault.
    budget : int
        How many faults at most, so that a schedule comes to an end.

    Attributes
    ----------
    injected : Counter
        Faults by name, those between calls included.
    """

    def __init__(self, rng: random.Random, rate: float, budget: int) -> None:
        self._random = rng
        self._rate = rate
        self._budget = budget
        self.injected: Counter[str] = Counter()

    def draw(self) -> Fault:
        """Draw what happens to a call.

        Returns
        -------
        Fault
            Mostly none.
        """
        if not self.happens(self._rate):
            return Fault.NONE
        fault = self._random.choice(FAULTS)
        self.count(fault.value)
        return fault

    def happens(self, probability: float) -> bool:
        """Tell whether something is to go wrong now.

        Parameters
        ----------
        probability : float
            Of it.

        Returns
        -------
        bool
            Never True again once the budget is used up.
        """
        return self._budget > 0 and self._random.random() < probability

    def count(self, name: str) -> None:
        """Take note of a fault.

        Parameters
        ----------
        name : str
            Its kind.
        """
        self._budget -= 1
        self.injected[name] += 1


def _ignored(send: Callable[[], Any]) -> None:
    # Whatever it answers, nobody is listening.
    try:
        send()
    except ClientError:
        return
