"""One schedule: processes that share a quota come and go, meet faults and ends of periods; nothing is exceeded."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._assumptions import LEASE_CLOCKS
from dynamodb_counters._declarations import Quota
from dynamodb_counters._table import Table
from dynamodb_counters._writes.leases import RESERVED, Leases
from simulation.clock import VirtualClock
from simulation.faults.faulty_client import FaultPlan
from simulation.memory_table import MemoryTable
from simulation.quotas.quota_process import Process, World

_MOST_STEPS: Final = 20_000
_MOST_PROCESSES: Final = 12

CRASHED: Final = "a process that died with calls reserved"
RETURNED: Final = "a process that has given back all it had left"
LEFT: Final = "a call that a newcomer could make of what was left"
GIVEN_UP: Final = "a portion given up, because the answer of a request about it was lost"
ZOMBIE: Final = "a call granted after a long sleep"


@dataclass
class QuotaOutcome:
    """Errors of a schedule, and how often what happened."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    reached: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    units: float = 0.0


class WrongQuotaError(AssertionError):
    """A limit was exceeded, or calls were lost; the message reproduces it."""

    def __init__(self, outcome: QuotaOutcome) -> None:
        wrong = "; ".join(outcome.wrong[:3])
        super().__init__(f"{wrong}\nreproduce: python -m simulation.quotas --count 1 --seed {outcome.seed}")


class QuotaSchedule:
    """A schedule, which its seed decides."""

    def __init__(self, seed: int) -> None:
        self._outcome = QuotaOutcome(seed)
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

    def run(self) -> QuotaOutcome:
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
        self._outcome.units = self._world.table.usage.writes
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


def check(seed: int) -> QuotaOutcome:
    """Run a schedule; WrongQuotaError if it shows anything wrong."""
    outcome = QuotaSchedule(seed).run()
    if outcome.wrong:
        raise WrongQuotaError(outcome)
    return outcome
