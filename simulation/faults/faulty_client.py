"""What can go wrong with a store call, and a client it goes wrong with."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from simulation.dynamodb.client import Paginator
from simulation.dynamodb.client_errors import failure
from simulation.faults.actors import Crashed

_ENDPOINT: Final = "http://harness"
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


def _never(_: Any) -> None:
    raise AssertionError("a fault that needs virtual time was drawn without any")


@dataclass(eq=False)
class FaultyClient:
    """A client whose every call meets the `Fault` that `decide` draws for its operation.

    `postpone` takes a request to be applied later; `delay` the seconds a call was slow; `rng` decides error codes.
    """

    client: Any
    decide: Callable[[str], Fault]
    rng: random.Random
    postpone: Callable[[Callable[[], Any]], None] = _never
    delay: Callable[[float], None] = _never

    def __post_init__(self) -> None:
        self.exceptions, self.meta = self.client.exceptions, self.client.meta

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.client, name)
        operation = name.title().replace("_", "")
        return lambda **request: self._call(operation, lambda: call(**request))

    def get_paginator(self, operation: str) -> Paginator:
        assert operation == "query"
        return Paginator(self.query)

    def _call(self, operation: str, send: Callable[[], Any]) -> Any:  # noqa: C901
        match self.decide(operation):
            case Fault.NONE:
                return send()
            case Fault.THROTTLED:
                raise failure(operation, self.rng.choice(_THROTTLED))
            case Fault.INTERNAL:
                raise failure(operation, "InternalServerError")
            case Fault.LOST_ACK:
                _ignored(send)
                raise self._lost(operation)
            case Fault.RETRIED:
                _ignored(send)
                return self._call(operation, send)
            case Fault.LATE:
                self.postpone(lambda: _ignored(send))
                raise ReadTimeoutError(endpoint_url=_ENDPOINT)
            case Fault.LATE_RETRIED:
                self.postpone(lambda: _ignored(send))
                return self._call(operation, send)
            case Fault.SLOW:
                self.delay(self.rng.uniform(1, 40))
                return send()
            case Fault.CRASH_BEFORE:
                raise Crashed
            case Fault.CRASH_AFTER:
                _ignored(send)
                raise Crashed

    def _lost(self, operation: str) -> Exception:
        return self.rng.choice(
            (
                failure(operation, "InternalServerError"),
                ReadTimeoutError(endpoint_url=_ENDPOINT),
                ConnectionClosedError(endpoint_url=_ENDPOINT),
            )
        )


@dataclass
class FaultPlan:
    """Draws a fault for a share of all calls, until its budget is used up, so that a schedule comes to an end."""

    rng: random.Random
    rate: float
    budget: int
    injected: Counter[str] = field(default_factory=Counter)

    def draw(self) -> Fault:
        if not self.happens(self.rate):
            return Fault.NONE
        fault = self.rng.choice(FAULTS)
        self.count(fault.value)
        return fault

    def happens(self, probability: float) -> bool:
        """Whether something goes wrong now; never again once the budget is used up."""
        return self.budget > 0 and self.rng.random() < probability

    def count(self, name: str) -> None:
        self.budget -= 1
        self.injected[name] += 1


def _ignored(send: Callable[[], Any]) -> None:
    # Whatever it answers, nobody is listening.
    try:
        send()
    except ClientError:
        return
