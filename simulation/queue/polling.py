"""Lambda's event source mapping of a queue: more and more invocations while messages wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from simulation.aws.queue_pollers import MOST_INVOCATIONS, invocations
from simulation.queue.sqs import Message, Queue
from simulation.queue.virtual_threads import KilledError, Task, VirtualThreads

Consume: TypeAlias = Callable[[list[dict[str, Any]], Callable[[], float]], Collection[str]]
"""Handles records with a function that returns the seconds left; returns the ids of messages to deliver again."""

_TICK: Final = 0.25


@dataclass
class Mapping:
    """Polls a queue; each execution environment has one consumer, which handles one batch at a time."""

    threads: VirtualThreads
    queue: Queue
    environment: Callable[[], Consume]
    batch_size: int = 100
    window: float = 1.0
    timeout: float = 60.0
    max_concurrency: int = MOST_INVOCATIONS
    invocations: int = 0
    killed: int = 0
    raised: int = 0
    busiest: int = 0
    errors: list[BaseException] = field(default_factory=list)
    _idle: list[Consume] = field(default_factory=list)
    _running: list[Task] = field(default_factory=list)
    _busy_since: float | None = None

    def run(self, until: Callable[[], bool], longest: float = math.inf) -> bool:
        """Poll until nothing is left, or time is up; return whether `until` has become true."""
        end = self.threads.clock() + longest
        while not until() or self._running:
            if self.threads.clock() >= end:
                return False
            self._poll()
            self.threads.clock.advance(_TICK)
            self._running = [task for task in self._running if not task.is_done]
        return True

    def _poll(self) -> None:
        now, waiting = self.threads.clock(), self.queue.visible()
        if not waiting and not self._running:
            self._busy_since = None
            return
        if self._busy_since is None:
            self._busy_since = now
        most = min(self.max_concurrency, invocations(now - self._busy_since))
        while len(self._running) < most and (waiting := self.queue.visible()):
            if waiting < self.batch_size and now - self.queue.oldest_visible() < self.window:
                break
            messages = self.queue.receive(self.batch_size)
            if not messages:
                break
            self._invoke(messages)
        self.busiest = max(self.busiest, len(self._running))

    def _invoke(self, messages: Sequence[Message]) -> None:
        consume = self._idle.pop() if self._idle else self.environment()
        ends_at = self.threads.clock() + self.timeout
        self.invocations += 1

        def work() -> None:
            try:
                failed = consume([message.record() for message in messages], lambda: ends_at - self.threads.clock())
            except KilledError:
                self.killed += 1
                return
            except Exception as error:  # noqa: BLE001
                self.raised += 1
                self.errors.append(error)
            else:
                for message in messages:
                    if message.id not in failed:
                        self.queue.delete(message.id)
            self._idle.append(consume)

        self._running.append(self.threads.start(work, ends_at))
