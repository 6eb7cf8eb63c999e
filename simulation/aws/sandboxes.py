"""Sandboxes: one freezes with its threads once its invocation has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from dynamodb_counters._table import CONCURRENCY
from simulation.aws.rule import Rule

_LONGEST_SECONDS: Final = 10

THREADS_FREEZE: Final = Rule(
    "a sandbox freezes with its threads",
    "Background processes or callbacks initiated by your Lambda function that did not complete when the function "
    "ended resume if AWS Lambda chooses to reuse the execution context.",
    "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html",
    switch="simulation.aws.sandboxes.FrozenThreads(frozen)",
    guard="an invocation that fails leaves its threads behind",
)


class FrozenThreads:
    """A hook of a client: the caller's own first request of an operation fails, once so many others are `frozen`."""

    def __init__(self, operation: str, error: type[BaseException], frozen: int = CONCURRENCY - 1) -> None:
        self._operation, self._error, self._frozen = operation, error, frozen
        self._thawed, self._held, self._first = threading.Event(), threading.Semaphore(0), threading.Lock()

    def __call__(self, name: str, send: Callable[[], Any], _request: dict[str, Any]) -> Any:
        if name != self._operation or self._thawed.is_set():
            return send()
        is_own = not threading.current_thread().name.startswith("dynamodb")
        if is_own and self._first.acquire(blocking=False):
            for _number in range(self._frozen):
                assert self._held.acquire(timeout=_LONGEST_SECONDS)
            raise self._error
        if self._frozen:
            self._held.release()
            assert self._thawed.wait(_LONGEST_SECONDS)
        return send()

    def thaw(self) -> None:
        self._thawed.set()
