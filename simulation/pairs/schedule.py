"""A schedule of pairs: turmoil, then calm, in which everything is counted, verified, repaired and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.verification import Verification
from dynamodb_counters._table import Table
from simulation.faults.actors import end_suspended
from simulation.oracle.layout import is_page
from simulation.pairs import coverage, crossings, features
from simulation.pairs.audit import audit
from simulation.pairs.backend import MakeBackend, MemoryBackend
from simulation.pairs.calls import Runner
from simulation.pairs.copies import Restoring
from simulation.pairs.coverage import Outcome, WrongCountError
from simulation.pairs.deliveries import HOUR
from simulation.pairs.engine import NEAR, Engine
from simulation.pairs.function import QUARANTINE_SECONDS
from simulation.pairs.housekeeping import housekeeping, narrow_pages, seeded
from simulation.pairs.operators import Erasing, Increments, Quarantine, Spoiling
from simulation.pairs.runs import SETTLED, Changes, Verifying
from simulation.pairs.swarm import Swarm
from simulation.pairs.truth import Truth
from simulation.pairs.writers import Writers

_BLOCKS: Final = 0.4
REFILLED: Final = "entry redriven while names are filled"
_CHUNKS_KEPT_SECONDS: Final = 27 * 3600.0
_CHUNKS_EXPIRE_AFTER: Final = 3.4 * HOUR
"""Bucket, retention and the margin of eager housekeeping."""


class PairSchedule:
    """One schedule, which its seed decides; `without` leaves acts and families of declarations out, by name.

    In a `swarm` it has no runs, and so no calm in which they are compared.
    """

    def __init__(
        self,
        seed: int,
        make_backend: MakeBackend = MemoryBackend,
        without: Collection[str] = (),
        swarm: Swarm | None = None,
    ) -> None:
        self._engine = engine = Engine(seed, make_backend, without, swarm)
        self._writers = Writers(engine)
        self._quarantine = Quarantine(engine)
        self._changes = Changes(engine, self._writers)
        self._verifying = Verifying(engine, self._changes)
        engine.actors = [self._writers, Increments(engine), Erasing(engine), self._quarantine, self._changes]
        self._restoring = Restoring(engine, self._writers)
        self._spoiling = Spoiling(engine)
        engine.actors += [self._verifying, self._restoring, self._spoiling]
        engine.runner_ended, engine.runner_moved = self._runner_ended, self._changes.moved
        self._eager = engine.rng.random() < 0.5
        self._small = engine.rng.random() < 0.3
        self._groups = engine.rng.choice((1, 2, 3))
        if swarm is not None and (swarm.hours or swarm.apart):
            # Names are complete where the stream is young, and a source table is empty.
            self._register()

    def run(self) -> Outcome:
        engine = self._engine
        with housekeeping(eager=self._eager), seeded(engine.rng, small=self._small), narrow_pages(self._groups):
            try:
                if engine.swarm is None:
                    self._run()
                else:
                    self._run_swarm(engine.swarm)
            finally:
                end_suspended()
        if engine.swarm is None:
            self._note_faults()
            self._note_records()
        reached = engine.reached + engine.function.reached + coverage.of_records(engine.backend.history())
        engine.backend.drop()
        pairs, happened = features.pairs(engine.happened), Counter(engine.happened.keys())
        mappings = engine.deliveries.mappings
        numbers = sum(mapping.deliveries for mapping in mappings), sum(mapping.delivered for mapping in mappings)
        return Outcome(engine.seed, engine.wrong, *numbers, engine.faults.injected, reached, pairs, happened)

    def _run_swarm(self, swarm: Swarm) -> None:
        engine, draw = self._engine, self._engine.rng
        keeps_entries = swarm.poison or swarm.mended or swarm.spoils or "redeclare" not in engine.without
        for _ in range(2 if swarm.hours and not keeps_entries else 0):
            self._rest(draw.choice((2.1, 8)) * 24 * HOUR)
            engine.deliveries.create_mapping()
        engine.go()
        if self._eager and draw.random() < 0.5:
            engine.clock.advance(_CHUNKS_EXPIRE_AFTER)
            engine.backend.expire(draw.randint(1, 20))
            engine.go()
        engine.mend()
        self._audit("delivered", whole=False)
        engine.wrong += self._restoring.wrong()
        for _ in range(2):
            if not swarm.spoils and self._quarantine.redrive_all():
                engine.go()
        self._audit("redriven", whole=False)
        if given_up := engine.deliveries.given_up:
            engine.wrong.append(f"{given_up} records expired before they were counted")
        if "erase" in engine.without:
            engine.wrong += self._writers.answers.wrong()
        if not swarm.spoils:
            engine.wrong += crossings.wrong(self._truth())

    def _register(self) -> None:
        backend, declared = self._engine.backend, self._engine.deployments.deployed
        table = Table(backend.name, backend.client, clock=backend.clock)
        Aggregator(table, declared, quarantine_retention_seconds=QUARANTINE_SECONDS).handle({})

    def _run(self) -> None:
        engine = self._engine
        if engine.rng.random() < 0.2:
            self._rest(engine.rng.choice((_CHUNKS_KEPT_SECONDS, SETTLED)))
        engine.go()
        self._writers.touch()
        engine.go()
        self._audit("after turmoil", whole=False)
        engine.wrong += self._restoring.wrong()
        engine.calm_down()
        if not self._changes.make_whole():
            return
        self._quarantine.discard_some()
        if self._quarantine.redrive_all():
            engine.go()
        self._audit("made whole", whole=True)
        self._block()
        for _ in range(0 if "spoil" in engine.without else engine.rng.randint(0, 2)):
            self._verifying.spoil()
        for _ in range(2):
            if self._verifying.verify() is None:
                engine.wrong.append("a verification with nothing in its way did not end")
        engine.ledger.repair_lost()
        if self._quarantine.redrive_all():
            engine.go()
        self._audit("repaired", whole=True)
        self._changes.drop_undeclared()
        self._writers.touch()
        engine.go()
        self._audit("dropped", whole=True)
        engine.wrong += crossings.wrong(self._truth())

    def _block(self) -> None:
        """Have deltas wait; perhaps redrive them while their name is filled: the baseline has them."""
        engine = self._engine
        if "block" in engine.without or engine.rng.random() > _BLOCKS:
            return
        name = self._verifying.block()
        if not name or engine.rng.random() < 0.5:
            return
        runner = self._changes.fill_anew(name, engine.rng.choice(("waiting", "scanning", "draining", "adding")))
        engine.reached[REFILLED] += self._quarantine.redrive_all()
        engine.go()
        if runner.error is not None:
            engine.wrong.append(f"the backfill of {name}, with nothing in its way, ended with {runner.error!r}")

    def _rest(self, seconds: float) -> None:
        """Let time pass in which nothing happens, in the midst of turmoil: until chunks expire."""
        engine = self._engine
        half = engine.operations // 2
        engine.operations -= half
        engine.go()
        engine.clock.advance(seconds)
        engine.operations = half

    def _audit(self, when: str, *, whole: bool) -> None:
        engine = self._engine
        differences = audit(
            engine.backend,
            engine.deployments.declared,
            whole=whole,
            truth=self._truth(),
            is_spoiled=self._spoiling.is_spoiled,
            fails_for=engine.failing,
        )
        engine.wrong += [f"{when}: {text}" for text in differences + engine.function.standstills]

    def _truth(self) -> Truth:
        return Truth(self._engine.backend, self._engine.ledger)

    def _runner_ended(self, runner: Runner) -> None:
        self._changes.ended(runner)
        if runner.error is None and isinstance(runner.work, Verification):
            self._verifying.ended(runner)

    def _note_records(self) -> None:
        note = self._engine.note
        for _, record in self._engine.backend.history():
            old, new = (record["dynamodb"].get(name) or {} for name in ("OldImage", "NewImage"))
            kind = new.get("_type", {}).get("S", "")
            if kind == "quarantine":
                note(features.QUARANTINED, new.get("names", {}).get("SS", features.EVERYTHING))
            elif kind == "_crossing":
                note(features.CROSSED, [new["aggregate"]["S"]])
            elif is_page(new):
                note(features.PAGED, [kind])
                if new.get("_level") != old.get("_level"):
                    note(features.PAGE_SPLIT, [kind])

    def _note_faults(self) -> None:
        faults = {
            features.CRASHED: ("crash",),
            features.THROTTLED: ("throttled", "conflict", "nine in ten"),
            features.REQUESTS: ("lost", "late", "slow", "internal"),
            features.ZOMBIES: (coverage.TIMED_OUT,),
            features.REDELIVERED: (coverage.REWOUND, coverage.REPLAYED),
            features.SPLIT: (coverage.SPLIT, NEAR),
        }
        met = +(self._engine.faults.injected + self._engine.reached + self._engine.function.reached)
        for feature, words in faults.items():
            if any(word in name for name in met for word in words):
                self._engine.note(feature)


def check(
    seed: int,
    make_backend: MakeBackend = MemoryBackend,
    engine: str = "memory",
    *,
    without: Collection[str] = (),
    swarm: Swarm | None = None,
    how: str = "",
) -> Outcome:
    """Run one schedule; raise `WrongCountError` if anything is wrong."""
    outcome = PairSchedule(seed, make_backend, without, swarm).run()
    if outcome.wrong:
        raise WrongCountError(outcome, engine, without, how)
    return outcome
