"""The engine: one clock, one table, one mapping, one function, one plan of faults; actors act, step by step."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Protocol

from dynamodb_counters._declarations import Declaration, Packed
from dynamodb_counters._registry import read_registry
from dynamodb_counters._table import Table
from simulation.aws.sigv4 import LATEST
from simulation.faults.faulty_client import FaultPlan
from simulation.memory_table import MemoryTable
from simulation.oracle.layout import entry_of, is_waiting
from simulation.pairs import coverage, features
from simulation.pairs.apart import SHAPES, Apart, Backend
from simulation.pairs.backend import MakeBackend
from simulation.pairs.calls import FAILURES, Caller, Runner, Work
from simulation.pairs.declared import ORDER, SOURCES, TAP, Deployments, is_deriving, measured, root_source
from simulation.pairs.deliveries import HOUR, MAX_AGE, Deliveries, drawn
from simulation.pairs.function import Function
from simulation.pairs.ledger import HeardClient, Ledger, Purpose
from simulation.pairs.swarm import OF_ALL, OF_SWARM, Swarm

# A verification waits for every record accepted before it, once per part and round: the longest of 2,000 schedules,
# late deliveries and all, took 152,338 steps (seed 1066).
_MOST_STEPS: Final = 400_000
_IN_TROUBLE: Final = 20_000
_PROCESSES: Final = 4
NEAR: Final = "shard split near a cut"
_NEAR: Final = 150.0  # Seconds within which a shard is split near a cut.
_EMPTYING: Final = 90.0  # Names rest for half an hour before their items are deleted: so much passes at a time.

_BACKLOG_SECONDS: Final = 16 * HOUR
"""Beyond this, nothing fails on purpose: the stream forgets after 24 hours, and then no count can be right."""

Act = tuple[int, Callable[[], Any]]


def name_of(act: Callable[[], Any]) -> str:
    """By which an act can be left out."""
    return str(getattr(act, "__name__", "")).strip("_")


def _layout(rng: random.Random) -> Packed:
    return Packed(
        "at",
        timedelta(minutes=rng.choice((1, 10))),
        parts=rng.choice((1, 1, 3)),
        partition_by=rng.choice((None, "device")),
        tenant=rng.choice((None, None, "device")),
        chunk_bytes=1024,
    )


class PairActor(Protocol):
    """A feature, or some that belong together: what it would do now, and how often in proportion to the others."""

    def acts(self) -> Iterable[Act]: ...


class Engine:
    """State that all actors share, and the loop that gives each its turn."""

    def __init__(
        self, seed: int, make_backend: MakeBackend, without: Collection[str] = (), swarm: Swarm | None = None
    ) -> None:
        self.seed, self.swarm = seed, swarm
        self.without = frozenset(without) | (swarm.without if swarm else frozenset())
        self.rng = rng = random.Random(seed)
        self.backend: Backend = make_backend(rng)
        self.sources: dict[str, Any] = dict(SOURCES) if swarm is None else self._draw_sources(self.backend, swarm)
        if isinstance(self.backend, MemoryTable):
            self.backend.page_items = rng.choice((5, 20, 1000))
        self.ledger = Ledger()
        self._purpose = Purpose()
        self._numbers = 0
        self.backend.client = HeardClient(self.backend.client, self.backend.name, self.ledger, lambda: self._purpose)
        self.clock = self.backend.clock
        self._tempo = tempo = OF_ALL if swarm is None else OF_SWARM
        self.faults = FaultPlan(rng, rng.choice(tempo.rates), rng.randint(0, tempo.faults))
        self.faults.registrations = rng.choice((0.0, 0.3)) if swarm else 0.0
        if "faults" in self.without:
            self.faults.budget = 0
        self.deployments = Deployments(rng, self.without, self.sources if swarm else None)
        deployed = self.deployments.deployed
        among = [level.name for level in deployed if level.source in self.sources.values()]
        self.failing = rng.choice(among) if swarm and swarm.mended else ""
        """The name for which code fails on some events until it is mended."""
        self.function = Function(self.backend, rng, self.faults, deployed, self.failing)
        self.deliveries = Deliveries(self.backend, rng, self.faults, self.function, drawn(rng, MAX_AGE))
        self.actors: list[PairActor] = []
        self._favors: dict[str, float] = {}
        self.runners: list[Runner] = []
        self.runner_ended: Callable[[Runner], None] = lambda _: None
        self.runner_moved: Callable[[Runner], None] = lambda _: None
        """A run has come to another phase."""
        self._processes = [self._make_caller() for _ in range(_PROCESSES)]
        self._queue: list[tuple[Work, Purpose, Callable[[Any], None], Callable[[str], None]]] = []
        self.operations = rng.randint(*tempo.operations)
        self.happened: defaultdict[str, set[str]] = defaultdict(set)
        self.wrong: list[str] = []
        self.reached: Counter[str] = Counter()
        """How often each status was reported, and what runs are about has happened."""
        self.calm = False
        self.trouble: list[Callable[[], object]] = [self._split_near, self._retire]
        """Trouble apart from that of deliveries."""
        if swarm:
            time_out, fail = self.deliveries.time_out, self.deliveries.fail_for_hours
            self.trouble = [self._retire, time_out, time_out, *([fail] if swarm.hours else [])]

    def _draw_sources(self, counts: Any, swarm: Swarm) -> dict[str, Any]:
        """Draw how the sources of a swarm are kept, by name."""
        sources: dict[str, Any] = {name: source for name, source in SOURCES.items() if name in swarm.sources}
        if swarm.apart:
            shape = self.rng.choice(SHAPES)
            self.backend = Apart(counts, shape, self.rng)
            sources[ORDER.name] = shape.source()
        if TAP.name in sources:
            sources[TAP.name] = replace(TAP, packed=_layout(self.rng))
        return sources

    def note(self, feature: str, names: Collection[str] = features.EVERYTHING) -> None:
        """Note that a feature has really happened to these declarations."""
        self.happened[feature] |= {*names}
        if feature in (features.PLAIN, features.PACKED, features.FOREIGN):
            self.happened[features.DERIVED] |= {node.name for node in self._counted() if is_deriving(node)} & {*names}
            for name in names:
                if kind := measured(name):
                    self.happened[kind].add(name)

    def table(self) -> Table:
        """Return the table as an onlooker reads it."""
        table = Table(self.backend.name, self.backend.client, self.clock, jitter=self.rng.random)
        table.__dict__["sleep"] = self.clock.advance
        return table

    def registered(self) -> Mapping[str, Declaration]:
        """Return what the table counts, by name; nothing before its first batch."""
        return {level.name: level for level in read_registry(self.table()).declarations}

    def over(self, source: str) -> frozenset[str]:
        """Return the names of what counts a source, directly or not."""
        return frozenset(level.name for level in self._counted() if root_source(level) == source)

    def _counted(self) -> Collection[Declaration]:
        # No swarm is asked which features have met.
        return (self.swarm is None and self.registered().values()) or self.deployments.declared

    def noting(
        self, feature: str, names: Collection[str], happened: Callable[[Any], bool] = bool
    ) -> Callable[[Any], None]:
        """For a call that ends: the feature has happened if its answer says so."""
        return lambda answer: self.note(feature, names) if happened(answer) else None

    def call(
        self,
        work: Work,
        ended: Callable[[Any], None],
        purpose: Purpose | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Have some process call, in its time; at once if nothing can happen to it."""
        self._numbers += 1
        purpose = replace(purpose or Purpose(), number=self._numbers)
        if self.swarm is None or not self.swarm.calm:
            self._queue.append((work, purpose, ended, failed))
            return
        self._purpose = purpose
        try:
            ended(work(self.table()))
        except FAILURES as error:
            failed(repr(error))
        finally:
            self._purpose = Purpose()

    def calm_down(self) -> None:
        """Let nothing go wrong from now on."""
        self.calm, self.faults.budget = True, 0

    # The loop

    def go(self, until: Callable[[], bool] = lambda: False) -> None:
        """Go on until all is done that is to be done, nothing is under way, and everything is delivered; or `until`."""
        for step in range(_MOST_STEPS):
            if self._step(trouble=not self.calm and step < _IN_TROUBLE) or until():
                return
        invocations = [(call.waiting, call.asleep, call.steps) for call in self.function.running]
        rest = f"{self.operations} acts, {len(self._queue)} calls, {len(self.runners)} runs, invocations {invocations}"
        failed = self.deliveries.failed
        raise AssertionError(f"seed {self.seed} does not end; left are {rest}; the last failure was {failed}")

    def _step(self, *, trouble: bool) -> bool:
        """Let something go on; return whether all is over."""
        draw = self.rng.random
        awake = [runner for runner in self.runners if not runner.is_asleep]
        busy = [process for process in self._calling() if not process.is_asleep]
        if self.operations and draw() < self._pace():
            self._act()
        elif self._queue and draw() < 0.5:
            self._begin()
        elif busy and draw() < 0.4:
            self._step_process(self.rng.choice(busy))
        elif awake and draw() < 0.4:
            self._step_runner(self.rng.choice(awake))
        elif draw() < 0.25:
            self.deliveries.start()
        elif trouble and draw() < self._tempo.trouble:
            acts = [*self.deliveries.disturbances(), *self.trouble, self._land, self._wait, self._wait]
            self.rng.choice([act for act in acts if name_of(act) not in self.without])()
        else:
            return self._invoke(bool(awake))
        return False

    def _invoke(self, someone_is_awake: bool) -> bool:
        """Let an invocation go on; if there is none, let time pass, unless all is over."""
        ended = self.deliveries.step()
        if ended is not None and self.function.fails_for and self.rng.random() < 0.5 and self._in_doubt():
            self.mend()
        if ended is None and not self.function.running:
            if self._is_over():
                return True
            if not someone_is_awake or self.rng.random() < 0.1:
                self._pass_time()
        elif self.calm and self.rng.random() < 0.05:
            # Invocations that count what the one before has written may never end.
            self._pass_time()
        return False

    def _make_caller(self) -> Caller:
        return Caller(self.backend, self.rng, is_stale=self.swarm is not None)

    def _calling(self) -> list[Caller]:
        return [process for process in self._processes if process.call is not None]

    def _is_over(self) -> bool:
        if self.operations > 0 or self._queue or self.runners or self._calling():
            return False
        return not self.clock.hurry(self.rng) and self.deliveries.drained()

    def _pace(self) -> float:
        """Return how often a step is an act: most are to happen while a run looks at the table."""
        is_looking = any(runner.phase in ("scanning", "draining") for runner in self.runners)
        return 0.3 if is_looking else 0.02 if self.runners else self._tempo.pace

    def _act(self) -> None:
        self.operations -= 1
        acts = [act for actor in self.actors for act in actor.acts() if name_of(act[1]) not in self.without]
        weights = [weight * self._favor(name_of(act)) for weight, act in acts]
        [act] = self.rng.choices([act for _, act in acts], weights)
        act()

    def _favor(self, act: str) -> float:
        """Return how often an act is to be, in proportion to other schedules."""
        if act not in self._favors:
            self._favors[act] = self.rng.choice(self._tempo.favors)
        return self._favors[act]

    def _begin(self) -> None:
        idle = [process for process in self._processes if process.call is None]
        if idle:
            call = self._queue.pop(self.rng.randrange(min(3, len(self._queue))))
            self.rng.choice(idle).begin(*call)

    def _step_process(self, process: Caller) -> None:
        self._purpose = process.purpose
        ended = process.step(None if self.calm else self.faults)
        self._purpose = Purpose()
        if ended and process.crashed:
            self._processes[self._processes.index(process)] = self._make_caller()

    def _step_runner(self, runner: Runner) -> None:
        before = runner.phase
        if runner.step(None if self.calm else self.faults):
            self.runners = [other for other in self.runners if other is not runner]
            self.runner_ended(runner)
        elif runner.phase != before and not self.calm:
            self.runner_moved(runner)

    def _land(self) -> None:
        self.clock.hurry(self.rng)

    def _wait(self) -> None:
        draw, running = self.rng, self.function.running
        if self.swarm and running and draw.random() < 0.4:
            # Into the last moments of an invocation.
            seconds = draw.choice(running).deadline - self.clock.now
            self.clock.advance(max(0.0, seconds - draw.choice((5, 14, 40))))
        elif self.swarm and self.swarm.hours and draw.random() < 0.5:
            self._let_pass(draw.choice((0.4, 1, 4, 13)) * HOUR)
        else:
            self.clock.advance(draw.choice((1, 30, 59, 61, 61, 600, 1700)))

    def _let_pass(self, seconds: float) -> None:
        """Let time pass, but only as much as the records that wait have left; replace shards as AWS does."""
        slack = self.deliveries.oldest_waiting() + _BACKLOG_SECONDS - self.clock.now
        if seconds > slack:
            self.deliveries.recover()
        self.clock.advance(max(0.0, min(seconds, slack)))
        if self.rng.random() < 0.7:
            self.reached[coverage.ROLLED_OVER] += 1
            self.backend.roll_over()
        if self.seed % 2:
            self.backend.trim(self.clock.now - 24 * HOUR)

    def mend(self) -> None:
        """Deploy code that counts what the former could not, once no request of that is on its way."""
        if self.function.fails_for and not self.function.running:
            self.clock.advance(LATEST + 1)
            self.function.mend()
            self.reached[coverage.MENDED] += self._in_doubt()

    def _in_doubt(self) -> bool:
        """Return whether something is aside of a batch that is delivered again."""
        through = self.deliveries.acknowledged
        waiting = [entry_of(item["sk"]["S"]) for item in self.backend.items() if is_waiting(item)]
        return any(sequence > through.get(shard, "").zfill(40) for shard, sequence, _ in waiting)

    def _retire(self) -> None:
        """End the last process of the deployment before."""
        if self.rng.random() < 0.3:
            self.function.deploy(self.deployments.deployed)

    def _split_near(self) -> None:
        if self.rng.random() < 0.3 and self._is_near_cut(-_NEAR, _NEAR):
            self.reached[NEAR] += 1
            self.backend.split(self.rng)

    def _is_near_cut(self, least: float, most: float) -> bool:
        """Return whether the cut of an open run lies so many seconds ahead."""
        now = self.clock()
        return any(least < run.since - now < most for run in read_registry(self.table()).runs)

    def _pass_time(self) -> None:
        """Advance to the next wake-up, or a little; slowly, with acts, where a cut lies."""
        if self.backend.lag:
            time.sleep(self.backend.lag)
        now = self.clock()
        rests = [runner.is_emptying and runner.is_asleep for runner in self.runners]
        if rests and all(rests) and self.rng.random() < 0.5:
            self.clock.advance(self.rng.uniform(1, _EMPTYING))
            return
        is_waiting = not self.calm and any(runner.phase == "waiting" for runner in self.runners)
        if is_waiting and self._is_near_cut(-3, 6):
            if self.operations > 0:
                self._act()
            self.clock.advance(self.rng.uniform(0.1, 1))
            return
        sleepers: list[Caller] = [*self.runners, *self._calling()]
        wakes = [sleeper.wakes_at - now for sleeper in sleepers if sleeper.is_asleep]
        self.clock.advance(min(wakes) if wakes and self.rng.random() < 0.6 else self.rng.uniform(0.5, 8))
