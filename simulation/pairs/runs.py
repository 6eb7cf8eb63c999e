"""Deployments, backfills, verifications and repairs, by runners that are killed, doubled and resumed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.repair import Difference
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters.errors import BackfillError
from simulation.backfill.backfill_actors import BackfillActor
from simulation.backfill.subjects import Parts
from simulation.faults.actors import Crashed
from simulation.pairs import features
from simulation.pairs.engine import Act, Engine
from simulation.pairs.truth import PairTruth, nonzero
from simulation.pairs.writers import Writers

Place = tuple[str, tuple[str, ...]]

_MOST_CHANGES: Final = 3
_MOST_RUNS: Final = 3
_MOST_VERIFICATIONS: Final = 2
_TRIES: Final = 3

SETTLED: Final = 30 * 60.0
"""After so long, what Lambda gave up on is in the way of no run, and generations that were replaced are gone."""


class Changes:
    """Deploys something else, and backfills what waits for it."""

    def __init__(self, engine: Engine, writers: Writers) -> None:
        self._engine = engine
        self._writers = writers
        self._changes = len(engine.deployments.first) or engine.rng.randint(0, _MOST_CHANGES)
        self._runs = engine.rng.randint(0, _MOST_RUNS)

    def acts(self) -> Iterable[Act]:
        # Before its first batch, a table tells nobody by which definition a transaction has counted.
        if self._changes and self._engine.taken_over():
            yield 20 if self._engine.deployments.first else 2, self._redeclare
        if self._runs and len(self._engine.runners) < 3:
            yield 2, self._backfill
        if self._engine.runners:
            yield 1, self._kill
            yield 1, self._double

    def _redeclare(self) -> None:
        engine = self._engine
        self._changes -= 1
        engine.note(*engine.deployments.change(renames="rename" not in engine.without))
        self.deploy(stragglers=engine.rng.random() < 0.15)

    def deploy(self, *, stragglers: bool = False) -> None:
        """Deploy what is declared; it takes over with the next batch."""
        self._engine.function.deploy(self._engine.deployments.subjects, stragglers=stragglers)
        self._writers.touch()

    def _backfill(self) -> None:
        self._runs -= 1
        names = [declared.name for declared in self._engine.deployments.declared]
        some = self._engine.rng.sample(names, self._engine.rng.randint(1, len(names)))
        self._engine.runners.append(self.runner(Backfill, self._engine.rng.choice(((), (), some))))

    def runner(self, kind: Any, names: Iterable[str] = (), run: str = "") -> BackfillActor:
        engine = self._engine
        return BackfillActor(
            engine.backend, engine.backend.described, engine.rng, names=tuple(names), run=run, kind=kind
        )

    def _kill(self) -> None:
        """A process dies; usually another one goes on with its run."""
        engine = self._engine
        if engine.faults.strikes("runner killed"):
            engine.note(features.CRASHED)
            runner = engine.rng.choice(engine.runners)
            engine.runners.remove(runner)
            if runner.run and engine.rng.random() < 0.8:
                engine.runners.append(self.runner(type(runner.work), run=runner.run))

    def _double(self) -> None:
        known = [runner for runner in self._engine.runners if runner.run]
        if known and self._engine.faults.strikes("run doubled"):
            runner = self._engine.rng.choice(known)
            self._engine.runners.append(self.runner(type(runner.work), run=runner.run))

    def ended(self, runner: BackfillActor) -> None:
        engine, error = self._engine, runner.error
        if error is None:
            if isinstance(runner.work, Backfill):
                engine.note(features.BACKFILLED, PairTruth(engine.backend, engine.ledger).names_of(runner.run))
        elif isinstance(error, ClientError | BotoCoreError | Crashed):
            if runner.run and engine.rng.random() < 0.8:
                engine.runners.append(self.runner(type(runner.work), run=runner.run))
        elif not isinstance(error, BackfillError):
            engine.wrong.append(f"run {runner.run}: {type(error).__name__}: {error}")


class Verifying:
    """Spoils groups, verifies beside everything else, judges what is told, and repairs."""

    def __init__(self, engine: Engine, changes: Changes) -> None:
        self._engine = engine
        self._changes = changes
        self._left = engine.rng.randint(0, _MOST_VERIFICATIONS)
        self._spoils = engine.rng.randint(0, 3)
        self._forces = engine.forced.has(features.REPAIRED)
        self._ended: list[Verification] = []

    def acts(self) -> Iterable[Act]:
        if not self._is_verifying():
            # As the docs say: before one repairs, what Lambda gave up on is redriven, which is in no count yet.
            if self._left and not self._engine.deliveries.lost():
                yield 2, self._verify
            if self._spoils:
                yield 1, self.spoil

    def _is_verifying(self) -> bool:
        return any(isinstance(runner.work, Verification) for runner in self._engine.runners)

    def _verify(self) -> None:
        self._left -= 1
        self._engine.runners.append(self._changes.runner(Verification))

    def verify(self) -> Verification | None:
        """Verify with nothing in the way, unless Lambda has just given up on something; None if it is refused."""
        before = len(self._ended)
        for _ in range(_TRIES):
            self._engine.runners.append(self._changes.runner(Verification))
            self._engine.go()
            if len(self._ended) > before:
                return self._ended[-1]
            self._engine.clock.advance(SETTLED)
        return None

    def spoil(self) -> None:
        """Change a group that readers use, behind everybody's back."""
        engine, draw = self._engine, self._engine.rng
        truth = PairTruth(engine.backend, engine.ledger)
        held = [item for item in engine.backend.items() if item.get("_type", {}).get("S", "") in truth.read_names()]
        held = [item for item in held if isinstance(truth.folded.get(item["_type"]["S"]), Aggregate)]
        if not held:
            return
        if self._forces:
            held = [item for item in held if engine.forced.concerns([item["_type"]["S"]])] or held
        self._spoils -= 1
        item = draw.choice(sorted(held, key=lambda item: (item["pk"]["S"], item["sk"]["S"])))
        declaration = truth.folded[item["_type"]["S"]]
        assert isinstance(declaration, Aggregate)
        attribute, number = draw.choice(declaration.attributes), draw.choice((-3, -1, 1, 2))
        names = {"#n0": attribute, **({"#n1": "_score"} if _is_score(declaration, attribute) else {})}
        engine.backend.client.update_item(
            TableName=engine.backend.name,
            Key={"pk": item["pk"], "sk": item["sk"]},
            UpdateExpression="ADD " + ", ".join(f"{name} :n" for name in names),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":n": {"N": str(number)}},
        )
        values = values_of(declaration, item)
        assert values is not None
        place = declaration.name, tuple(values[field] for field in declaration.fields)
        engine.ledger.spoil(place, {attribute: Decimal(number)})

    def ended(self, runner: BackfillActor) -> None:
        """Judge a verification, and repair what it says has drifted."""
        work, engine = runner.work, self._engine
        assert isinstance(work, Verification)
        self._ended.append(work)
        if not work.compared:
            # Another process has ended its run, or there is no group.
            return
        truth = PairTruth(engine.backend, engine.ledger)
        verified = truth.names_of(runner.run)
        engine.note(features.VERIFIED, verified)
        engine.verdicts["compared"] += work.compared
        judged = {(each.ref, each.verdict, each.reason) for each in work.differences}
        engine.verdicts.update(f"{verdict} {reason}".strip() for _, verdict, reason in judged)
        told: defaultdict[Place, list[Difference]] = defaultdict(list)
        for each in work.differences:
            told[each.ref[0], truth.group_of(truth.folded[each.ref[0]], dict(each.group))].append(each)
        # A run that shards split in waiting begins again, and may so begin after records were lost.
        if not engine.deliveries.lost_at(work._cut_at):
            engine.wrong += [f"verification: {text}" for text in self._wrong(truth, told, verified, runner.run)]
        done, refused = work.repair()
        if refused:
            engine.wrong.append(f"verification: {refused} groups could not be repaired")
        if done:
            engine.note(features.REPAIRED, {each.ref[0] for each in work.differences if each.verdict == "drift"})
        for place, some in told.items():
            for each in some if isinstance(truth.folded[place[0]], Aggregate) else ():
                engine.ledger.spoil(place, _missing(each) if each.verdict == "drift" else {})

    def _wrong(
        self, truth: PairTruth, told: Mapping[Place, list[Difference]], verified: list[str], run: str
    ) -> Iterator[str]:
        spoiled = [place for place, parts in self._engine.ledger.spoiled.items() if nonzero(parts)]
        for place in sorted({*told, *(place for place in spoiled if place[0] in verified)}):
            lacks, waits = truth.lack(*place, run), truth.waits(place[0])
            for each in told.get(place, ()):
                missing = _missing(each)
                # A window's slots are no groups of the truth: nothing is ever wrong with them but age.
                is_certain = each.verdict == "drift" or isinstance(truth.folded[place[0]], Aggregate)
                is_wrong = any(lacks.get(name, 0) != number for name, number in missing.items())
                if is_certain and not waits and is_wrong:
                    yield f"{place} lacks {lacks}, but is said to lack {missing} ({each.verdict})"
                if not _may_be(each, truth, place[0]):
                    yield f"{place} is {each.verdict} ({each.reason}), which nothing explains"
            if not waits and lacks.keys() - {name for each in told.get(place, ()) for name in each.missing}:
                yield f"{place} lacks {lacks}, which is not reported"


def _may_be(each: Difference, truth: PairTruth, name: str) -> bool:
    """Whether the table shows a reason for a verdict."""
    if each.verdict == "unknown":
        return "transaction" in each.reason or truth.may_have_expired(name)
    # It may have been redriven since the verification looked.
    return each.verdict == "drift" or truth.waits(name, ever=True)


def _is_score(declaration: Aggregate, attribute: str) -> bool:
    return declaration.ranking is not None and declaration.ranking.measure == attribute


def _missing(each: Difference) -> Parts:
    return {name: Decimal(number) for name, number in each.missing.items() if name != "_score"}
