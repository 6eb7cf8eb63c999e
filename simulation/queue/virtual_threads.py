"""Threads in virtual time: code that blocks runs as it is, one thread at a time, and sleeping lets the others run.

Greenlets serve because nothing that they run waits for another one but by what is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from simulation.clock import VirtualClock

R = TypeVar("R")


class KilledError(BaseException):
    """Raised in a thread that is still running when its invocation's time is up."""


class VirtualThreads:
    """Runs threads one at a time, in the order in which a clock wakes them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock

    def start(self, work: Callable[[], R], ends_at: float | None = None) -> Task:
        """Start a thread, which is killed at `ends_at`: by default, when the one that starts it is."""
        parent = _current()
        ends_at = ends_at if ends_at is not None else parent.ends_at if parent else math.inf
        task = Task(self, work, ends_at)
        self.clock.call_at(self.clock(), task.resume)
        return task

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass for the calling thread; outside of threads, time stands still."""
        task = _current()
        if task is None:
            return
        self.clock.call_at(min(self.clock() + seconds, task.ends_at), task.resume)
        task.pause()
        if self.clock() >= task.ends_at:
            raise KilledError

    def wait(self, tasks: Iterable[Task]) -> None:
        """Wait until threads have ended."""
        me = _current()
        assert me is not None
        for task in tasks:
            if not task.is_done:
                task.waiters.append(me)
                me.pause()


class Task(greenlet):  # type: ignore[misc]
    """A thread in virtual time, and what it returns or raises."""

    def __init__(self, threads: VirtualThreads, work: Callable[[], Any], ends_at: float) -> None:
        super().__init__()
        self.ends_at = ends_at
        self.is_done = False
        self.waiters: list[Task] = []
        self._threads, self._work = threads, work
        self._returned: Any = None
        self._raised: BaseException | None = None

    def run(self) -> None:
        try:
            self._returned = self._work()
        except BaseException as error:  # noqa: BLE001
            self._raised = error
        self.is_done = True
        _suspended.discard(self)
        for waiter in self.waiters:
            self._threads.clock.call_at(self._threads.clock(), waiter.resume)

    def resume(self) -> None:
        """Let the thread go on until it pauses or ends."""
        self.parent = getcurrent()
        _suspended.add(self)
        self.switch()

    def pause(self) -> None:
        """Let the others go on until this thread is resumed."""
        self.parent.switch()

    def result(self) -> Any:
        """The thread's result, once it has ended; raise what it raised."""
        if _current() is not None:
            self._threads.wait([self])
        if self._raised is not None:
            raise self._raised
        return self._returned


_suspended: Final[set[Task]] = set()
"""Threads that have begun and not ended: the garbage collector cannot see into their stacks."""


def _current() -> Task | None:
    current = getcurrent()
    return current if isinstance(current, Task) else None


class VirtualPool:
    """As much of an executor as writes call."""

    def __init__(self, threads: VirtualThreads, size: int) -> None:
        self._threads, self._size = threads, size

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Task:
        return self._threads.start(lambda: work(*arguments))
