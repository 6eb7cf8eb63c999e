"""Clients with a hook: for a test that wants to be there when a request is sent, or lands."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

from dynamodb_counters._table import CONCURRENCY
from simulation.faults.actors import Crashed
from simulation.memory.memory_client import paginator

Hook: TypeAlias = Callable[[str, Callable[[], Any], dict[str, Any]], Any]
"""Takes a request's method, a function that sends it, and its arguments."""

_LONGEST_SECONDS: Final = 10


class HookedClient:
    """The table, with a hook that each request goes through."""

    def __init__(self, client: Any, hook: Hook) -> None:
        self._table = client
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._table, name)
        if name in ("exceptions", "meta", "get_paginator"):
            return call
        return lambda **request: self._hook(name, lambda: call(**request), request)


class PagedClient(HookedClient):
    """A client with a hook that its pages go through, too."""

    def get_paginator(self, operation: str) -> Any:
        return paginator(getattr(self, operation))


def failing(
    client: Any,
    operation: str,
    where: Callable[[dict[str, Any]], bool] = lambda _: True,
    error: BaseException | type[BaseException] = Crashed,
) -> HookedClient:
    """Return a client that fails with an error in place of an operation's requests, `where` they are such."""

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == operation and where(request):
            raise error
        return send()

    return HookedClient(client, hook)


def once(
    operations: Collection[str], before: Callable[[], object], where: Callable[[dict[str, Any]], bool] = lambda _: True
) -> Hook:
    """Return a hook that has something happen before the first request of some operations."""
    actions = [before]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name in operations and actions and where(request):
            actions.pop()()
        return send()

    return hook


class HeldClient(HookedClient):
    """Requests of one operation are sent, but land on command; their senders get no answer."""

    def __init__(self, client: Any, operation: str) -> None:
        super().__init__(client, self.hold)
        self._operation = operation
        self._requests: list[Callable[[], Any]] = []

    def forget(self) -> None:
        self._requests.clear()

    def let_through(self) -> None:
        self._operation = ""

    def land(self) -> None:
        [send] = self._requests
        with contextlib.suppress(ClientError):
            send()

    def hold(self, name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        if name != self._operation:
            return send()
        self._requests.append(send)
        raise Crashed


class Dying(HookedClient):
    """A client that dies at the nth call, perhaps of some operations: before it, or after it."""

    def __init__(self, client: Any, calls: int, *, after: bool, operations: Collection[str] = ()) -> None:
        super().__init__(client, self._count)
        self._calls, self._after, self._operations = calls, after, operations

    def _count(self, name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        is_counted = not self._operations or name in self._operations
        self._calls -= is_counted
        if not is_counted or self._calls >= 0:
            return send()
        if self._after:
            send()
        raise Crashed


class FrozenThreads:
    """A hook, as a sandbox freezes with its threads once its invocation has ended.

    The caller's own first request of an operation fails, once so many others are `frozen`.
    """

    def __init__(self, operation: str, error: type[BaseException], frozen: int = CONCURRENCY - 1) -> None:
        self._operation, self._error, self._frozen = operation, error, frozen
        self._thawed, self._arrivals, self._first = threading.Event(), threading.Semaphore(0), threading.Lock()

    def __call__(self, name: str, send: Callable[[], Any], _request: dict[str, Any]) -> Any:
        if name != self._operation or self._thawed.is_set():
            return send()
        is_own = not threading.current_thread().name.startswith("dynamodb")
        if is_own and self._first.acquire(blocking=False):
            for _number in range(self._frozen):
                assert self._arrivals.acquire(timeout=_LONGEST_SECONDS)
            raise self._error
        if self._frozen:
            self._arrivals.release()
            assert self._thawed.wait(_LONGEST_SECONDS)
        return send()

    def thaw(self) -> None:
        self._thawed.set()


class StaleReads(HookedClient):
    """The table, of which a query that asks for no more than eventual consistency may miss the newest items.

    Each page comes from some replica: what one page misses, the next may have passed.
    """

    def __init__(self, client: Any, rng: random.Random) -> None:
        super().__init__(client, self._read)
        self._random = rng

    def _read(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        answer, is_fresh = send(), name != "query" or request.get("ConsistentRead")
        if is_fresh or not answer["Items"] or self._random.random() < 0.5:
            return answer
        items = answer["Items"][: self._random.randint(0, len(answer["Items"]) - 1)]
        if self._random.random() < 0.5:
            answer.pop("LastEvaluatedKey", None)
        return {**answer, "Items": items, "Count": len(items)}
