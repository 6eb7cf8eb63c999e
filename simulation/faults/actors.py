"""Invocations as actors: one runs at a time, and stops before each store call until it is resumed.

Greenlets serve because the runtime is plain synchronous code; they switch at `pause` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]


class Crashed(BaseException):
    """Ends an invocation as the death of its process would: nothing of the runtime may catch it."""


class Actor:
    """A function that runs in steps: it calls `pause` wherever it may be interrupted.

    `waiting` is what it paused before (None before its first step and after its last), `steps` how many it has made;
    `result` and `error` are what the function returned or raised.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._greenlet = greenlet(self._run)
        self._order: Any = None
        self.waiting: str | None = None
        self.steps = 0
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def step(self, order: Any = None) -> None:
        """Let it go on until it pauses again or ends; its `pause` returns the order."""
        self._order = order
        self.steps += 1
        _suspended.add(self)
        # It pauses, and ends, to where it was resumed.
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def pause(self, about: str) -> Any:
        """Hand control back, before doing what `about` says; called from within the function."""
        self.waiting = about
        self._greenlet.parent.switch()
        self.waiting = None
        return self._order

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001
            # Also the end of the process, which Crashed stands for, must not end the caller.
            self.error = error
        self.done = True
        _suspended.discard(self)


_suspended: Final[set[Actor]] = set()
"""Actors that have begun and not ended: the garbage collector cannot see into their stacks."""


def end_suspended() -> None:
    """End all actors where they are, as the death of their processes would."""
    for actor in [*_suspended]:
        while not actor.done:
            actor._greenlet.throw(Crashed)
