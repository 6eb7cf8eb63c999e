"""A pool without threads, so that requests come in the same order in every run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from dynamodb_counters._table import Table


class OneByOne(Executor):
    """A thread pool without threads: everything runs in its order."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call the function at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


def one_by_one(table: Table) -> Table:
    """Let a table send its requests one after the other; return it."""
    vars(table)["pool"] = OneByOne()
    return table
