"""A schedule of backfills and redefinitions beside live traffic, decided by a seed; then every count is audited."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._backfill import backfill, baseline, log_tail, verification
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._stream import run_logs
from dynamodb_counters._stream.control import read_control
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from simulation.backfill.backfill_actors import BackfillActor
from simulation.backfill.population import Population
from simulation.backfill.rebuilt_truth import Truth, audit, audit_quarantine
from simulation.backfill.subjects import FAMILIES, Subject
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import FaultPlan
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.function import Function, waits_for_another
from simulation.schedules.housekeeping import housekeeping
from simulation.schedules.outcome import Outcome
from simulation.schedules.sandbox import Invocation

_MOST_STEPS: Final = 200_000
_MOST_STEPS_IN_TROUBLE: Final = 20_000
"""Deliveries of few records never catch up with heartbeats while time goes on passing for nothing."""

_HOUR: Final = 3600.0
_NEAR: Final = 150.0

OPENED: Final = "runner started"
RESUMED: Final = "run resumed"
DOUBLED: Final = "run doubled"
KILLED: Final = "runner killed"
ZOMBIE: Final = "runner left behind goes on"
COMPLETE: Final = "run complete"
WITHHELD: Final = "item that a backfill cannot count"
SETTLED: Final = "entry that a backfill settles"
VOID: Final = "run void"
REFUSED: Final = "run refused"
SPLIT: Final = "shard split"
NEAR: Final = "shard split near a cut"
REDEFINED: Final = "declaration redefined"
ADDED: Final = "declaration added"
DROPPED: Final = "declaration dropped"
RETURNED: Final = "deployment before deployed again"


class BackfillSchedule:
    """One run of writers, deliveries, deployments and runners, step by step."""

    _work: type[Backfill | Verification] = Backfill

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend) -> None:
        rng = random.Random(seed)
        self._seed = seed
        self._random = rng
        self._backend = make_backend(rng)
        if isinstance(self._backend, MemoryTable):
            self._backend.page_items = rng.choice((5, 20, 1000))
            if rng.random() < 0.5:
                self._backend.stream.disorder = lambda: rng.uniform(-1, 1)
        self._among = rng.sample(sorted(FAMILIES), rng.randint(2, 4))
        self._deployments = [{name: rng.randrange(len(FAMILIES[name])) for name in self._among[: rng.randint(1, 2)]}]
        self._faults = FaultPlan(
            rng, rng.choice((0.0, 0.01, 0.05, 0.2)), rng.randint(0, 40), takeovers=rng.choice((0.0, 0.2))
        )
        self._operations = rng.randint(30, 90)
        self._population = Population(self._backend, rng, self._operations, spoils=True)
        self._function = Function(self._backend, rng, self._faults, self._subjects())
        self._settings = Settings(
            batch_size=rng.choice((1, 3, 10, 100)),
            max_bytes=None,
            window_seconds=rng.choice((60, 900)),
            bisect=rng.random() < 0.5,
            max_age_seconds=math.inf,
        )
        self._mappings = [self._mapping_anew()]
        self._runners: list[BackfillActor] = []
        self._left_behind: list[BackfillActor] = []
        self._redeclare_left = rng.randint(1, 3)
        self._runs = self._runs_left = rng.randint(1, 3)
        self._eager = rng.random() < 0.5
        self._small = rng.random() < 0.3
        self._calm = False
        self._wrong: list[str] = []
        self._reached: Counter[str] = Counter()

    def run(self) -> Outcome:
        with housekeeping(eager=self._eager), adjusted(self._random, small=self._small):
            outcome = self._run()
        self._backend.drop()
        return outcome

    def _run(self) -> Outcome:
        self._go(self._is_over)
        # What is declared takes over with the next batch at the latest.
        self._population.touch()
        self._go(self._is_over)
        self._audit("after its runs", whole=False)
        self._finish()
        return self._outcome()

    def _outcome(self) -> Outcome:
        return Outcome(
            self._seed,
            self._wrong + self._function.standstills,
            sum(mapping.deliveries for mapping in self._mappings),
            sum(mapping.delivered for mapping in self._mappings),
            self._faults.injected,
            self._reached + self._function.reached,
        )

    def _finish(self) -> None:
        """Have everything backfilled that is not whole, with nothing in the way."""
        self._calm = True
        self._faults.budget = 0
        self._go(self._is_over)
        self._function.deploy(self._subjects())
        self._backend.clock.advance(61)
        for _ in range(3):
            self._population.touch()
            self._go(self._is_over)
            runner = self._start_runner()
            self._go(self._is_over)
            if runner.error is None or "nothing to backfill" in str(runner.error):
                break
        else:
            self._wrong.append(f"the last backfill, with nothing in its way, ended with {runner.error!r}")
            return
        self._backend.clock.advance(FRESH + 1)
        self._audit("in the end", whole=True)

    def _audit(self, when: str, *, whole: bool) -> None:
        found = audit(self._backend, self._declared(), whole=whole) + audit_quarantine(self._backend)
        self._wrong += [f"{when}: {text}" for text in found]

    # The world

    def _subjects(self) -> list[Subject]:
        return [subject for name, variant in self._deployments[-1].items() for subject in FAMILIES[name][variant]]

    def _declared(self) -> list[Declaration]:
        return [subject.declaration for subject in self._subjects()]

    @property
    def _mapping(self) -> EventSourceMapping:
        return self._mappings[-1]

    def _mapping_anew(self) -> EventSourceMapping:
        return EventSourceMapping(
            self._backend.stream, self._backend.clock, self._settings, lambda length: self._random.randint(1, length)
        )

    def _go(self, is_over: object) -> None:
        draw = self._random.random
        assert callable(is_over)
        for step in range(_MOST_STEPS):
            awake = [runner for runner in self._runners if not runner.is_asleep]
            if self._population.left > self._held_back() and draw() < self._pace():
                self._population.write()
            elif awake and draw() < 0.4:
                self._step(self._random.choice(awake))
            elif draw() < 0.25:
                self._start()
            elif not self._calm and step < _MOST_STEPS_IN_TROUBLE and draw() < 0.05:
                self._disturb()
            elif (ended := self._function.step()) is not None:
                self._ended(ended)
            elif not self._function.running:
                if is_over():
                    return
                if not awake or draw() < 0.1:
                    self._pass_time()
        raise AssertionError(f"seed {self._seed} does not end")

    def _pace(self) -> float:
        """How often a step is a write: most are to happen while a run looks at the table."""
        is_looking = any(runner.phase in ("scanning", "draining") for runner in self._runners)
        return 0.3 if is_looking else 0.04 if self._runners else 0.1

    def _held_back(self) -> int:
        """How many writes wait for a run beside which they happen."""
        runs = self._runs_left if not self._runners else max(0, self._runs_left - 1)
        return 0 if self._calm else self._operations * runs // (self._runs + 1)

    def _is_over(self) -> bool:
        if not self._calm and (self._population.left or self._redeclare_left or self._runs_left):
            return False
        return not self._runners and not self._backend.clock.hurry(self._random) and self._drained()

    def _drained(self) -> bool:
        polled: set[str] = set()
        while unpolled := [shard for shard in self._mapping.shards() if shard not in polled]:
            for shard in unpolled:
                polled.add(shard)
                if self._deliver(shard):
                    return False
        return True

    def _pass_time(self) -> None:
        """Up to when the next runner wakes, or a little; slowly, with writes, where a cut lies."""
        now = self._backend.clock()
        if not self._calm and any(runner.phase == "waiting" for runner in self._runners):
            table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
            if any(-3 < run.since - now < 6 for run in read_control(table).runs):
                if self._population.left:
                    self._population.write()
                self._backend.clock.advance(self._random.uniform(0.1, 1))
                return
        wakes = [runner.wakes_at - now for runner in self._runners if runner.is_asleep]
        self._backend.clock.advance(
            min(wakes) if wakes and self._random.random() < 0.6 else self._random.uniform(0.5, 8)
        )

    # Deliveries

    def _start(self) -> None:
        shards = self._mapping.shards()
        if shards and len(self._function.running) <= 5:
            self._deliver(self._random.choice(shards), self._random.randint(1, self._settings.batch_size))

    def _deliver(self, shard: str, size: int | None = None) -> bool:
        delivery = self._mapping.poll(shard, size)
        if delivery is not None:
            self._function.invoke(delivery, doomed=False)
        return delivery is not None

    def _ended(self, invocation: Invocation) -> None:
        delivery = invocation.delivery
        if waits_for_another(invocation.error):
            self._backend.clock.advance(60)
        if invocation.error is not None or self._faults.strikes("response lost", 0.03):
            self._mapping.fail(delivery)
        elif self._mapping.settle(delivery, invocation.result) and delivery.records:
            self._function.acknowledged(delivery.shard, delivery.records[-1]["dynamodb"]["SequenceNumber"])

    # Runners

    def _start_runner(self, names: Collection[str] = (), run: str = "") -> BackfillActor:
        self._reached[RESUMED if run else OPENED] += 1
        runner = BackfillActor(
            self._backend, self._backend.described, self._random, names=names, run=run, kind=self._work
        )
        self._runners.append(runner)
        return runner

    def _step(self, runner: BackfillActor) -> None:
        before = runner.phase
        runner.step(None if self._calm else self._faults)
        if runner.phase != before and not self._calm and runner.run and self._random.random() < 0.15:
            # Another one begins where this one is; perhaps this one is killed.
            self._start_runner(run=runner.run)
            if self._random.random() < 0.5:
                self._runners.remove(runner)
                self._left_behind.append(runner)
                return
        if runner.done:
            self._runners = [other for other in self._runners if other is not runner]
            self._left_behind = [other for other in self._left_behind if other is not runner]
            self._runner_ended(runner)

    def _runner_ended(self, runner: BackfillActor) -> None:
        error = runner.error
        if error is None:
            self._reached[COMPLETE] += 1
            self._completed(runner)
            if Truth(self._backend).phase(runner.run) != "complete":
                self._wrong.append(f"run {runner.run}: told to be complete, but is not")
        elif isinstance(error, BackfillError):
            text = str(error)
            self._reached[VOID if "void" in text else REFUSED] += 1
        elif isinstance(error, ClientError | BotoCoreError | Crashed):
            self._reached[KILLED] += 1
            if runner.run and self._random.random() < 0.8:
                self._start_runner(run=runner.run)
        else:
            self._wrong.append(f"run {runner.run}: {type(error).__name__}: {error}")

    def _completed(self, runner: BackfillActor) -> None:
        """A runner has ended well."""
        if isinstance(runner.work, Backfill):
            self._reached[WITHHELD] += runner.work.withheld
            self._reached[SETTLED] += runner.work.settled

    # Trouble

    def _disturb(self) -> None:
        choices = [self._time_out, self._rewind, self._split, self._land, self._wait, self._wait, self._crowd]
        choices += [
            self._population.expire,
            self._redeclare,
            self._run_again,
            self._run_again,
            self._replay,
            self._retire,
        ]
        choices += [self._kill, self._kill, self._double, self._resume_any, self._split_near]
        self._random.choice(choices)()

    def _run_again(self) -> None:
        """Begin a backfill: of everything that waits for one, or of some names."""
        if self._runs_left and len(self._runners) < 3 and self._random.random() < 0.5:
            self._runs_left -= 1
            names = [declaration.name for declaration in self._declared()]
            some = self._random.sample(names, self._random.randint(1, len(names)))
            self._start_runner(self._random.choice(((), some)))

    def _kill(self) -> None:
        """A process dies, or seems dead and goes on later; usually another one goes on with its run."""
        if self._runners and self._faults.strikes(KILLED):
            runner = self._random.choice(self._runners)
            self._runners.remove(runner)
            if self._random.random() < 0.3:
                self._left_behind.append(runner)
            if runner.run and self._random.random() < 0.8:
                self._start_runner(run=runner.run)
        elif self._left_behind:
            self._reached[ZOMBIE] += 1
            self._runners.append(self._left_behind.pop())

    def _double(self) -> None:
        known = [runner for runner in self._runners if runner.run]
        if known and len(self._runners) < 4 and self._faults.strikes(DOUBLED):
            self._start_runner(run=self._random.choice(known).run)

    def _resume_any(self) -> None:
        """Go on with whatever run is open, also one whose process died before it told its name."""
        table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
        known = {runner.run for runner in self._runners}
        if orphans := [run.id for run in read_control(table).runs if run.id not in known]:
            self._start_runner(run=self._random.choice(orphans))

    def _redeclare(self) -> None:
        if not self._redeclare_left or self._random.random() < 0.5:
            return
        self._redeclare_left -= 1
        draw, now = self._random, dict(self._deployments[-1])
        missing = [name for name in self._among if name not in now]
        kind = draw.choice((ADDED, ADDED, REDEFINED, REDEFINED, REDEFINED, DROPPED, RETURNED))
        if kind == RETURNED and len(self._deployments) > 1:
            now = draw.choice(self._deployments[:-1])
        elif kind == ADDED and missing:
            name = draw.choice(missing)
            now[name] = draw.randrange(len(FAMILIES[name]))
        elif kind == DROPPED and len(now) > 1:
            del now[draw.choice(sorted(now))]
        else:
            kind, name = REDEFINED, draw.choice(sorted(now))
            now[name] = (now[name] + draw.randrange(1, len(FAMILIES[name]))) % len(FAMILIES[name])
        self._reached[kind] += 1
        self._deployments.append(now)
        self._function.deploy(self._subjects(), stragglers=draw.random() < 0.15)
        if draw.random() < 0.5:
            # So that it takes over soon.
            self._population.touch()

    def _retire(self) -> None:
        """The last process of a deployment before is gone."""
        self._function.deploy(self._subjects())

    def _crowd(self) -> None:
        if not self._faults.crowded and self._faults.strikes("nine in ten calls refused", 0.1):
            self._faults.crowded = self._random.randint(20, 100)

    def _replay(self) -> None:
        """Delete the mapping and create it again; it begins at the start of the stream."""
        if self._faults.strikes("mapping re-created", 0.3):
            for invocation in self._function.running:
                self._give_up(invocation)
            self._mappings.append(self._mapping_anew())

    def _time_out(self) -> None:
        waited_for = [invocation for invocation in self._function.running if not invocation.timed_out]
        if waited_for and self._faults.strikes("timeout, invocation runs on"):
            self._give_up(self._random.choice(waited_for))

    def _give_up(self, invocation: Invocation) -> None:
        if not invocation.timed_out:
            invocation.timed_out, invocation.asleep = True, self._random.random() < 0.8
            self._mapping.fail(invocation.delivery)

    def _rewind(self) -> None:
        shards = self._mapping.shards()
        if shards and self._faults.strikes("redelivery from an earlier position"):
            shard = self._random.choice(shards)
            passed = [record["dynamodb"]["SequenceNumber"] for record in self._records(shard)]
            reached = self._mapping.checkpoint(shard)
            before = passed[: passed.index(reached)] if reached in passed else []
            self._mapping.rewind(shard, self._random.choice([None, *before]))

    def _records(self, shard: str) -> Sequence[dict[str, dict[str, str]]]:
        return self._backend.stream.read(shard, None, 100_000).records

    def _split(self) -> None:
        if self._random.random() < 0.3:
            self._reached[SPLIT] += 1
            self._backend.split(self._random)

    def _split_near(self) -> None:
        table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
        now = self._backend.clock()
        if any(abs(run.since - now) < _NEAR for run in read_control(table).runs) and self._random.random() < 0.3:
            self._reached[NEAR] += 1
            self._backend.split(self._random)

    def _land(self) -> None:
        self._backend.clock.hurry(self._random)

    def _wait(self) -> None:
        self._backend.clock.advance(self._random.choice((1, 30, 59, 61, 61, 600, 1700)))


@contextmanager
def adjusted(rng: random.Random, *, small: bool) -> Iterator[None]:
    """Have the seed decide ids; if small, have pages of the log split, and the baseline worked off in parts."""
    changed: list[tuple[ModuleType, str, Any]] = [
        (module, "secrets", _Ids(rng)) for module in (backfill, log_tail, verification)
    ]
    if small:
        changed += [(run_logs, "MOST_BYTES", 120), (baseline, "MOST_HELD", 50)]
    usual = [(module, name, vars(module)[name]) for module, name, _ in changed]
    for module, name, value in changed:
        vars(module)[name] = value
    try:
        yield
    finally:
        for module, name, value in usual:
            vars(module)[name] = value


@dataclass
class _Ids:
    """Stands for the module `secrets`."""

    rng: random.Random

    def token_hex(self, size: int) -> str:
        return self.rng.randbytes(size).hex()


class WrongBackfillError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: Outcome, engine: str, kind: str = "backfill") -> None:
        lines = "\n  ".join(outcome.wrong[:20])
        again = f"python -m simulation.backfill --engine {engine} --kind {kind} --seed {outcome.seed} --count 1"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")


def check(seed: int, make_backend: MakeBackend = MemoryBackend, engine: str = "memory") -> Outcome:
    """Run one schedule; raise `WrongBackfillError` if a count is not exact."""
    outcome = BackfillSchedule(seed, make_backend).run()
    if outcome.wrong:
        raise WrongBackfillError(outcome, engine)
    return outcome
