"""A schedule of pairs: turmoil, then calm, in which everything is counted, verified, repaired and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from dynamodb_counters._backfill.verification import Verification
from simulation.faults.actors import end_suspended
from simulation.pairs import crossed, features
from simulation.pairs.audit import audit
from simulation.pairs.calls import Runner
from simulation.pairs.copies import Restoring
from simulation.pairs.engine import NEAR, Engine
from simulation.pairs.explained import Explaining
from simulation.pairs.held import is_page
from simulation.pairs.operators import Direct, Erasing, Quarantine, Sharing
from simulation.pairs.runs import SETTLED, Changes, Verifying
from simulation.pairs.truth import Truth
from simulation.pairs.writers import Writers
from simulation.schedules import coverage
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.housekeeping import housekeeping, narrow_pages, seeded

_BLOCKS: Final = 0.4
REFILLED: Final = "entry redriven while names are filled"
_CHUNKS_KEPT_SECONDS: Final = 27 * 3600.0


@dataclass
class PairOutcome:
    """Errors of a schedule, and which features met."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    pairs: Counter[features.Pair] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)


class WrongPairError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: PairOutcome, engine: str, without: Collection[str] = ()) -> None:
        lines = "\n  ".join(text[:600] for text in outcome.wrong[:12])
        left_out = f" --without {','.join(sorted(without))}" if without else ""
        again = f"python -m simulation.pairs --engine {engine} --seed {outcome.seed} --count 1{left_out}"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")


class PairSchedule:
    """One schedule, which its seed decides; `without` leaves acts and families of declarations out, by name."""

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend, without: Collection[str] = ()) -> None:
        self._engine = engine = Engine(seed, make_backend, without)
        self._writers = Writers(engine)
        self._quarantine = Quarantine(engine)
        self._changes = Changes(engine, self._writers)
        self._verifying = Verifying(engine, self._changes)
        self._sharing = Sharing(engine)
        engine.actors = [self._writers, Direct(engine), Erasing(engine), self._quarantine, self._changes]
        self._restoring = Restoring(engine, self._writers)
        self._explaining = Explaining(engine)
        engine.actors += [self._verifying, self._sharing, self._restoring, self._explaining]
        engine.runner_ended, engine.runner_moved = self._runner_ended, self._changes.moved
        self._eager = engine.rng.random() < 0.5
        self._small = engine.rng.random() < 0.3
        self._groups = engine.rng.choice((1, 2, 3))

    def run(self) -> PairOutcome:
        engine = self._engine
        with housekeeping(eager=self._eager), seeded(engine.rng, small=self._small), narrow_pages(self._groups):
            try:
                self._run()
            finally:
                end_suspended()
        self._note_faults()
        self._note_pages()
        self._note_crossed()
        engine.backend.drop()
        pairs = features.pairs(engine.happened)
        happened = Counter(engine.happened.keys())
        return PairOutcome(engine.seed, engine.wrong, pairs, happened, engine.faults.injected, engine.reached)

    def _run(self) -> None:
        engine = self._engine
        if engine.forced.features:
            self._rest(_CHUNKS_KEPT_SECONDS if engine.forced.has(features.EXPIRED) else SETTLED)
        engine.go()
        self._writers.touch()
        engine.go()
        self._audit("after turmoil", whole=False)
        engine.wrong += self._restoring.wrong()
        engine.calm_down()
        self._note_quarantined()
        if not self._changes.make_whole():
            return
        if self._quarantine.redrive_all():
            engine.go()
        self._audit("made whole", whole=True)
        self._block()
        least = 2 if engine.forced.has(features.REPAIRED) else 0
        for _ in range(0 if "spoil" in engine.without else engine.rng.randint(least, 2)):
            self._verifying.spoil()
        self._explaining.explain_all()
        for _ in range(2):
            if self._verifying.verify() is None:
                engine.wrong.append("a verification with nothing in its way did not end")
        engine.ledger.repair_lost()
        if self._quarantine.redrive_all():
            engine.go()
        self._audit("repaired", whole=True)
        self._explaining.explain_all()
        self._changes.drop_undeclared()
        self._writers.touch()
        engine.go()
        self._audit("dropped", whole=True)
        engine.wrong += [*self._sharing.wrong(), *crossed.wrong(self._truth())]

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
        left = engine.operations // 2
        engine.operations -= left
        engine.go()
        engine.clock.advance(seconds)
        engine.operations = left

    def _audit(self, when: str, *, whole: bool) -> None:
        engine = self._engine
        found = audit(engine.backend, engine.deployments.declared, whole=whole, truth=self._truth())
        engine.wrong += [f"{when}: {text}" for text in found + engine.function.standstills]

    def _truth(self) -> Truth:
        return Truth(self._engine.backend, self._engine.ledger)

    def _runner_ended(self, runner: Runner) -> None:
        self._changes.ended(runner)
        if runner.error is None and isinstance(runner.work, Verification):
            self._verifying.ended(runner)

    def _note_quarantined(self) -> None:
        for _, record in self._engine.backend.history():
            image = record["dynamodb"].get("NewImage") or {}
            if image.get("_type") == {"S": "quarantine"}:
                self._engine.note(features.QUARANTINED, image.get("names", {}).get("SS", features.EVERYTHING))

    def _note_crossed(self) -> None:
        for item in self._truth().items_of("_crossing"):
            self._engine.note(features.CROSSED, [item["aggregate"]["S"]])

    def _note_pages(self) -> None:
        for _, record in self._engine.backend.history():
            old, new = (record["dynamodb"].get(name) or {} for name in ("OldImage", "NewImage"))
            if is_page(new):
                self._engine.note(features.PAGED, [new["_type"]["S"]])
                if new.get("_level") != old.get("_level"):
                    self._engine.note(features.PAGE_SPLIT, [new["_type"]["S"]])

    def _note_faults(self) -> None:
        told = {
            features.CRASHED: ("crash",),
            features.THROTTLED: ("throttled", "conflict", "nine in ten"),
            features.REQUESTS: ("lost", "late", "slow", "internal"),
            features.ZOMBIES: (coverage.TIMED_OUT,),
            features.REDELIVERED: (coverage.REWOUND, coverage.REPLAYED),
            features.SPLIT: (coverage.SPLIT, NEAR),
        }
        met = +(self._engine.faults.injected + self._engine.reached + self._engine.function.reached)
        for feature, words in told.items():
            if any(word in name for name in met for word in words):
                self._engine.note(feature)


def check(
    seed: int, make_backend: MakeBackend = MemoryBackend, engine: str = "memory", without: Collection[str] = ()
) -> PairOutcome:
    """Run one schedule; raise `WrongPairError` if anything is wrong."""
    outcome = PairSchedule(seed, make_backend, without).run()
    if outcome.wrong:
        raise WrongPairError(outcome, engine, without)
    return outcome
