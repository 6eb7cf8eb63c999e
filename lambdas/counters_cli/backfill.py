"""``counters backfill``, ``drop`` and ``verify``: what reads the whole table, in runs.

A backfill brings names to where they would be had they always been counted:

emptied    nobody folds the names, and none of their items is left
opened     they are filled from `since` on, which lies ahead; every process knows of it by then
scanning   each item contributes what it did at the cut
draining   the log has what changed meanwhile
adding     each group gets its baseline, once
complete   readers say so

Each step of emptying is a write to the registry, or a wait for those who rely on what it was before. A process may die
in any of them, and another one goes on; two that empty the same name do not disturb each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, Self, TypeVar, get_args

import click

from counters_cli.output import counted, number, progress_on, span, table
from counters_cli.session import Exit, Session, command
from counters_lambda.counting import runner
from counters_lambda.counting.commit import Part
from counters_lambda.counting.feeds import ServiceTime, is_emulated, scan_page, units_of
from counters_lambda.counting.run_logs import found_by
from counters_lambda.counting.runner import DRAINING, VOID, Progress, Runner, Work
from counters_lambda.counting.verification import SETTLING, Status, Verification
from dynamodb_counters import _registry
from dynamodb_counters._assumptions import FRESH, GIVEN_UP_SETTLED, KNOWN_AT_ONCE, ONE_CLOCK
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.fold import Delta
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import BASELINE, PK, SK, TYPE, update_as_seen
from dynamodb_counters._quarantine import confirm
from dynamodb_counters._registry import COMPLETE, STALE, WAITING, Entry, Registry, read_registry, write_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import MINUTE
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, Watermark

DELETING: Final = "deleting"
WITHHOLDING: Final = "withholding"
ADDING: Final = "adding"

_AT_A_TIME: Final = 256
_CONTENDED: Final = "another process works on the same names: run it again"
_PARTS: Final = 1 << 60
"""Parts into which a baseline may be divided: whatever their number is, a part lies between the same records."""
_SETTLING: Final = 5 * MINUTE  # After which an aggregate that has not caught up lags, as counts may


def names_to_fill(registry: Registry, names: Collection[str]) -> list[Entry]:
    """Return the entries that a backfill fills: of some names, by default of all that wait; and of what is over them.

    What these count is filled, too, where it is not complete.
    """
    entries = {name: entry for name, entry in registry.names.items() if not entry.dropped}
    below = {declaration.name: [*with_below(declaration)] for declaration in registry.declarations}
    _check_names(entries, below, names)
    lacking = {
        name
        for name, levels in below.items()
        if entries.keys() >= {level.name for level in levels} and entries[name].state in (WAITING, STALE)
        if not isinstance(levels[0].source, Direct)
    }
    selection = with_parts(names, registry.declarations) or lacking
    for name in selection & below.keys():
        selection |= {level.name for level in below[name]} & lacking
    selection |= {name for name, levels in below.items() if selection & {level.name for level in levels}}
    chosen = [entries[name] for name in sorted(selection & entries.keys())]
    if filling := sorted({entry.run for entry in chosen if entry.state == _registry.FILLING}):
        raise BackfillError(f"run {filling[0]} fills {', '.join(names) or 'it'} already: go on with it by --run")
    return chosen


def _check_names(entries: Mapping[str, Entry], below: Mapping[str, list[Declaration]], names: Collection[str]) -> None:
    unread = {name for name, entry in entries.items() if entry.state != COMPLETE or name in names} - below.keys()
    if unread:
        raise BackfillError(f"this version cannot read {', '.join(sorted(unread))}: install the one that runs")
    for name in names:
        if name not in entries:
            there = ", ".join(sorted(entries)) or "none"
            raise BackfillError(f"invalid name={name!r}: expected one that the table counts: {there}")
        if isinstance(below[name][0].source, Direct):
            raise BackfillError(f"invalid name={name!r}: expected what items are counted in, not a Counter")
        if uncounted := [level.name for level in below[name] if level.name not in entries]:
            raise BackfillError(f"{name!r} counts {uncounted[0]!r}, which nothing counts, or which is being dropped")


@dataclass(kw_only=True)
class Emptying(Work):
    """Empties names of a table; those to be dropped stay registered until then."""

    items: int = 0  # About how many the table has, if known
    deleted: Counter[str] = field(default_factory=Counter)  # Items by name
    scanned: int = 0
    _entries: dict[str, Entry] = field(default_factory=dict)  # Of the names as they were emptied: they wait.
    _drops: ClassVar[bool] = False

    def empty(self, names: Collection[str]) -> Iterator[Progress]:
        """Empty names; yield after each step the phase, and how much of it is done."""
        for _ in self.table.tries():
            registry = read_registry(self.table)
            if missing := sorted({*names} - registry.entries.keys()):
                raise BackfillError(f"{', '.join(missing)}: dropped by another process")
            entries = [registry.entries[name] for name in sorted(names)]
            if all(entry.state == WAITING and entry.dropped == self._drops for entry in entries):
                yield from self._rest(entries, WAITING, self.folded)
                self._entries = {entry.name: entry for entry in entries}
                yield from self._delete_all()
                return
            for declaration in registry.declarations:
                # Processes fold what counts another name only over names that are folded.
                counted = [below.name for below in with_below(declaration) if below.name in names]
                if counted and declaration.name not in names and registry.entries[declaration.name].counts:
                    raise BackfillError(f"{declaration.name!r} counts {counted[0]!r}: run it again")
            yield from self._rest(entries, STALE, self.fresh)
            now = self.now()
            changes = [(entry, after) for entry in entries if (after := self._next(entry, now)) != entry]
            write_registry(self.table, registry, changes, attributes={})
        raise BackfillError("the table's registry changes all the time: try again later")

    def _next(self, entry: Entry, now: float) -> Entry:
        if entry.state == STALE and entry.dropped == self._drops:
            return entry.entering(WAITING, now, since=0, run="")
        if entry.state in _registry.COUNTING:
            return entry.entering(STALE, now, dropped=self._drops)
        # Nobody folds it: only that it is to be dropped is new.
        return replace(entry, dropped=self._drops)

    def _rest(self, entries: list[Entry], state: str, seconds: float) -> Iterator[Progress]:
        """Wait until nobody relies on what names in a state were before."""
        if times := [entry.at for entry in entries if entry.state == state and not entry.fresh]:
            yield from self._until(max(times) + seconds, state)

    def _delete_all(self) -> Iterator[Progress]:
        """Delete all items of names that were ever counted, while these wait as they did."""
        full = {name for name, entry in self._entries.items() if not entry.fresh}
        starts: dict[int, Any] = dict.fromkeys(range(self.segments)) if full else {}
        while starts:
            items: list[Image] = []
            answers = self.table.each(lambda at: scan_page(self.table, at[0], self.segments, at[1]), [*starts.items()])
            for segment, answer in zip([*starts], answers, strict=True):
                self.scanned += len(answer["Items"])
                self._spend(units_of(answer))
                items += [item for item in answer["Items"] if item.get(TYPE, {}).get("S") in full]
                starts[segment] = answer.get("LastEvaluatedKey")
            starts = {segment: start for segment, start in starts.items() if start}
            for start in range(0, len(items), _AT_A_TIME):
                # What was read of them was counted before: the next run has not begun.
                self._require_waiting(read_registry(self.table))
                part = items[start : start + _AT_A_TIME]
                self.table.each(self._delete, part)
                self._spend(len(part))
                self.deleted.update(item[TYPE]["S"] for item in part)
            yield self._step(DELETING, self.scanned, self.items)
        self._require_waiting(read_registry(self.table))

    def _require_waiting(self, registry: Registry) -> None:
        if any(registry.entries.get(name) != entry for name, entry in self._entries.items()):
            raise BackfillError(_CONTENDED)

    def _delete(self, item: Image) -> None:
        """Delete an item as it was read: in the next run its watermarks are later, or it has a baseline of that."""
        names = [TYPE, BASELINE, *(name for name in item if name.startswith(WATERMARK_PREFIX))]
        compared = {name: item.get(name) for name in names}
        self.table.write("delete_item", **update_as_seen(self.table.name, {PK: item[PK], SK: item[SK]}, {}, compared))


@dataclass(kw_only=True)
class Dropping(Emptying):
    """Drops names: empties them, and removes them from the registry, once nobody folds them."""

    _drops: ClassVar[bool] = True

    @classmethod
    def of_table(cls, table: Table, now: Callable[[], float] | None = None, **options: Any) -> Self:
        described = table.client.describe_table(TableName=table.name)
        if is_emulated(described):
            options |= {"fresh": FRESH + ONE_CLOCK, "folded": KNOWN_AT_ONCE}
        items = described["Table"].get("ItemCount", 0)
        return cls(table=table, now=now or ServiceTime(table), items=items, **options)

    def steps(self) -> Iterator[Progress]:
        registry = _registry.founded_registry(self.table)
        names = self._chosen(registry)
        alerts = {entry.name: entry for name in names for entry in registry.thresholds.get(name, ())}
        alerts |= {name: registry.entries[name] for name in names if registry.entries[name].watches}
        if alerts:
            write_registry(self.table, registry, [(entry, None) for entry in alerts.values()])
        if counting := [name for name in names if name not in alerts]:
            yield from self.empty(counting)
            removals = [(entry, None) for entry in self._entries.values()]
            if not write_registry(self.table, read_registry(self.table), removals):
                raise BackfillError(_CONTENDED)

    def _chosen(self, registry: Registry) -> list[str]:
        """Return the names, with those that a `Distinct` is made of; refuse what something else counts."""
        names = {name if name in registry.entries else _registry.threshold_name(name) for name in self.names}
        if unknown := sorted(names - registry.entries.keys()):
            there = ", ".join(sorted(registry.names)) or "none"
            plain = unknown[0].removeprefix(_registry.threshold_name(""))
            raise BackfillError(f"invalid name={plain!r}: expected one that the table counts: {there}")
        names = with_parts(names, registry.declarations) & registry.entries.keys()
        for declaration in registry.declarations:
            name, source = declaration.name, declaration.source.name
            # What was registered since waits: it can be filled once its source is declared anew.
            if name not in names and source in names and not registry.entries[source].dropped:
                raise BackfillError(f"{name!r} counts {source!r}: drop it, too")
        return sorted(names)


@dataclass(kw_only=True)
class Backfill(Emptying, Runner):
    """Backfills some names of a table; by default all that wait for it."""

    withheld: int = 0  # Entries of the quarantine that wait for what was filled: it cannot count them.
    _kind = "backfill"

    def preview(self) -> tuple[list[str], int, int]:
        """Return the names that a run would fill, and about how many items and bytes it would read for them."""
        names = [entry.name for entry in names_to_fill(_registry.founded_registry(self.table), self.names)]
        described = self._described()
        items, size = (sum(table.get(name, 0) for table in described) for name in ("ItemCount", "TableSizeBytes"))
        return names, items, size

    def _prepare(self) -> Iterator[Progress]:
        entries = names_to_fill(_registry.founded_registry(self.table), self.names)
        if not entries:
            raise BackfillError("nothing to backfill: every name counts all there is")
        yield from self.empty([entry.name for entry in entries])

    def _try_to_open(self, registry: Registry, opened: float) -> bool:
        self._require_waiting(registry)
        # What they count may have been emptied meanwhile.
        if [entry.name for entry in names_to_fill(registry, self._entries)] != sorted(self._entries):
            raise BackfillError(_CONTENDED)
        run = self._begin(opened, _registry.scanned_names(self._entries.values()))
        values = {"since": run.since, "run": run.id, "fresh": False, "surplus": False}
        changes = [(entry, entry.entering(_registry.FILLING, opened, **values)) for entry in self._entries.values()]
        # With the header: a command that empties what they count is refused, or refuses this.
        return write_registry(self.table, registry, changes, attributes={}, also=self._also())

    def _finish(self) -> Iterator[Progress]:
        self._enter(DRAINING, ADDING)
        if self.state.phase == ADDING:
            yield from self._withhold()
            yield from self._add()

    def _withhold(self) -> Iterator[Progress]:
        """Let what the baseline lacks wait in quarantine, as if the stream had brought it."""
        pairs = runner.withheld(self._pages())
        while part := list(islice(pairs, _AT_A_TIME)):
            self.table.each(lambda keys: confirm(self.table, *keys), part)
            self._spend(len(part))
            self.withheld += len(part)
            yield self._step(WITHHOLDING, self.withheld, 0)

    def _add(self) -> Iterator[Progress]:
        plan, pages = self._plan(), self._pages()
        mark, committer, added = Watermark(found_by(self.state.run.id)), runner.committer_of(self.table), 0
        mark.name = BASELINE
        for part, parts, sums in runner.baselines(pages, self.state.parts_done, self.state.parts):
            paged, remaining = [ref for ref in sums if plan.programs[ref[0]].layout.pages], len(sums)
            alone = sorted(sums.keys() - set(paged))
            slices = (alone[start : start + _AT_A_TIME] for start in range(0, len(alone), _AT_A_TIME))
            # All that a page gets at once: its mark covers them all.
            for refs in filter(None, (paged, *slices)):
                self._require_open()
                deltas = self._deltas(plan, {ref: sums[ref] for ref in refs}, part, parts)
                result = committer.commit(deltas, Part(plan, (), mark))
                self._spend(result.write_units)
                self.withheld += result.quarantined
                added, remaining = added + len(refs), remaining - len(refs)
                yield self._step(ADDING, added, added + remaining * (parts - part))
            self.state.parts_done, self.state.parts = part + 1, parts
            if not self._write(ADDING):
                self._reload()
                if self.state.phase != ADDING:
                    return
        yield from self._settle(plan)
        if self.state.phase == ADDING:
            if not self._ended(runner.COMPLETE):
                self._void()
            if self.state.phase != runner.COMPLETE:
                raise BackfillError(self._dropped.format(self.run))

    def _deltas(self, plan: Plan, sums: runner.Totals, part: int, parts: int) -> list[Delta]:
        """Return deltas of groups, as one record of a shard of the backfill's own, later than those of earlier runs."""
        begin, step, now = self.state.run.since * _PARTS, _PARTS // parts, self.now()
        first, last = padded(str(begin + part * step + 1)), padded(str(begin + (part + 1) * step))
        deltas = [Delta(plan.programs[ref[0]].layout, ref[1], first, last, sums[ref]) for ref in sums]
        # What is gone may have had its baseline, and a run may rest for long; no reader is promised it so far back.
        return [delta for delta in deltas if not delta.layout.is_gone(delta.group, now)]

    def _settle(self, plan: Plan) -> Iterator[Progress]:
        """Let what counts the filled aggregates catch up, so that readers never see it lack them."""
        declared = [program.layout.declaration for program in plan.programs.values()]
        names = set(self.state.run.names)
        while self.state.phase == ADDING and (names := {over.name for over in declared if over.source.name in names}):
            # Times of records are whole seconds.
            moment = math.ceil(self.now())
            self.table.sleep(moment - self.now())
            for step in self._wait_for_log(partial(self._has_passed_in_own_table, moment)):
                yield step
                if self.now() > moment + _SETTLING:
                    break

    def _changes(self, registry: Registry, state: _registry.State) -> list[tuple[Entry, Entry]]:
        entries = [entry for entry in registry.names.values() if entry.state == _registry.FILLING]
        return [(entry, entry.entering(state, self.now())) for entry in entries if entry.run == self.state.run.id]

    def _void(self) -> None:
        try:
            super()._void()
        finally:
            # Of a run whose other names were dropped or filled anew, the rest goes stale, too.
            registry = _registry.founded_registry(self.table)
            if changes := self._changes(registry, STALE):
                write_registry(self.table, registry, changes)

    def _close(self, registry: Registry) -> bool:
        """End a run: what it has filled is complete; if the run is void, or what that counts is, it goes stale."""
        changes = self._changes(registry, COMPLETE)
        declared = [entry.declaration for entry, _ in changes]
        if any(declaration is None or registry.lacking(declaration, lasting=True) for declaration in declared):
            self.state.phase = VOID
        if self.state.phase == VOID:
            changes = self._changes(registry, STALE)
        return write_registry(self.table, registry, changes, also=self._also())


