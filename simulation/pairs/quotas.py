"""Schedules of a quota: processes come and go, meet faults and ends of periods; no limit is exceeded, no call lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
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
from simulation.pairs.coverage import Outcome

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
            HookedClient(world.table, self._count),
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

    def _count(self, _: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        """Note what an update that is applied adds to what is reserved."""
        before = self._reserved(request["Key"])
        answer = send()
        self.world.net[self.name, request["Key"]["sk"]["S"]] += self._reserved(request["Key"]) - before
        return answer

    def _reserved(self, key: dict[str, Any]) -> int:
        item = self.world.table.get_item(TableName=self.world.table.name, Key=key).get("Item", {})
        return int(item.get(RESERVED, {"N": "0"})["N"])

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


_MOST_STEPS: Final = 20_000
_MOST_PROCESSES: Final = 12

CRASHED: Final = "a process that died with calls reserved"
RETURNED: Final = "a process that has given back all it had left"
LEFT: Final = "a call that a newcomer could make of what was left"
GIVEN_UP: Final = "a portion given up, because the answer of a request about it was lost"
ZOMBIE: Final = "a call granted after a long sleep"


class QuotaSchedule:
    """A schedule, which its seed decides."""

    def __init__(self, seed: int) -> None:
        self._outcome = Outcome(seed, [])
        self._rng = rng = random.Random(seed)
        clock = VirtualClock()
        limit = rng.choice([rng.randint(1, 6), rng.randint(10, 60), rng.randint(60, 400)])
        quota = Quota(
            "calls",
            limit=limit,
            per=rng.choice([timedelta(minutes=1), timedelta(minutes=7), "hour"]),
            portion=rng.choice([None, rng.randint(1, limit), rng.randint(1, min(limit, 20))]),
        )
        if rng.random() < 0.5:
            clock.advance(quota._period(clock.now).end - clock.now - rng.uniform(0, 30))
        plan = FaultPlan(rng, rate=rng.choice([0.0, 0.05, 0.2]), budget=rng.randint(0, 25))
        table = MemoryTable(clock, seed)
        self._world = World(rng, clock, table, quota, plan, Counter(), Counter(), Counter(), self._outcome.reached)
        self._processes: list[Process] = []
        self._asleep: dict[str, int] = {}
        self._pace = rng.choice([0.02, 0.3, 2.0])

    def run(self) -> Outcome:
        for _ in range(self._rng.randint(2, 7)):
            self._start()
        for step in range(_MOST_STEPS):
            awake = [process for process in self._alive() if self._asleep.get(process.name, 0) <= step]
            if not self._alive() or self._outcome.wrong:
                break
            self._pass_time()
            if awake:
                self._step(self._rng.choice(awake), step)
            self._check_limits()
        else:
            self._outcome.wrong.append("the schedule does not end")
        while self._world.clock.hurry(self._rng):
            self._check_limits()
        if not self._outcome.wrong:
            self._check_returns()
            self._check_newcomer()
        self._outcome.faults = self._world.plan.injected
        return self._outcome

    def _start(self) -> None:
        calls = self._rng.choice([self._rng.randint(1, 10), self._rng.randint(10, 40)])
        self._processes.append(Process(self._world, f"p{len(self._processes)}", calls))

    def _alive(self) -> list[Process]:
        return [process for process in self._processes if not process.actor.done]

    def _pass_time(self) -> None:
        clock = self._world.clock
        clock.advance(self._rng.expovariate(1 / self._pace))
        if self._rng.random() < 0.004:
            # To where periods meet.
            end = self._world.quota._period(clock.now).end
            clock.now = max(clock.now, end - self._rng.uniform(0, 1 + 2 * LEASE_CLOCKS))
        if self._rng.random() < 0.01:
            self._world.table.expire()

    def _step(self, process: Process, step: int) -> None:
        before = self._outcome.reached["a granted call"]
        slept = self._asleep.pop(process.name, None)
        process.step()
        if slept is not None and self._outcome.reached["a granted call"] > before:
            self._outcome.reached[ZOMBIE] += 1
        if len(self._processes) < _MOST_PROCESSES and self._rng.random() < 0.012:
            self._asleep[process.name] = step + self._rng.randint(50, 400)
            self._start()

    def _check_limits(self) -> None:
        limit = self._world.quota.limit
        for sk, calls in self._world.at.items():
            if calls > limit:
                self._outcome.wrong.append(f"{calls} calls in {sk} of at most {limit}")
        for item in self._world.table.items():
            reserved = int(item.get(RESERVED, {"N": "0"})["N"])
            if not 0 <= reserved <= limit:
                self._outcome.wrong.append(f"{reserved} calls reserved of at most {limit}")

    def _check_returns(self) -> None:
        """A reservation that a process did not give back it has granted, unless it died or the period was over."""
        world = self._world
        for process in self._processes:
            periods = {sk for name, sk in {*world.net, *world.granted} if name == process.name}
            for sk in periods:
                kept, granted = world.net[process.name, sk], world.granted[process.name, sk]
                if granted > kept:
                    self._outcome.wrong.append(f"{process.name} granted {granted} calls and reserved {kept} in {sk}")
                elif process.crashed:
                    self._outcome.reached[CRASHED] += kept > granted
                elif sk in process.released_in:
                    self._outcome.reached[RETURNED] += 1
                    if 0 < kept - granted <= process.doubtful[process.name, sk]:
                        self._outcome.reached[GIVEN_UP] += 1
                    elif kept > granted:
                        self._outcome.wrong.append(f"{process.name} kept {kept - granted} calls of {sk}")

    def _check_newcomer(self) -> None:
        """All that is left can be had by others."""
        world = self._world
        period = world.quota._period(world.clock.now + LEASE_CLOCKS)
        # A call between two periods would count in both.
        world.clock.now = max(world.clock.now, period.start + LEASE_CLOCKS)
        kept = sum(calls for (_, sk), calls in world.net.items() if sk == period.sk)
        client: Any = world.table
        table = Table(world.table.name, client, clock=world.clock, sleep=lambda _: None, jitter=world.rng.random)
        leases = Leases(table, world.quota, {})
        had = 0
        while had <= world.quota.limit and leases.take():
            had += 1
        self._outcome.reached[LEFT] += had
        if had != world.quota.limit - kept:
            self._outcome.wrong.append(
                f"a newcomer could make {had} calls of {world.quota.limit - kept} that were left"
            )
