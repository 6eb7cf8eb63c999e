"""Threads in virtual time: code that blocks runs as it is, one thread at a time, and sleeping lets the others run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from simulation.clock import VirtualClock
from simulation.faults.actors import Actor


class KilledError(BaseException):
    """Raised in a thread that is still running when its invocation's time is up."""


class VirtualThreads:
    """Runs threads one at a time, in the order in which a clock wakes them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.current: Task | None = None

    def start(self, work: Callable[[], Any], ends_at: float | None = None) -> Task:
        """Start a thread, which is killed at `ends_at`: by default, when the one that starts it is."""
        parent = self.current
        ends_at = ends_at if ends_at is not None else parent.ends_at if parent else math.inf
        task = Task(self, work, ends_at)
        self.clock.call_at(self.clock(), task.resume)
        return task

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass for the calling thread; outside of threads, time stands still."""
        task = self.current
        if task is None:
            return
        self.clock.call_at(min(self.clock() + seconds, task.ends_at), task.resume)
        task.pause()
        if self.clock() >= task.ends_at:
            raise KilledError

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Task:
        """As much of an executor as writes call."""
        return self.start(lambda: work(*arguments))


class Task:
    """A thread in virtual time, and what it returns or raises."""

    def __init__(self, threads: VirtualThreads, work: Callable[[], Any], ends_at: float) -> None:
        self._threads, self._actor, self.ends_at = threads, Actor(work), ends_at
        self._waiters: list[Task] = []

    @property
    def is_done(self) -> bool:
        return self._actor.done

    def resume(self) -> None:
        """Let the thread go on until it pauses or ends."""
        self._threads.current = self
        self._actor.step()
        self._threads.current = None
        for waiter in self._waiters if self.is_done else ():
            self._threads.clock.call_at(self._threads.clock(), waiter.resume)

    def pause(self) -> None:
        """Let the others go on until this thread is resumed."""
        self._actor.pause("the others")

    def result(self) -> Any:
        """Return the thread's result, once it has ended; raise what it raised."""
        if (me := self._threads.current) is not None and not self.is_done:
            self._waiters.append(me)
            me.pause()
        if self._actor.error is not None:
            raise self._actor.error
        return self._actor.result