Kind = TypeVar("Kind", bound=Runner)

_GO_ON: Final = "--run goes on with what the run began with: no names, no --dry-run"
_PHASE_UNITS: Final = {"stale": "s", "waiting": "s", SETTLING: "s", "scanning": "items", "draining": "shards"}


def runner_of(session: Session, kind: type[Kind], **settings: Any) -> Kind:
    return kind.of_table(session.table, session.client("dynamodbstreams"), now=session.service_time, **settings)


def work_off(session: Session, job: Runner | Dropping) -> dict[str, Any]:
    """Work it off and show how far it is; if a run breaks off, say how to go on with it."""
    began, step, items, has_begun = session.clock(), Progress("", ""), 0, False
    try:
        with progress_on(session.err, session.clock) as show:
            for step in job.steps():
                if step.phase == runner.COMPLETE:
                    continue
                has_begun = True
                items = step.done if step.phase == "scanning" else items
                show(step.phase, step.done, step.total, unit=_PHASE_UNITS.get(step.phase, ""), consumed=step.units)
    except BaseException as error:
        # After a BackfillError it is void, or never began.
        if step.run and not isinstance(error, BackfillError):
            session.tell(f"run {step.run} is not complete: the same command goes on, with --run {step.run} for names")
        raise
    if step.run and not has_begun:
        raise BackfillError(f"run {step.run} is complete, and has said what it did: begin another one")
    return {"run": step.run, "seconds": round(session.clock() - began), "units": step.units, "items": items}


