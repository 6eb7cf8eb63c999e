"""Lambda's event source mapping of a queue: more and more invocations while messages wait."""

from __future__ import annotations

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
    """Polls a queue and hands its messages to invocations of a consumer."""

    threads: VirtualThreads
    queue: Queue
    consume: Consume
    batch_size: int = 100
    window: float = 1.0
    timeout: float = 60.0
    max_concurrency: int = MOST_INVOCATIONS
    invocations: int = 0
    killed: int = 0
    _running: list[Task] = field(default_factory=list)
    _busy_since: float | None = None

    def run(self, longest: float) -> None:
        """Poll until nothing is left, or time is up; raise what the consumer raised."""
        end = self.threads.clock() + longest
        while (self.queue.messages() or self._running) and self.threads.clock() < end:
            self._poll()
            self.threads.clock.advance(_TICK)
            for task in self._running:
                if task.is_done:
                    task.result()
            self._running = [task for task in self._running if not task.is_done]

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

    def _invoke(self, messages: Sequence[Message]) -> None:
        ends_at = self.threads.clock() + self.timeout
        self.invocations += 1

        def work() -> None:
            try:
                again = self.consume([one.record() for one in messages], lambda: ends_at - self.threads.clock())
            except KilledError:
                self.killed += 1
                return
            for message in messages:
                if message.id not in again:
                    self.queue.delete(message.id)

        self._running.append(self.threads.start(work, ends_at))
