"""Schedules of a quota: processes come and go, meet faults and ends of periods; no limit is exceeded, no call lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import LEASE_CLOCKS
from dynamodb_counters._declarations import Quota
from dynamodb_counters._table import Table, may_be_done
from dynamodb_counters._writes.direct_counts import RESERVED, Holding, Leases
from dynamodb_counters.errors import UnavailableError
from simulation.clock import VirtualClock
from simulation.faults import process
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultPlan
from simulation.faults.hooked_client import HookedClient
from simulation.memory_table import MemoryTable
from simulation.pairs.coverage import Outcome

_TRIES: Final = 200
_MOST_STEPS: Final = 20_000
_MOST_PROCESSES: Final = 12

CRASHED: Final = "a process that died with calls reserved"
RETURNED: Final = "a process that has given back all it had left"
LEFT: Final = "a call that a newcomer could make of what was left"
GIVEN_UP: Final = "a portion given up, because the answer of a request about it was lost"
ZOMBIE: Final = "a call granted after a long sleep"


class _Watched(Leases):
    """Notes which periods its latest call was granted in."""

    charged: tuple[str, ...] = ()

    def _current(self) -> list[Holding]:
        current = super()._current()
        self.charged = tuple(holding.period.sk for holding in current)
        return current


class Process(process.Process):
    """Makes a number of calls and gives back the rest, unless it is killed before.

    It has a clock of its own, which wanders within what the quota allows. By sort key of a period, `net` is what items
    reserve for it, `granted` what it was granted, and `doubtful` has the units of requests whose answers were lost.
    """

    def __init__(self, schedule: QuotaSchedule, calls: int) -> None:
        client = HookedClient(schedule.table, self._count)
        super().__init__(client, schedule.table.name, schedule.clock, schedule.rng)
        self._schedule, self._calls = schedule, calls
        self._wrong = schedule.rng.uniform(-LEASE_CLOCKS, LEASE_CLOCKS)
        self.net, self.granted, self.doubtful = Counter[str](), Counter[str](), Counter[str]()
        self.released_in: set[str] = set()
        """The periods that nothing is held of any more, because it was given back."""
        heard: Any = HookedClient(self.table.client, self._doubt)
        self.leases = _Watched(replace(self.table, client=heard, clock=self._now), schedule.quota, {})
        self.actor = self.call = Actor(self._live)

    @property
    def crashed(self) -> bool:
        return isinstance(self.actor.error, Crashed)

    def step(self) -> None:
        self.actor.step(self._schedule.plan.draw() if self.actor.waiting == "UpdateItem" else Fault.NONE)
        if self.actor.error is not None and not self.crashed:
            raise self.actor.error

    def _now(self) -> float:
        if self._random.random() < 0.1:
            self._wrong = self._random.uniform(-LEASE_CLOCKS, LEASE_CLOCKS)
        return self._clock.now + self._wrong

    def _pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds / 10)

    def _sleep(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self.actor.pause("sleep")

    def _count(self, _: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        """Note what an update that is applied adds to what is reserved."""
        before = self._reserved(request["Key"])
        answer = send()
        self.net[request["Key"]["sk"]["S"]] += self._reserved(request["Key"]) - before
        return answer

    def _reserved(self, key: dict[str, Any]) -> int:
        return reserved(self._schedule.table.get_item(TableName=self._schedule.table.name, Key=key).get("Item", {}))

    def _doubt(self, _: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        """Note what a request was about whose answer is lost."""
        try:
            return send()
        except (ClientError, BotoCoreError) as error:
            if may_be_done(error):
                units = abs(int(request["ExpressionAttributeValues"][":units"]["N"]))
                self.doubtful[request["Key"]["sk"]["S"]] += units
            raise

    def _live(self) -> None:
        draw = self._random
        for _ in range(self._calls):
            self.actor.pause("think")
            if self._schedule.plan.strikes("killed between calls", 0.004):
                raise Crashed
            self._take(1 if draw.random() < 0.8 else draw.randint(1, 5))
            if draw.random() < 0.02:
                self._release()
        self._release()

    def _take(self, n: int) -> None:
        schedule, reached = self._schedule, self._schedule.reached
        try:
            allowed = self.leases.take(n)
        except UnavailableError:
            reached["a call that failed"] += 1
            return
        if not allowed:
            reached["a refused call"] += 1
            return
        schedule.at[schedule.quota._period(self._clock.now).sk] += n
        reached["a granted call"] += 1
        reached["a call granted in two periods"] += len(self.leases.charged) > 1
        self.released_in.clear()
        for sk in self.leases.charged:
            self.granted[sk] += n

    def _release(self) -> None:
        for _ in range(_TRIES):
            try:
                self.leases.release()
            except UnavailableError:
                self._schedule.reached["a release that failed"] += 1
                self.actor.pause("think")
            else:
                holdings = self.leases._holdings
                self.released_in = {sk for sk, holding in holdings.items() if holding.period.end > self._clock.now}
                return
        raise AssertionError("a release does not end")


class QuotaSchedule:
    """A schedule, which its seed decides; `at` has the granted calls by the period that it truly was."""

    def __init__(self, seed: int) -> None:
        self._outcome = Outcome(seed, [])
        self.reached, self.at = self._outcome.reached, Counter[str]()
        self.rng = rng = random.Random(seed)
        self.clock = clock = VirtualClock()
        limit = rng.choice([rng.randint(1, 6), rng.randint(10, 60), rng.randint(60, 400)])
        self.quota = Quota(
            "calls",
            limit=limit,
            per=rng.choice([timedelta(minutes=1), timedelta(minutes=7), "hour"]),
            portion=rng.choice([None, rng.randint(1, limit), rng.randint(1, min(limit, 20))]),
        )
        if rng.random() < 0.5:
            clock.advance(self.quota._period(clock.now).end - clock.now - rng.uniform(0, 30))
        self.plan = FaultPlan(rng, rate=rng.choice([0.0, 0.05, 0.2]), budget=rng.randint(0, 25))
        self.table = MemoryTable(clock, seed)
        self._processes: list[Process] = []
        self._asleep: dict[Process, int] = {}
        self._pace = rng.choice([0.02, 0.3, 2.0])

    def run(self) -> Outcome:
        wrong = self._outcome.wrong
        for _ in range(self.rng.randint(2, 7)):
            self._start()
        for step in range(_MOST_STEPS):
            alive = [process for process in self._processes if not process.actor.done]
            awake = [process for process in alive if self._asleep.get(process, 0) <= step]
            if not alive or wrong:
                break
            self._pass_time()
            if awake:
                self._step(self.rng.choice(awake), step)
            self._check_limits()
        else:
            wrong.append("the schedule does not end")
        while self.clock.hurry(self.rng):
            self._check_limits()
        if not wrong:
            for process in self._processes:
                self._check_returns(process)
            self._check_newcomer()
        self._outcome.faults = self.plan.injected
        return self._outcome

    def _start(self) -> None:
        self._processes.append(Process(self, self.rng.choice([self.rng.randint(1, 10), self.rng.randint(10, 40)])))

    def _pass_time(self) -> None:
        clock = self.clock
        clock.advance(self.rng.expovariate(1 / self._pace))
        if self.rng.random() < 0.004:
            # To where periods meet.
            clock.now = max(clock.now, self.quota._period(clock.now).end - self.rng.uniform(0, 1 + 2 * LEASE_CLOCKS))
        if self.rng.random() < 0.01:
            self.table.expire()

    def _step(self, process: Process, step: int) -> None:
        before = self.reached["a granted call"]
        slept = self._asleep.pop(process, None)
        process.step()
        self.reached[ZOMBIE] += slept is not None and self.reached["a granted call"] > before
        if len(self._processes) < _MOST_PROCESSES and self.rng.random() < 0.012:
            self._asleep[process] = step + self.rng.randint(50, 400)
            self._start()

    def _check_limits(self) -> None:
        counts = [*self.at.values(), *map(reserved, self.table.items())]
        self._outcome.wrong += [
            f"{n} calls of at most {self.quota.limit}" for n in counts if not 0 <= n <= self.quota.limit
        ]

    def _check_returns(self, process: Process) -> None:
        """Check that a process has granted what it did not give back, unless it died or the period was over."""
        for sk in {*process.net, *process.granted}:
            net, granted = process.net[sk], process.granted[sk]
            is_doubtful = 0 < net - granted <= process.doubtful[sk]
            if granted > net:
                self._outcome.wrong.append(f"{granted} calls were granted and {net} reserved in {sk}")
            elif process.crashed:
                self.reached[CRASHED] += net > granted
            elif sk in process.released_in:
                self.reached[RETURNED] += 1
                self.reached[GIVEN_UP] += is_doubtful
                if net > granted and not is_doubtful:
                    self._outcome.wrong.append(f"{net - granted} calls of {sk} were kept")

    def _check_newcomer(self) -> None:
        """All that is left can be had by others."""
        period = self.quota._period(self.clock.now + LEASE_CLOCKS)
        # A call between two periods would count in both.
        self.clock.now = max(self.clock.now, period.start + LEASE_CLOCKS)
        rest = self.quota.limit - sum(process.net[period.sk] for process in self._processes)
        client: Any = self.table
        table = Table(self.table.name, client, clock=self.clock, sleep=lambda _: None, jitter=self.rng.random)
        leases, had = Leases(table, self.quota, {}), 0
        while had <= self.quota.limit and leases.take():
            had += 1
        self.reached[LEFT] += had
        if had != rest:
            self._outcome.wrong.append(f"a newcomer could make {had} calls of {rest} that were left")


def reserved(item: dict[str, Any]) -> int:
    """Return how many calls an item of a period reserves."""
    return int(item.get(RESERVED, {"N": "0"})["N"])
