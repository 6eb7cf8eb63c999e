"""Faults of store calls, and a client that has them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from simulation.faults.actors import Crashed
from simulation.memory.client_errors import failure
from simulation.memory.memory_client import paginator

_ENDPOINT: Final = "http://harness"
REGISTRATION: Final = " of a registration"
_REFUSED: Final = ("ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict", "InternalServerError")
_THROTTLED: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")


class Fault(Enum):
    NONE = "none"
    THROTTLED = "throttled"
    """Refused, not applied."""
    CONFLICT = "conflict with a transaction"
    """Refused, not applied."""
    INTERNAL = "internal error"
    """Failed, not applied."""
    LOST_ACK = "lost acknowledgement"
    """Applied, but the caller sees an error."""
    RETRIED = "lost acknowledgement, retried by the client"
    """Applied, lost, and sent again by botocore, unless a handler of the caller's stops it."""
    LATE = "applied late"
    """The caller gives up; the request is applied some time later."""
    LATE_RETRIED = "applied late, after the client's retry"
    """As before, but botocore sends it again: applied now and once more later."""
    SLOW = "slow"
    """Applied, but much of the invocation's time is gone."""
    CRASH_BEFORE = "crash before a call"
    CRASH_AFTER = "crash after a call"
    CRASH_DURING = "crash during a call, applied late"


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
        self.exceptions = self.client.exceptions
        self._handlers: dict[str, Callable[..., Any]] = {}
        self.meta = SimpleNamespace(events=SimpleNamespace(register=self._register))

    def _register(self, event: str, handler: Callable[..., Any], **_: Any) -> None:
        self._handlers[event] = handler

    def _needs_retry(self, operation: str) -> None:
        """Ask the caller's handlers, as botocore does before it sends a request again; one that raises stops it."""
        handler = self._handlers.get(f"needs-retry.dynamodb.{operation}")
        if handler is not None:
            error = self._loss(operation)
            response = (None, error.response) if isinstance(error, ClientError) else None
            caught = None if response else error
            handler(response=response, caught_exception=caught, operation=SimpleNamespace(name=operation))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.client, name)
        operation = name.title().replace("_", "")

        def method(**request: Any) -> Any:
            about = operation + REGISTRATION if _registers(request) else operation
            send = partial(self._some, call) if operation == "BatchExecuteStatement" else call
            return self._call(operation, about, lambda: send(**request))

        return method

    def get_paginator(self, operation: str) -> Any:
        return paginator(getattr(self, operation))

    def _some(self, call: Callable[..., Any], *, Statements: list[Any], **request: Any) -> Any:  # noqa: N803
        """Send statements, of which a table that is near its limits refuses some."""
        error = {"Code": self.rng.choice(_REFUSED), "Message": "injected"} if self.rng.random() < 0.2 else None
        refused = [bool(error) and self.rng.random() < 0.3 for _ in Statements]
        statements = [statement for statement, is_refused in zip(Statements, refused, strict=True) if not is_refused]
        answer = call(Statements=statements, **request) if statements else {"Responses": []}
        answers = iter(answer["Responses"])
        return {**answer, "Responses": [{"Error": error} if is_refused else next(answers) for is_refused in refused]}

    def _call(self, operation: str, about: str, send: Callable[[], Any]) -> Any:
        fault = self.decide(about)
        if fault in (Fault.LOST_ACK, Fault.RETRIED, Fault.CRASH_AFTER):
            _ignored(send)
        elif fault in (Fault.LATE, Fault.LATE_RETRIED, Fault.CRASH_DURING):
            self.postpone(lambda: _ignored(send))
        match fault:
            case Fault.THROTTLED:
                raise failure(operation, self.rng.choice(_THROTTLED))
            case Fault.CONFLICT:
                raise _conflict(operation)
            case Fault.INTERNAL:
                raise failure(operation, "InternalServerError")
            case Fault.LOST_ACK | Fault.LATE:
                raise self._loss(operation)
            case Fault.RETRIED | Fault.LATE_RETRIED:
                self._needs_retry(operation)
                return self._call(operation, about, send)
            case Fault.CRASH_BEFORE | Fault.CRASH_AFTER | Fault.CRASH_DURING:
                raise Crashed
            case Fault.SLOW:
                self.delay(self.rng.uniform(1, 40))
        return send()

    def _loss(self, operation: str) -> Exception:
        timeout, closed = ReadTimeoutError(endpoint_url=_ENDPOINT), ConnectionClosedError(endpoint_url=_ENDPOINT)
        return self.rng.choice((failure(operation, "InternalServerError"), timeout, closed))


@dataclass
class FaultPlan:
    """Draws a fault for a share of all calls, until its budget is used up, so that a schedule comes to an end.

    `registrations` is the share of writes of the registry; nine in ten of the next `crowded` calls are refused.
    """

    rng: random.Random
    rate: float
    budget: int
    injected: Counter[str] = field(default_factory=Counter)
    registrations: float = 0.0
    crowded: int = 0

    def draw(self, about: str = "") -> Fault:
        if self.crowded:
            self.crowded -= 1
            if self.rng.random() < 0.9:
                refused = self.rng.choice((Fault.THROTTLED, Fault.CONFLICT))
                self.injected[f"{refused.value}, as nine in ten calls"] += 1
                return refused
        registers = about.endswith(REGISTRATION)
        if not self._happens(max(self.rate, self.registrations) if registers else self.rate):
            return Fault.NONE
        fault = self.rng.choice(FAULTS)
        self.injected[fault.value + REGISTRATION if registers else fault.value] += 1
        return fault

    def strikes(self, name: str, probability: float = 1) -> bool:
        """Return whether something other than a call goes wrong now."""
        if happens := self._happens(probability):
            self.injected[name] += 1
        return happens

    def _happens(self, probability: float) -> bool:
        happens = self.budget > 0 and self.rng.random() < probability
        self.budget -= happens
        return happens


def _registers(request: dict[str, Any]) -> bool:
    """Return whether a request writes items of the registry."""
    items = [write["Put"]["Item"] for write in request.get("TransactItems", ()) if "Put" in write]
    return any(item["sk"]["S"].startswith("DECLARED") for item in items if "sk" in item)


def _conflict(operation: str) -> ClientError:
    if operation != "TransactWriteItems":
        return failure(operation, "TransactionConflictException")
    reasons = [{"Code": "TransactionConflict", "Message": "injected"}]
    return failure(operation, "TransactionCanceledException", CancellationReasons=reasons)


def _ignored(send: Callable[[], Any]) -> None:
    with suppress(ClientError):
        send()
