"""A client that answers from a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from botocore.exceptions import ClientError

from dynamodb_counters._registry import header_key
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock
from simulation.memory.client_errors import failure

Call = tuple[str, dict[str, Any]]

_OPERATIONS = {"batch_execute_statement", "delete_item", "put_item", "transact_write_items", "update_item"}
_OPERATIONS |= {"batch_get_item", "get_item", "query"}


def cancelled(*codes: str) -> ClientError:
    """Return the error of a canceled transaction."""
    reasons = [{"Code": code} for code in codes]
    return failure("TransactWriteItems", "TransactionCanceledException", CancellationReasons=reasons)


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
    """Return whether a key is of an item of the registry, which a reader asks for before anything else."""
    header = header_key()
    return key is not None and key["pk"] == header["pk"] and key["sk"]["S"].startswith(header["sk"]["S"])


def scripted_table(client: ScriptedClient, pauses: list[float] | None = None, *, now: float = 0.0) -> Table:
    """Return a table that answers from a script; its pauses take no time but are noted."""
    noted = pauses if pauses is not None else []
    return Table("table", cast("Any", client), clock=VirtualClock(now), sleep=noted.append, jitter=lambda: 1.0)
