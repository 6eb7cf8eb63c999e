"""Deployments, backfills, drops, verifications and repairs, by runners that are killed, doubled and resumed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.backfill import DELETING, Backfill, Dropping
from counters_lambda.counting.verification import (
    AT_LEAST,
    CHANGED_MEANWHILE,
    ERASED_MEANWHILE,
    Difference,
    Verification,
)
from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._declarations import Aggregate, Declaration, Direct
from dynamodb_counters._items.schema import SCORE, VERSION
from dynamodb_counters._registry import read_registry
from dynamodb_counters.errors import BackfillError, CommitError
from simulation.faults.actors import Crashed
from simulation.oracle.aggregates import Parts
from simulation.oracle.layout import HeldGroup, held_groups, is_page
from simulation.pairs import features
from simulation.pairs.calls import Runner
from simulation.pairs.declared import signature, with_below
from simulation.pairs.engine import Act, Engine
from simulation.pairs.ledger import Place
from simulation.pairs.truth import Truth, nonzero, ranked
from simulation.pairs.writers import Writers

_MOST_CHANGES: Final = 3
_MOST_RUNS: Final = 3
_MOST_DROPS: Final = 2
_MOST_AT_A_TIME: Final = 3
_MOST_VERIFICATIONS: Final = 2
_MOST_RUNNERS: Final = 4
_TRIES: Final = 3
_MOST_TRIES: Final = 4

LOST: Final = "item of a group deleted"
LOST_PAGE: Final = "page deleted"
BLOCKED: Final = "group that takes no deltas for a while"
LEFT: Final = "runner left behind goes on"
RESUMED: Final = "run resumed by its name"

EMPTIED: Final = "items deleted, to be filled anew"

SETTLED: Final = 30 * 60.0
"""After so long, what Lambda gave up on is in the way of no run."""


class Changes:
    """Deploys something else, backfills what waits for it or counts already, and drops names."""

    def __init__(self, engine: Engine, writers: Writers) -> None:
        self._engine = engine
        self._writers = writers
        self._changes = engine.rng.randint(0, _MOST_CHANGES)
        if "redeclare" in engine.without:
            self._changes = 0
        self._runs = engine.rng.randint(0, _MOST_RUNS) if engine.swarm is None else 0
        self._drops = engine.rng.randint(0, _MOST_DROPS) if engine.swarm is None else 0
        self._left_behind: list[Runner] = []
        if engine.swarm is None:
            engine.trouble += [self._kill, self._kill, self._double, self._resume]

    def acts(self) -> Iterable[Act]:
        if not (self._changes or self._runs or self._drops) or not self._engine.registered():
            return
        # Before its first batch, a table does not show by which definition a transaction has counted.
        has_time = len(self._engine.runners) < _MOST_AT_A_TIME
        if self._changes:
            yield 2 if self._engine.swarm is None else 4, self._redeclare
        if self._runs and has_time:
            yield 6 if self._is_wanting() else 1, self._backfill
        if self._drops and has_time:
            yield 1, self._drop

    def _is_wanting(self) -> bool:
        """Return whether something waits for a backfill."""
        entries = read_registry(self._engine.table()).names.values()
        return any(entry.state in ("waiting", "stale") and not entry.dropped for entry in entries)

    def _redeclare(self) -> None:
        engine = self._engine
        self._changes -= 1
        registered = engine.registered()
        kind, names = engine.deployments.change(renames="rename" not in engine.without)
        declared = {level.name: level for level in engine.deployments.declared if level.name in names}
        new = {name for name in declared if not _contradicting(declared[name], registered)} - registered.keys()
        changed = {name for name in declared.keys() & registered if _contradicting(declared[name], registered)}
        engine.note(features.REDEFINED, changed)
        if kind == features.RENAMED and new:
            engine.note(kind, names)
        else:
            engine.note(features.ADDED, new)
            engine.note(features.REMOVED, (names & registered.keys()) - declared.keys())
        self.deploy(stragglers=engine.rng.random() < (0.15 if engine.swarm is None else 0.5))

    def write(self) -> None:
        self._writers.write()

    def deploy(self, *, stragglers: bool = False) -> None:
        """Deploy what is declared; the next batch registers what is new."""
        if names := self._engine.deployments.change_attributes():
            self._engine.note(features.ATTRIBUTES, names)
        self._engine.function.deploy(self._engine.deployments.deployed, stragglers=stragglers)
        self._writers.touch()

    def make_whole(self) -> bool:
        """Deploy, end what is under way, and backfill everything that is not complete, with nothing in the way."""
        engine = self._engine
        self.deploy()
        for _ in range(_MOST_TRIES):
            self._settle()
            entries = read_registry(engine.table()).names.values()
            if all(entry.is_complete for entry in entries):
                return True
            if dropped := [entry.name for entry in entries if entry.dropped]:
                self.start(Dropping, dropped)
                engine.go()
                self._settle()
            for run in read_registry(engine.table()).backfills:
                self.start(Backfill, run=run.id)
                engine.go()
            if self._is_wanting():
                self.start(Backfill)
                engine.go()
        rest = [entry for entry in entries if not entry.is_complete]
        engine.wrong.append(f"with nothing in the way of backfills, there is left {rest}, after {self._last.error!r}")
        return False

    def fill_anew(self, name: str, until: str) -> Runner:
        """Fill a name that is complete, until its backfill is in a phase."""
        runner = self.start(Backfill, [name])
        self._engine.go(lambda: runner.phase == until and bool(runner.run))
        return runner

    def _settle(self) -> None:
        """Let every process know of the registry as it is, and count what was written."""
        self._engine.clock.advance(FRESH + 1)
        self._writers.touch()
        self._engine.go()

    def _backfill(self) -> None:
        self._runs -= 1
        draw = self._engine.rng
        names = sorted(name for name, node in self._engine.registered().items() if not isinstance(node.source, Direct))
        some = draw.sample(names, draw.randint(1, min(3, len(names))))
        self.start(Backfill, draw.choice(((), (), some)) if self._is_wanting() else some)

    def _drop(self) -> None:
        """Drop a name, mostly with all that counts it; perhaps one that is declared, and so comes back."""
        engine, draw = self._engine, self._engine.rng
        self._drops -= 1
        registered = engine.registered()
        declared = {level.name: level for level in engine.deployments.declared}
        others = sorted(registered.keys() - declared.keys())
        # It comes back with another definition.
        changed = [
            name for name in sorted(registered) if name in declared and _contradicting(declared[name], registered)
        ]
        name = draw.choice(draw.choice([others, changed, changed]) or sorted(registered))
        self.start(Dropping, _over(name, registered) if draw.random() < 0.9 else [name])

    def drop_undeclared(self) -> None:
        """Drop all that nothing declares, with nothing in the way."""
        engine = self._engine
        registered, declared = engine.registered(), {level.name for level in engine.deployments.declared}
        if names := [name for name in sorted(registered) if declared.isdisjoint(_over(name, registered))]:
            runner = self.start(Dropping, names)
            engine.go()
            if runner.error is not None or engine.registered().keys() & {*names}:
                engine.wrong.append(f"the last drop, of {names}, ended with {runner.error!r}")

    def start(self, kind: Callable[..., Any], names: Iterable[str] = (), run: str = "") -> Runner:
        """Have another process begin a run or a drop, or go on with a run."""
        self._last = Runner(self._engine.backend, self._engine.rng, names=tuple(names), run=run, kind=kind)
        self._engine.runners.append(self._last)
        return self._last

    def _again(self, runner: Runner) -> None:
        """Have another process do the same."""
        self.start(runner.kind, () if runner.run else runner.names, runner.run)

    def _go_on(self, runner: Runner) -> None:
        """Have another process go on with what one does that is gone, or is there still."""
        if runner.phase and self._engine.rng.random() < 0.8:
            self._again(runner)

    def _kill(self) -> None:
        """Let a process die, or seem dead and go on later; usually another one goes on with its run."""
        engine = self._engine
        if engine.runners and engine.faults.strikes("runner killed"):
            engine.note(features.CRASHED)
            self._leave(engine.rng.choice(engine.runners), 0.3)
        elif self._left_behind:
            engine.reached[LEFT] += 1
            engine.runners.append(self._left_behind.pop())

    def _leave(self, runner: Runner, alive: float) -> None:
        self._engine.reached[f"runner killed while {runner.phase}"] += runner.is_emptying
        self._engine.runners.remove(runner)
        if self._engine.rng.random() < alive:
            self._left_behind.append(runner)
        self._go_on(runner)

    def moved(self, runner: Runner) -> None:
        """Let another process begin where a run comes to another phase; perhaps the one before is left behind."""
        self._engine.reached[EMPTIED] += (runner.kind, runner.phase) == (Backfill, DELETING)
        if runner.phase and len(self._engine.runners) < _MOST_RUNNERS and self._engine.rng.random() < 0.15:
            self._engine.reached[f"runner doubled while {runner.phase}"] += runner.is_emptying
            self._again(runner)
            if self._engine.rng.random() < 0.5:
                self._engine.runners.remove(runner)
                self._left_behind.append(runner)

    def _double(self) -> None:
        runners = [runner for runner in self._engine.runners if runner.phase]
        if runners and len(self._engine.runners) < _MOST_RUNNERS and self._engine.faults.strikes("run doubled"):
            self._go_on(self._engine.rng.choice(runners))

    def _resume(self) -> None:
        """Go on with a run that is open, also one whose process died before it showed its name."""
        ids = {runner.run for runner in self._engine.runners}
        runs = read_registry(self._engine.table()).runs
        if orphans := [run for run in runs if run.id not in ids]:
            run = self._engine.rng.choice(orphans)
            self._engine.reached[RESUMED] += 1
            self.start(Backfill if run.kind == "backfill" else Verification, run=run.id)

    def ended(self, runner: Runner) -> None:
        engine, error = self._engine, runner.error
        if error is None:
            truth = Truth(engine.backend, engine.ledger)
            if runner.kind is Dropping:
                engine.note(features.DROPPED, runner.names)
            elif truth.phase(runner.run) != "complete":
                engine.wrong.append(f"run {runner.run}: said to be complete, but is not")
            elif runner.kind is Backfill:
                engine.note(features.BACKFILLED, truth.names_of(runner.run))
        elif isinstance(error, ClientError | BotoCoreError | CommitError | Crashed):
            self._go_on(runner)
        elif not isinstance(error, BackfillError):
            engine.wrong.append(f"run {runner.run}: {type(error).__name__}: {error}")


def _contradicting(declared: Declaration, registered: Mapping[str, Declaration]) -> bool:
    """Return whether a name is counted by another definition, or something that it looks at."""
    return any(
        node.name in registered and signature(node) != signature(registered[node.name]) for node in with_below(declared)
    )


def _over(name: str, registered: Mapping[str, Declaration]) -> list[str]:
    """Return a name, and those of all that counts it."""
    return [other for other in sorted(registered) if name in {level.name for level in with_below(registered[other])}]


class Verifying:
    """Spoils groups, verifies while all else goes on, judges the statuses, and repairs."""

    def __init__(self, engine: Engine, changes: Changes) -> None:
        self._engine = engine
        self._changes = changes
        self._verifications = engine.rng.randint(0, _MOST_VERIFICATIONS)
        self._spoils = engine.rng.randint(0, 3)
        self._ended: list[Verification] = []
        self._blocked: set[Place] = set()

    def acts(self) -> Iterable[Act]:
        if any(runner.kind is Verification for runner in self._engine.runners):
            return
        if self._verifications:
            yield 2, self._verify
        if self._spoils:
            yield 1, self.spoil

    def _verify(self) -> None:
        self._verifications -= 1
        self._changes.start(Verification)

    def verify(self) -> Verification | None:
        """Verify with nothing in the way; None if it is refused."""
        before = len(self._ended)
        for _ in range(_TRIES):
            self._changes.start(Verification)
            self._engine.go()
            if len(self._ended) > before:
                return self._ended[-1]
            self._engine.clock.advance(SETTLED)
        return None

    def spoil(self) -> None:
        """Change a group that readers use, other than by an event; in the end perhaps delete its item."""
        engine, draw = self._engine, self._engine.rng
        truth = Truth(engine.backend, engine.ledger)
        groups = [group for group in self._groups(truth) if group.place not in self._blocked]
        if not groups:
            return
        self._spoils -= 1
        chosen = draw.choice(groups)
        item, declaration = chosen.item, chosen.declaration
        together = list(held_groups(declaration, item))
        is_sure = engine.calm and not truth.may_have_expired(declaration.name) and self._may_go(item)
        if is_sure and draw.random() < 0.5 and not self._blocked.intersection(group.place for group in together):
            # With it go its watermarks: a first repair may miss some, a second one must not.
            engine.backend.client.delete_item(TableName=engine.backend.name, Key=chosen.key)
            engine.reached[LOST_PAGE if declaration.pages else LOST] += 1
            for group in together:
                engine.ledger.losses.add(group.place)
                loss = {name: -Decimal(item[key]["N"]) for name, key in group.names.items() if key in item}
                engine.ledger.spoil(group.place, truth.run_of(declaration.name), loss)
            return
        changed = self._change(declaration)
        self._update(chosen, "ADD", {name: {"N": str(number)} for name, number in changed.items()})
        engine.ledger.spoil(chosen.place, truth.run_of(declaration.name), changed)

    def _may_go(self, item: Mapping[str, Any]) -> bool:
        """Return whether no page has split off from an item."""
        if not is_page(item):
            return True
        first = int(item["sk"]["S"].rpartition("#")[2].ljust(16, "0"), 16)
        level, born = int(item.get("_level", {"N": "0"})["N"]), 65 - (first & -first).bit_length() if first else 0
        return level == born and not any(name[1:2] == "=" and name[0].isupper() for name in item)

    def block(self) -> str:
        """Have deltas of a group wait that no aggregate counts, as its item can take none for a while: of this name."""
        engine, draw = self._engine, self._engine.rng
        truth = Truth(engine.backend, engine.ledger)
        looked_at = {level.source.name for level in truth.registered.values()}
        groups = [group for group in self._groups(truth) if group.declaration.name not in looked_at and group.measures]
        if not groups:
            return ""
        chosen = draw.choice(groups)
        self._blocked.add(chosen.place)
        engine.reached[BLOCKED] += 1
        values = {name: chosen.item[chosen.names[name]] for name in chosen.measures}
        self._update(chosen, "SET", {name: {"S": "taken"} for name in values})
        for _ in range(draw.randint(5, 15)):
            self._changes.write()
        engine.go()
        if chosen.declaration.pages:
            # It may lie in another page by now.
            [chosen] = [group for group in self._groups(truth) if group.place == chosen.place]
        self._update(chosen, "SET", values)
        return chosen.declaration.name

    def _groups(self, truth: Truth) -> list[HeldGroup]:
        """Return the groups that readers use, as items hold them, in a fixed order."""
        groups, complete = list[HeldGroup](), truth.complete()
        for item in sorted(self._engine.backend.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"])):
            declaration = truth.registered.get(item.get("_type", {}).get("S", ""))
            if not isinstance(declaration, Aggregate) or isinstance(declaration.source, Direct):
                continue
            if declaration.name in complete:
                groups += [group for group in held_groups(declaration, dict(item)) if group.is_counted]
        return groups

    def _change(self, declaration: Aggregate) -> Parts:
        """Parts to add to a group: one or more measures, and what it is ranked by, or that alone."""
        draw = self._engine.rng
        if self._engine.calm and declaration.ranking is not None and draw.random() < 0.3:
            return {SCORE: Decimal(draw.choice((-3, 2)))}
        names = draw.sample(declaration._attributes, draw.randint(1, len(declaration._attributes)))
        return ranked(declaration, {name: Decimal(draw.choice((-3, -1, 1, 2))) for name in names})

    def _update(self, group: HeldGroup, verb: str, values: Mapping[str, Any]) -> None:
        between = " = " if verb == "SET" else " "
        changes = ", ".join(f"#n{index}{between}:n{index}" for index in range(len(values)))
        # Or a split that has read the page before would take the change back.
        version = {"#v": VERSION} if group.declaration.pages else {}
        values_by_name = {f":n{index}": value for index, value in enumerate(values.values())}
        self._engine.backend.client.update_item(
            TableName=self._engine.backend.name,
            Key=group.key,
            UpdateExpression=f"{verb} {changes}" + (f"{',' if verb == 'ADD' else ' ADD'} #v :one" if version else ""),
            ExpressionAttributeNames={
                **{f"#n{index}": group.names[name] for index, name in enumerate(values)},
                **version,
            },
            ExpressionAttributeValues={**values_by_name, **({":one": {"N": "1"}} if version else {})},
        )

    def ended(self, runner: Runner) -> None:
        """Judge a verification, and repair what it says has drifted."""
        work, engine = runner.work, self._engine
        assert isinstance(work, Verification)
        self._ended.append(work)
        if not work.compared:
            # Another process has ended its run, or there is no group.
            return
        truth = Truth(engine.backend, engine.ledger)
        # Some may have been emptied meanwhile.
        opened, complete = truth.opened_at(runner.run), truth.complete()
        verified = [
            name for name in truth.names_of(runner.run) if name in complete and truth.entries[name].at <= opened
        ]
        engine.note(features.VERIFIED, verified)
        engine.reached["groups verified: compared"] += work.compared
        differences = [difference for difference in work.differences if difference.ref[0] in verified]
        statuses = {(difference.ref, difference.status, difference.reason) for difference in differences}
        engine.reached.update(f"groups verified: {status} {reason}".strip() for _, status, reason in statuses)
        cases: defaultdict[Place, list[Difference]] = defaultdict(list)
        for finding in differences:
            cases[finding.ref[0], truth.group_of(truth.registered[finding.ref[0]], dict(finding.group))].append(finding)
        engine.wrong += [f"verification: {text}" for text in self._wrong(truth, cases, verified, runner.run)]
        done, refused = work.repair()
        if work.repair()[0]:
            engine.wrong.append("verification: a repair was done twice")
        if refused:
            engine.wrong.append(f"verification: {refused} groups could not be repaired")
        if done:
            engine.note(features.REPAIRED, {finding.ref[0] for finding in differences if finding.status == "drifted"})
        for place, some in cases.items():
            for finding in some if isinstance(truth.registered[place[0]], Aggregate) else ():
                missing = _missing(finding) if finding.status == "drifted" else {}
                engine.ledger.spoil(place, truth.run_of(place[0]), missing)

    def _wrong(
        self, truth: Truth, cases: Mapping[Place, list[Difference]], verified: list[str], run: str
    ) -> Iterator[str]:
        spoiled = [place for place, parts in truth.spoiled.items() if nonzero(parts)]
        for place in sorted({*cases, *(place for place in spoiled if place[0] in verified)}):
            lacks = truth.lack(*place, run)
            waits = truth.waits(place[0]) or place in self._engine.ledger.losses
            scores = sum(_missing(finding).get(SCORE, 0) for finding in cases.get(place, ()))
            for finding in cases.get(place, ()):
                # A score that differs from its measure is certain, although the measure is not.
                missing = {name: scores if name == SCORE else number for name, number in _missing(finding).items()}
                # A window's slots are no groups of the truth: nothing is ever wrong with them but age.
                is_certain = finding.status == "drifted" or isinstance(truth.registered[place[0]], Aggregate)
                # A transaction that counts during the comparison is in the number or not.
                is_certain &= finding.reason not in (CHANGED_MEANWHILE, ERASED_MEANWHILE)
                is_wrong = any(lacks.get(name, 0) != number for name, number in missing.items())
                if is_certain and not waits and is_wrong:
                    yield f"{place} lacks {lacks}, but is said to lack {missing} ({finding.status})"
                if not _may_be(finding, truth, run, is_blocked=place in self._blocked):
                    yield f"{place} is {finding.status} ({finding.reason}), which nothing explains"
            if not waits and lacks.keys() - {name for finding in cases.get(place, ()) for name in finding.missing}:
                yield f"{place} lacks {lacks}, which is not reported"


def _may_be(difference: Difference, truth: Truth, run: str, *, is_blocked: bool) -> bool:
    """Return whether the table shows a reason for a status."""
    name = difference.ref[0]
    if difference.status == "drifted":
        # A group has not drifted for holding what has gone.
        return difference.reason == AT_LEAST or difference.missing.keys() == {SCORE} or not truth.exceeds(name, run)
    if difference.status == "unknown":
        return difference.reason in (CHANGED_MEANWHILE, ERASED_MEANWHILE) or truth.may_have_expired(name)
    # It may have been redriven since the verification looked.
    return truth.waits(name, ever=True, deltas=is_blocked)


def _missing(difference: Difference) -> Parts:
    return {name: Decimal(number) for name, number in difference.missing.items()}
