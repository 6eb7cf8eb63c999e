"""A process that makes calls under a quota, with a clock and a client of its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import LEASE_CLOCKS
from dynamodb_counters._clients import may_be_done
from dynamodb_counters._declarations import Quota
from dynamodb_counters._table import Table
from dynamodb_counters._writes.leases import RESERVED, Holding, Leases
from dynamodb_counters.errors import UnavailableError
from simulation.aws.sigv4 import landing
from simulation.clock import VirtualClock
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultPlan, FaultyClient
from simulation.faults.hooked_client import HookedClient
from simulation.memory_table import MemoryTable

_TRIES: Final = 200

Calls = Counter[tuple[str, str]]
"""Numbers of calls by process and sort key of a period."""


@dataclass
class World:
    """State that processes share: `net` as the items had it, `granted` as processes said."""

    rng: random.Random
    clock: VirtualClock
    table: MemoryTable
    quota: Quota
    plan: FaultPlan
    net: Calls
    granted: Calls
    at: Counter[str]
    """Granted calls by the period that it truly was."""
    reached: Counter[str]


class _Counted:
    """The table, with what each applied update of a process has added to what is reserved."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self.exceptions, self.meta = world.table.exceptions, world.table.meta

    def update_item(self, **request: Any) -> dict[str, Any]:
        before = self._reserved(request["Key"])
        answer = self._world.table.update_item(**request)
        self._world.net[self._name, request["Key"]["sk"]["S"]] += self._reserved(request["Key"]) - before
        return answer

    def _reserved(self, key: dict[str, Any]) -> int:
        item = self._world.table.get_item(TableName=self._world.table.name, Key=key).get("Item", {})
        return int(item.get(RESERVED, {"N": "0"})["N"])


class _Watched(Leases):
    """Notes which periods its latest call was granted in."""

    charged: tuple[str, ...] = ()

    def _current(self) -> list[Holding]:
        current = super()._current()
        self.charged = tuple(holding.period.sk for holding in current)
        return current


class Process:
    """Makes a number of calls and gives back the rest, unless it is killed before.

    It has a clock of its own, which wanders within what the quota allows.
    """

    def __init__(self, world: World, name: str, calls: int) -> None:
        self.world, self.name = world, name
        self._offset = world.rng.uniform(-LEASE_CLOCKS, LEASE_CLOCKS)
        self.crashed = False
        self._calls = calls
        client: Any = FaultyClient(
            _Counted(world, name),
            self._pause,
            world.rng,
            self._postpone,
            lambda seconds: world.clock.advance(seconds / 10),
        )
        client = HookedClient(client, self._doubt)
        table = Table(world.table.name, client, clock=self._now, sleep=self._sleep, jitter=world.rng.random)
        self.leases = _Watched(table, world.quota, {})
        self.actor = Actor(self._live)
        self.doubtful: Calls = Counter()
        """Units of requests whose answer was lost, which may be given up."""
        self.released_in: set[str] = set()
        """The periods that nothing is held of any more, because it was given back."""

    def _now(self) -> float:
        if self.world.rng.random() < 0.1:
            self._offset = self.world.rng.uniform(-LEASE_CLOCKS, LEASE_CLOCKS)
        return self.world.clock.now + self._offset

    def _postpone(self, send: Callable[[], Any]) -> None:
        self.world.clock.call_at(landing(self.world.rng, self.world.clock.now, self._offset), send)

    def _pause(self, operation: str) -> Fault:
        fault: Fault = self.actor.pause(operation)
        return fault

    def _sleep(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.actor.pause("sleep")

    def _doubt(self, _: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        """Note what a request was about whose answer is lost."""
        try:
            return send()
        except (ClientError, BotoCoreError) as error:
            if may_be_done(error):
                about = self.name, request["Key"]["sk"]["S"]
                self.doubtful[about] += abs(int(request["ExpressionAttributeValues"][":units"]["N"]))
            raise

    def step(self) -> None:
        self.actor.step(self.world.plan.draw() if self.actor.waiting == "UpdateItem" else Fault.NONE)
        if self.actor.done and isinstance(self.actor.error, Crashed):
            self.crashed = True
        elif self.actor.done and self.actor.error is not None:
            raise self.actor.error

    def _live(self) -> None:
        rng = self.world.rng
        for _ in range(self._calls):
            self.actor.pause("think")
            if self.world.plan.strikes("killed between calls", 0.004):
                raise Crashed
            n = 1 if rng.random() < 0.8 else rng.randint(1, 5)
            self._call(n)
            if rng.random() < 0.02:
                self._release()
        self._release()

    def _call(self, n: int) -> None:
        world = self.world
        try:
            allowed = self.leases.take(n)
        except UnavailableError:
            world.reached["a call that failed"] += 1
            return
        if not allowed:
            world.reached["a refused call"] += 1
            return
        own = self.leases.charged
        world.at[world.quota._period(world.clock.now).sk] += n
        world.reached["a granted call"] += 1
        world.reached["a call granted in two periods"] += len(own) > 1
        self.released_in.clear()
        for sk in own:
            world.granted[self.name, sk] += n

    def _release(self) -> None:
        for _ in range(_TRIES):
            try:
                self.leases.release()
            except UnavailableError:
                self.world.reached["a release that failed"] += 1
                self.actor.pause("think")
            else:
                holdings, now = self.leases._holdings, self.world.clock.now
                self.released_in = {sk for sk, holding in holdings.items() if holding.period.end > now}
                return
        raise AssertionError("a release does not end")
