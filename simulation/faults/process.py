"""A process: a table with a client that meets faults, a clock that is wrong, and what it does, step by step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._table import CONCURRENCY, Table
from simulation.aws import sigv4
from simulation.aws.sigv4 import LANDING_SECONDS, SKEW_SECONDS
from simulation.clock import VirtualClock
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultyClient


def in_disorder(rng: random.Random) -> Callable[..., Any]:
    """Threads that take one item after the other: any of the next few may be done first."""

    def side_by_side(work: Callable[[Any], Any], items: Sequence[Any]) -> list[tuple[Any, Any]]:
        waiting, done = list(range(len(items))), dict[int, Any]()
        while waiting:
            index = waiting.pop(rng.randrange(min(CONCURRENCY, len(waiting))))
            try:
                done[index] = work(items[index])
            except (ClientError, BotoCoreError, TimeoutError) as error:
                done[index] = error
        return [(item, done[index]) for index, item in enumerate(items)]

    return side_by_side


class Process:
    """A process that stops before each request, and is dead at its `deadline`.

    Its clock is right in `right` cases of two more, and off by `SKEW_SECONDS` at most; a request that is not answered
    lands within `landing` seconds of its signature.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        clock: VirtualClock,
        rng: random.Random,
        *,
        right: int = 2,
        landing: float = LANDING_SECONDS,
    ) -> None:
        self._clock, self._random, self._landing = clock, rng, landing
        self.call: Actor | None = None
        self.deadline = math.inf
        self._wrong = wrong = rng.choice(
            (*right * [0.0], rng.uniform(-SKEW_SECONDS, SKEW_SECONDS), rng.choice((-SKEW_SECONDS, SKEW_SECONDS)))
        )
        faulty: Any = FaultyClient(client, self._pause, rng, self._postpone, self._pass_time)
        # Between threads, no actor could switch.
        self.table = Table(name, faulty, lambda: clock.now + wrong, sleep=self._sleep, jitter=rng.random, threads=1)
        self.table.__dict__["side_by_side"] = in_disorder(rng)

    def _pause(self, operation: str) -> Fault:
        assert self.call is not None
        fault: Fault = self.call.pause(operation)
        return fault

    def _postpone(self, send: Callable[[], Any]) -> None:
        # A schedule may leap over the end of a process, which has sent nothing after it.
        due = sigv4.landing(self._random, min(self._clock.now, self.deadline), self._wrong, self._landing)
        if due >= self._clock.now:
            self._clock.call_at(due, send)

    def _sleep(self, seconds: float) -> None:
        self._pass_time(seconds)

    def _pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)
        if self._clock.now >= self.deadline:
            raise Crashed
