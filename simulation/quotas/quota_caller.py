"""A service that takes calls request by request, from functions that die, answer late, or lose their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._table import Table
from dynamodb_counters._writes.quota_calls import Lease, QuotaCalls
from dynamodb_counters.errors import UnavailableError
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.quotas.quota_process import Machine, World

TAKEN: Final = "a lease that was taken"
REPEATED: Final = "a lease that was asked for again"
RETURNED: Final = "a lease that was given back"
AGAIN: Final = "a lease that was given back again"
REFUSED: Final = "a call over HTTP that was refused"
LATE: Final = "a lease that was asked for after it was given back"
LOST: Final = "a lease whose caller never heard of it"


class Caller(Machine):
    """Takes leases one after the other, sends requests again, and gives back some of what it took."""

    crashed = False

    def __init__(self, world: World, name: str, leases: int) -> None:
        super().__init__(world, name)
        self._left = leases
        client: Any = FaultyClient(
            world.table, self._pause, world.rng, self.postpone, lambda seconds: world.clock.advance(seconds / 10)
        )
        table = Table(world.table.name, client, clock=self.now, sleep=self._sleep, jitter=world.rng.random)
        self._quota = QuotaCalls(table, world.quota, {})
        self.actor = Actor(self._live)
        self._calls: Counter[tuple[str, str]] = Counter()
        """Calls that it makes, by period and lease."""
        self._latest: dict[str, str] = {}
        """Period in which a lease was granted last."""
        self._returned: set[str] = set()
        """Leases that it has begun to give back."""
        self._settled: set[tuple[str, str]] = set()
        """Leases of a period that were given back, as an answer in that period says."""

    def step(self) -> None:
        calls = self.actor.waiting in ("GetItem", "TransactWriteItems")
        self.actor.step(self.world.plan.draw() if calls else Fault.NONE)
        if self.actor.error is not None:
            raise self.actor.error

    def _live(self) -> None:
        rng = self.world.rng
        for number in range(self._left):
            self.actor.pause("think")
            lease, n = f"{self.name}-{number}", 1 if rng.random() < 0.7 else rng.randint(1, 5)
            if not self._take(lease, n):
                continue
            self.world.reached[TAKEN] += 1
            if rng.random() < 0.3:
                self.world.reached[REPEATED] += self._take(lease, n)
            if rng.random() < 0.5:
                self._give_back(lease, n, None if rng.random() < 0.6 else rng.randint(1, n))

    def _take(self, lease: str, n: int) -> bool:
        found = self._answer(lambda: self._quota.take(lease, n))
        if found is not None and lease not in self._returned:
            assert found == Lease(n), f"{lease} of {n} calls is {found}"
        if found != Lease(n):
            self.world.reached[REFUSED] += 1
            return False
        sk = self.world.quota._period(self.world.clock.now).sk
        assert (sk, lease) not in self._settled, f"{lease} was granted although it was given back"
        self._may_make(sk, lease, n)
        self._latest[lease] = sk
        return True

    def _give_back(self, lease: str, n: int, fewer: int | None) -> None:
        world, units = self.world, fewer or n
        self._returned.add(lease)
        # It makes no more of them from the moment on at which it begins to give them back.
        self._may_make(self._latest[lease], lease, n - units)
        for number in range(world.rng.randint(1, 3)):
            before = world.quota._period(world.clock.now).sk
            found = self._answer(lambda: self._quota.give_back(lease, fewer))
            if found is None:
                break
            assert found == Lease(n, units), f"{lease} of {n} calls, {units} of them given back, is {found}"
            world.reached[AGAIN if number else RETURNED] += 1
            if before == self._latest[lease] == world.quota._period(world.clock.now).sk:
                self._settled.add((before, lease))
        if world.rng.random() < 0.3:
            world.reached[LATE] += 1
            self._take(lease, n)

    def _may_make(self, sk: str, lease: str, calls: int) -> None:
        """It makes so many calls of a lease in a period."""
        self.world.at[sk] += calls - self._calls[sk, lease]
        self._calls[sk, lease] = calls

    def _answer(self, ask: Callable[[], Lease | None]) -> Lease | None:
        """The answer to a request that is sent until there is one; None, too, if its sender gives up."""
        for _ in range(self.world.rng.randint(1, 6)):
            try:
                found = ask()
            except (ClientError, BotoCoreError, UnavailableError, Crashed):
                self.world.reached["a request that failed"] += 1
                self.actor.pause("think")
                continue
            if self.world.plan.strikes("an answer over HTTP that was lost", 0.05):
                continue
            return found
        self.world.reached[LOST] += 1
        return None
