"""Clients that answer from a script, or pass calls on and fail some of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from dynamodb_counters._control.registry import header_key
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Call = tuple[str, dict[str, Any]]

_OPERATIONS = {
    "batch_execute_statement",
    "batch_get_item",
    "delete_item",
    "get_item",
    "put_item",
    "query",
    "transact_write_items",
    "update_item",
}


def failure(code: str, operation: str = "Any", **extra: Any) -> ClientError:
    """The error a client raises when DynamoDB answers with this code."""
    response: Any = {"Error": {"Code": code, "Message": f"{code} by script"}, **extra}
    return ClientError(response, operation)


def cancelled(*codes: str) -> ClientError:
    """The error of a canceled transaction."""
    return failure("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


class ScriptedClient:
    """Answers each operation from its script, in order; any other call fails the test."""

    def __init__(self, **scripts: list[Any]) -> None:
        self._scripts: dict[str, Iterator[Any]] = {name: iter(script) for name, script in scripts.items()}
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        if name not in _OPERATIONS:
            raise AttributeError(name)

        def call(**arguments: Any) -> Any:
            if is_of_registry(arguments.get("Key")):
                return {}
            self.calls.append((name, arguments))
            answer = next(self._scripts[name], None)
            assert answer is not None, f"{name} was called more often than expected"
            if isinstance(answer, Exception):
                raise answer
            return answer(arguments) if callable(answer) else answer

        return call


def is_of_registry(key: Any) -> bool:
    """Whether a key is of an item of the registry, which a reader asks for before anything else."""
    header = header_key()
    return key is not None and key["pk"] == header["pk"] and key["sk"]["S"].startswith(header["sk"]["S"])


def no_fault(name: str, arguments: Mapping[str, Any]) -> None:
    """Let a call be."""


def fault(operation: str, code: str, text: str = "") -> Callable[[str, Mapping[str, Any]], None]:
    """A fault that fails each call of an operation whose arguments hold a text."""

    def fail(name: str, arguments: Mapping[str, Any]) -> None:
        if name == operation and text in repr(arguments):
            raise failure(code, operation)

    return fail


class FaultyClient:
    """Passes calls on to an engine's client, unless the fault of the moment says otherwise."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.calls: list[Call] = []
        self.before: Callable[[str, Mapping[str, Any]], None] = no_fault
        """Runs before each call; what it raises is what the call raises."""
        self.after: Callable[[str, Mapping[str, Any]], None] = no_fault
        """Runs after each call that was done; what it raises hides that it was done."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)
        if name not in _OPERATIONS:
            return real

        def call(**arguments: Any) -> Any:
            with self._lock:
                self.calls.append((name, arguments))
            self.before(name, arguments)
            answer = real(**arguments)
            self.after(name, arguments)
            return answer

        return call


def scripted_table(client: ScriptedClient, pauses: list[float] | None = None, *, now: float = 0.0) -> Table:
    """A table that answers from a script; its pauses take no time but are noted."""
    noted = pauses if pauses is not None else []
    return Table(
        "table",
        cast("DynamoDBClient", client),
        clock=VirtualClock(now),
        sleep=noted.append,
        jitter=lambda: 1.0,
    )