def _cost(work: dict[str, Any]) -> str:
    return f"{number(work['items'])} items scanned, {number(round(work['units']))} units"


@command("segments", "units_per_second", "run", "dry_run", "yes", names="[NAME]…")
def backfill(session: Session, names: Sequence[str], *, run: str, dry_run: bool, yes: bool, **pace: Any) -> int:
    """Count what the table holds already, while the stream goes on.

    By default all names that wait for it. Aggregates over them come along. A name that is complete, and is backfilled
    again, is empty meanwhile.
    """
    if run and (names or dry_run):
        raise click.UsageError(_GO_ON)
    if not run:
        plan, items, size = runner_of(session, Backfill, names=names, **pace).preview()
        about = f"{', '.join(plan)}: {number(items)} items, {number(size)} bytes"
        if dry_run or not plan:
            line = f"would backfill {about}" if plan else "Nothing to backfill: all count all there is."
            session.emit({"names": plan, "items": items, "bytes": size}, line)
            return Exit.SUCCESS
        if not session.confirm(f"Backfill {about}?", yes=yes):
            return Exit.FINDINGS
    job = runner_of(session, Backfill, names=names, run=run, **pace)
    work = work_off(session, job)
    names = sorted(name for name, entry in read_registry(session.table).names.items() if entry.run == work["run"])
    line = f"{', '.join(names)}: counted all there is, in {span(work['seconds'])}; {_cost(work)}"
    line += f"; {counted(job.withheld, 'entry waits', 'entries wait')} in quarantine" if job.withheld else ""
    document = {**work, "names": names, "withheld": job.withheld}
    session.emit(document, line, "Readers know of it within a minute. What had expired is not counted.")
    return Exit.SUCCESS


