"""Processes of writers and operators, each with one call at a time, and of runs: request by request, among faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, cast

from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.backfill import Dropping
from counters_lambda.counting.feeds import Feeds, Shard
from dynamodb_counters._table import Table
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters.errors import CountersError
from simulation.aws.sigv4 import LATEST
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultPlan
from simulation.faults.hooked_client import StaleReads
from simulation.faults.process import Process
from simulation.pairs.apart import Backend
from simulation.pairs.ledger import Purpose

_STEP: Final = "step"
_SLEEP: Final = "sleep"
FAILURES: Final = (ClientError, BotoCoreError, CountersError, TimeoutError, Crashed)

Work = Callable[[Table], Any]


class Caller(Process):
    """A process with what it remembers of the table, and its call under way."""

    def __init__(self, backend: Backend, rng: random.Random, *, is_stale: bool = False) -> None:
        client = StaleReads(backend.client, rng) if is_stale else backend.client
        super().__init__(client, backend.name, backend.clock, rng)
        self.purpose = Purpose()
        self.crashed = self.is_disturbed = False
        self.ended: Callable[[Any], None] = lambda _: None
        self.failed: Callable[[str], None] = lambda _: None
        """Takes why a call has failed without a fault; "" with one."""
        self.wakes_at = 0.0

    @property
    def is_asleep(self) -> bool:
        return self._clock() < self.wakes_at

    def begin(self, work: Work, purpose: Purpose, ended: Callable[[Any], None], failed: Callable[[str], None]) -> None:
        self.purpose, self.ended, self.failed, self.is_disturbed = purpose, ended, failed, False
        self.call = Actor(lambda: work(self.table))
        # A bucket's chunks outlive the last call that may write them, but no call that sleeps for as long.
        self.deadline = self._clock() + vars(chunk_writes)["KEPT_LONGER"] - 2 * LATEST

    def step(self, faults: FaultPlan | None) -> bool:
        """Go on to the next request; return whether the call has ended."""
        call = self._go_on(faults)
        if not call.done:
            return False
        self.call = None
        if call.error is None:
            self.ended(call.result)
        elif isinstance(call.error, FAILURES):
            self.failed("" if self.is_disturbed else repr(call.error))
        else:
            raise call.error
        self.crashed = isinstance(call.error, Crashed)
        return True

    def _go_on(self, faults: FaultPlan | None) -> Actor:
        call = self.call
        assert call is not None
        fault = Fault.NONE
        if call.waiting not in (None, _STEP, _SLEEP):
            is_over = self._clock() >= self.deadline
            fault = Fault.CRASH_BEFORE if is_over else faults.draw(str(call.waiting)) if faults else fault
        self.is_disturbed |= fault is not Fault.NONE
        call.step(fault)
        return call

    def _sleep(self, seconds: float) -> None:
        assert self.call is not None
        self.wakes_at = self._clock() + seconds
        self.call.pause(_SLEEP)


class BackendStream:
    """The stream of a backend, as a run reads it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def shards(self) -> list[Shard]:
        return [*self._backend.stream.shards()]

    def records(self, shard: str, after: str | None = None) -> Iterable[Mapping[str, Any]]:
        batch = self._backend.stream.read(shard, None, 10**9).records
        return [record for record in batch if record["dynamodb"]["SequenceNumber"].zfill(40) > (after or "").zfill(40)]


class Runner(Caller):
    """A process with a backfill, verification or drop; killed at any step, left behind, doubled, resumed."""

    def __init__(
        self,
        backend: Backend,
        rng: random.Random,
        *,
        names: Collection[str] = (),
        run: str = "",
        kind: Callable[..., Any],
    ) -> None:
        super().__init__(backend, rng)
        self.kind, self.names = kind, names
        self.run, self.phase = run, ""
        clock = backend.clock
        self._make = partial(
            kind,
            table=self.table,
            now=lambda: float(int(clock())),
            names=names,
            segments=rng.randint(1, 4),
            units_per_second=rng.choice((None, None, 5.0, 50.0)),
        )
        if kind is not Dropping:
            feeds = Feeds(cast("Any", BackendStream(backend)))
            self._make = partial(self._make, feeds=feeds, run=run, page_items=rng.choice((1, 2, 5)))
        self.work: Any = None
        """None before the first step: as it is made, it may read."""
        self.actor = self.call = Actor(self._run)

    @property
    def is_emptying(self) -> bool:
        """Whether it brings names to where they can be filled, or removed."""
        return bool(self.phase) and not self.run

    @property
    def error(self) -> BaseException | None:
        """Why it has ended."""
        return self.actor.error

    def step(self, faults: FaultPlan | None) -> bool:
        """Go on to the next request, or the next step; return whether it has ended."""
        return self._go_on(faults).done

    def _run(self) -> None:
        self.work = self._make()
        for progress in self.work.steps():
            self.run, self.phase = progress.run, progress.phase
            self.actor.pause(_STEP)