@command("segments", "units_per_second", "yes", names="NAME…")
def drop(session: Session, names: Sequence[str], *, yes: bool, **pace: Any) -> int:
    """Count names no more, and delete all their items.

    It takes about half an hour, until no process can write any of them; run it again if it breaks off.
    """
    dropping, text = Dropping.of_table(session.table, session.service_time, names=names, **pace), ", ".join(names)
    if not session.confirm(f"Drop {text}, and scan {number(dropping.items)} items for theirs?", yes=yes):
        return Exit.FINDINGS
    units = work_off(session, dropping)["units"]
    deleted = dict(sorted(dropping.deleted.items()))
    document = {"dropped": deleted, "scanned": dropping.scanned, "units": units}
    session.emit(document, f"{text}: dropped; {counted(sum(deleted.values()), 'item')} deleted")
    return Exit.SUCCESS


@command("segments", "units_per_second", "run", "sample", "repair", "yes", names="[NAME]…")
def verify(
    session: Session, names: Sequence[str], *, run: str, sample: float, repair: bool, yes: bool, **pace: Any
) -> int:
    """Recompute counts from their source items while traffic flows, and show where they differ.

    By default all declarations that count everything there is. Exit code 1: counts have drifted, and were not
    repaired. Exit code 4: none has for certain, but some are unknown from the source items.

    With --repair, if groups differ, it compares again after 39 minutes: what Lambda gave up on may still be counted
    until then.
    """
    if run and names:
        raise click.UsageError(_GO_ON)
    if not 0 < sample <= 1:
        raise click.UsageError(f"invalid --sample {sample:g}: expected a share above 0, at most 1")
    if repair:
        pace |= {"outlives": GIVEN_UP_SETTLED}
        if not session.has_person():
            session.confirm("", yes=yes)  # Before the work, not after it
    verification = runner_of(session, Verification, names=names, run=run, sample=sample, **pace)
    work = work_off(session, verification)
    drifted, unknown, waiting = (verification.groups(status).total() for status in get_args(Status))
    differences = [
        {
            "declaration": difference.name,
            "values": dict(difference.group),
            "missing": dict(difference.missing),
            "status": difference.status,
            "reason": difference.reason or None,
        }
        for difference in verification.differences
    ]
    document = work | {"compared": verification.compared, "differences": differences}
    total = f"{counted(verification.compared, 'group')} compared: {drifted or 'none'} drifted, {unknown} cannot be"
    total += f" verified, {waiting} wait for the quarantine; {span(work['seconds'])}, {_cost(work)}"
    lines = [*table(differences), total]
    if not repair or not drifted:
        session.emit(document, *lines)
        return Exit.FINDINGS if drifted else Exit.UNKNOWN if differences else Exit.SUCCESS
    if not (session.as_json and yes):
        session.tell(*lines)
    if not session.confirm(f"Add what is missing to {counted(drifted, 'group')}?", yes=yes):
        session.emit(document, "nothing repaired")
        return Exit.FINDINGS
    repaired, remaining = verification.repair()
    line, why = f"{counted(repaired, 'item')} repaired", "repaired or filled anew meanwhile, or unable to take it"
    line += f"; {counted(remaining, 'item')} left, {why}: verify again" if remaining else ""
    session.emit(document | {"repaired": repaired, "left": remaining}, line)
    return Exit.FINDINGS if remaining else Exit.UNKNOWN if unknown + waiting else Exit.SUCCESS
