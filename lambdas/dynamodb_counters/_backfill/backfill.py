"""A backfill: next generations of some declarations, brought to where they would be had they always been counted.

And the drop of items of generations that no process counts or reads any more.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from dynamodb_counters._assumptions import FRESH, GUARANTEE, SETTLED_AFTER, SKEW
from dynamodb_counters._backfill.estimate import Estimate, estimate
from dynamodb_counters._backfill.feeds import Pace, paid_write, units_of
from dynamodb_counters._backfill.runner import COMPLETE, DRAINING, Progress, Runner, State, Totals, baselines, withheld
from dynamodb_counters._changes.effective import fingerprint, same_meaning
from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints
from dynamodb_counters._commit.commit import Committer, Part, Pruner
from dynamodb_counters._control.control import (
    NUMBERED,
    Control,
    Era,
    History,
    Status,
    decoded,
    deployment_id,
    read_control,
    read_declarations,
    stored_deployments,
)
from dynamodb_counters._control.run_items import Run, found_by
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Event, require_consistent
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.groups import base_name, generation, generation_number, read_name, with_below
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import padded
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.bookkeeping import Watermark
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import BASELINE, PK, SK, TYPE
from dynamodb_counters._quarantine.quarantine import RETENTION, Quarantine
from dynamodb_counters._quarantine.redrive_entries import confirm, settle
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import MINUTE
from dynamodb_counters.errors import BackfillError


@dataclass(frozen=True, slots=True)
class Opening:
    """The generations that a run fills, and those it has `scanned`: others look at these alone."""

    generations: tuple[Declaration, ...]
    scanned: tuple[str, ...]


def wanted(
    names: Collection[str], seen: Control, declared: Collection[Declaration], folded: Collection[Declaration]
) -> set[str]:
    """Names to backfill: those given, or all that do not count everything; and such sources of them."""
    known = {declaration.name: declaration for declaration in folded}
    unfinished = {name for name, status in seen.statuses.items() if not status.whole}
    for declaration in declared:
        held = known.get(read_name(declaration.name, seen.reads))
        if held is None or not same_meaning(declaration, held):
            unfinished.add(declaration.name)
    # Nothing in the table says what a Counter must hold.
    left = unfinished & {each.name for each in declared if not isinstance(each.source, Direct)}
    found = with_parts(names, declared) or left
    for declaration in declared:
        if declaration.name in found:
            found |= {each.name for each in with_below(declaration)} & left
    return found


def opening(
    names: Collection[str],
    declared: Iterable[Declaration],
    folded: Iterable[Declaration],
    control: Control,
    number: int,
) -> Opening:
    """Open generation `number` of what is declared under some names, and of all that is declared over them."""
    by_name = {declaration.name: declaration for declaration in declared}
    for name in names:
        if name not in by_name:
            known = ", ".join(sorted(by_name)) or "none"
            raise BackfillError(f"invalid name={name!r}: expected a declaration of the deployed stack: {known}")
        if isinstance(by_name[name].source, Direct):
            raise BackfillError(f"invalid name={name!r}: expected what items are counted in, not a Counter")
    read = {declaration.name: declaration for declaration in folded}
    opened = [name for name, declaration in by_name.items() if _is_over(declaration, names, by_name)]
    built: dict[str, Declaration] = {}

    def build(name: str) -> Declaration:
        declaration = by_name[name]
        if name not in built:
            source = declaration.source
            if isinstance(source, Aggregate):
                below = build(source.name) if source.name in opened else read.get(read_name(source.name, control.reads))
                if not isinstance(below, Aggregate):
                    raise BackfillError(f"{name!r} counts {source.name!r}, which nothing counts: backfill that, too")
                source = below
            built[name] = generation(declaration, number, source)
        return built[name]

    for name in opened:
        build(name)
    filled = {declaration.name for declaration in built.values()}
    scanned = [declaration.name for declaration in built.values() if declaration.source.name not in filled]
    return Opening(tuple(built[name] for name in sorted(built)), tuple(sorted(scanned)))


def _is_over(declaration: Declaration, names: Collection[str], by_name: dict[str, Declaration]) -> bool:
    """Whether a declaration is one of some, or looks at one of them."""
    if declaration.name in names:
        return True
    source = declaration.source
    return isinstance(source, Aggregate) and _is_over(by_name.get(source.name, source), names, by_name)


@dataclass(slots=True, kw_only=True)
class Dropping:
    """Deletes what generations have left that a newer one replaced two days ago, and `names` that were removed."""

    table: Table
    now: Callable[[], float]
    names: Collection[str] = ()
    segments: int = 4
    units_per_second: float | None = None
    dry_run: bool = False
    scanned: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Items by name and generation."""
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.table, self.units_per_second)

    def steps(self) -> Iterator[int]:
        """Scan the table and delete unused items; yield after each round how many items were scanned."""
        is_left = self._is_left()
        starts: dict[int, Any] = dict.fromkeys(range(self.segments))
        while starts:
            left: list[Image] = []
            for segment, answer in zip([*starts], self.table.each(self._scan, [*starts.items()]), strict=True):
                self.scanned += len(answer["Items"])
                self.pace.spend(units_of(answer))
                left += filter(is_left, answer["Items"])
                starts[segment] = answer.get("LastEvaluatedKey")
            starts = {segment: start for segment, start in starts.items() if start}
            self.dropped.update(item[TYPE]["S"] for item in left)
            if not self.dry_run:
                self.pace.spend(sum(self.table.each(self._delete, left)))
            yield self.scanned

    def _is_left(self) -> Callable[[Image], bool]:
        seen = read_control(self.table)
        if seen.history is None:
            raise BackfillError("nothing counts this table yet: there is nothing to drop")
        # A record that is delivered late is counted by the declarations of its time.
        eras = seen.history.since(self.now() - GUARANTEE - SKEW).eras
        used = {read_name(name, seen.reads) for name in seen.reads}
        for deployment in {era.deployment for era in eras}:
            declarations = read_declarations(self.table, deployment)
            if declarations is None:
                raise BackfillError("this version cannot read the deployed declarations: install the one that runs")
            used |= {declaration.name for declaration in declarations}
        stored = [decoded(item) or () for item in stored_deployments(self.table).values()]
        names = {name for declarations in stored for name in with_parts(self.names, declarations)}
        past = [each for declarations in stored for each in declarations]
        known = {base_name(each.name) for each in past}
        events = {each.source.name for each in past if isinstance(each.source, Event)}
        live = set(map(base_name, used))
        for name in sorted(names):
            if name in live or name in events or name not in known:
                raise BackfillError(f"invalid name={name!r}: expected one that was removed two days ago, or earlier")

        def is_left(item: Image) -> bool:
            kind = item.get(TYPE, {}).get("S", "")
            return kind not in used and kind not in events and base_name(kind) in live | names

        return is_left

    def _scan(self, place: tuple[int, Any]) -> Mapping[str, Any]:
        segment, start = place
        request: Any = {"ExclusiveStartKey": start} if start else {}
        return self.table.client.scan(
            TableName=self.table.name,
            Segment=segment,
            TotalSegments=self.segments,
            ProjectionExpression="#pk, #sk, #type",
            ExpressionAttributeNames={"#pk": PK, "#sk": SK, "#type": TYPE},
            ReturnConsumedCapacity="TOTAL",
            **request,
        )

    def _delete(self, item: Image) -> float:
        return paid_write(
            self.table,
            "delete_item",
            Key={PK: item[PK], SK: item[SK]},
            ConditionExpression="#type = :type",
            ExpressionAttributeNames={"#type": TYPE},
            ExpressionAttributeValues={":type": item[TYPE]},
        )[1]


WITHHOLDING: Final = "withholding"
ADDING: Final = "adding"

_AT_A_TIME: Final = 256

_PARTS: Final = 1 << 60
"""Parts into which a baseline may be divided: whatever their number is, a part lies between the same records."""

_SETTLING: Final = 5 * MINUTE
"""Seconds after which an aggregate that has not caught up lags, as counts may."""


@dataclass(slots=True, kw_only=True)
class Backfill(Runner):
    """Backfills some declarations of a table; by default all that are not whole, or wait for it."""

    settled: int = 0
    """Entries of the quarantine that wait for nothing any more."""
    withheld: int = 0
    """Entries of the quarantine that wait for what was filled: it cannot count them."""

    def estimate(self) -> tuple[list[str], Estimate]:
        """The names that a run would fill, and about what it would take."""
        seen, now = read_control(self.table), self.now()
        folded, new = self._opening(seen, self._since(now))
        names = sorted(base_name(each.name) for each in new.generations)
        if not names:
            return names, Estimate()
        run, plan = Run("1r", "backfill", math.ceil(now), new.scanned), Plan(_with(folded, new))
        scan = self._scanning(run, plan, self.segments)
        return names, estimate(scan, [each for each in new.generations if each.name in new.scanned])

    def _opening(self, seen: Control, since: int) -> tuple[tuple[Declaration, ...], Opening]:
        """What is folded from a moment on, and what a run opens then."""
        folded = self._folded(self._known(seen).at(since).deployment)
        declared = self._folded(seen.declared)
        names = wanted(self.names, seen, declared, folded)
        return folded, opening(names, declared, folded, seen, 1 + seen.numbered)

    def _try_to_open(self, seen: Control, opened: float) -> State | None:
        history = self._known(seen)
        number, since = 1 + seen.numbered, self._since(opened)
        folded, new = self._opening(seen, since)
        if not new.generations:
            raise BackfillError("nothing to backfill: every declaration counts all there is, as it is declared")
        run = Run(f"{number}r{secrets.token_hex(8)}", "backfill", since, new.scanned)
        # Later eras count them, too.
        later = [era for era in history.eras if era.valid_from > since]
        sets = [_with(folded, new), *(_with(self._folded(era.deployment), new) for era in later)]
        eras = [era for era in history.eras if era.valid_from <= since]
        eras.append(Era(since, deployment_id(sets[0]), run.id))
        eras += [replace(era, deployment=deployment_id(part)) for era, part in zip(later, sets[1:], strict=True)]
        state = self._state(run, opened)
        written = self._write_control(
            seen,
            state,
            History(tuple(eras)),
            runs=(*seen.runs, run),
            deployments=sets[-1:],
            # Before a takeover that is to come, a generation may be alone that readers have never used.
            passing=sets[:-1],
            attributes={NUMBERED: {"N": str(number)}},
        )
        return state if written else None

    def _finish(self, state: State) -> Iterator[Progress]:
        self._enter(state, DRAINING, WITHHOLDING)
        if state.phase == WITHHOLDING:
            yield from self._withhold(state)
            self._enter(state, WITHHOLDING, ADDING)
        if state.phase == ADDING:
            yield from self._add(state)
        self.withheld = state.withheld
        if state.phase == COMPLETE:
            folded = self._folded(self._known(read_control(self.table)).last.deployment)
            self.settled += settle(self.table, {declaration.name for declaration in folded})

    def _withhold(self, state: State) -> Iterator[Progress]:
        """Let what the baseline lacks wait in quarantine, as if the stream had brought it."""
        keys = withheld(self._pages(state))
        state.withheld = 0
        while some := list(islice(keys, _AT_A_TIME)):
            self.table.each(lambda one: confirm(self.table, *one), some)
            self._pace.spend(len(some))
            state.withheld += len(some)
            yield self._progress(state, state.withheld, 0)

    def _add(self, state: State) -> Iterator[Progress]:
        plan, pages = self._plan(state), self._pages(state)
        added = 0
        for part, parts, sums in baselines(pages, state.parts_done, state.parts):
            # The log that was read for the sums may go on beyond what the shards had acknowledged.
            self._require_no_gap(state)
            paged = [ref for ref in sums if plan.programs[ref[0]].layout.pages]
            if paged:
                self._pace.spend(self._add_to_pages(plan, state.run.id, {ref: sums[ref] for ref in paged}, part, parts))
                added += len(paged)
                yield self._progress(state, added, added + (len(sums) - len(paged)) * (parts - part))
            refs = sorted(sums.keys() - set(paged))
            for start in range(0, len(refs), _AT_A_TIME):
                some = refs[start : start + _AT_A_TIME]
                self._pace.spend(sum(self.table.each(partial(self._add_to, plan, state.run.id, sums), some)))
                added += len(some)
                yield self._progress(state, added, added + (len(refs) - start - len(some)) * (parts - part))
            state.parts_done, state.parts = part + 1, parts
            if not self._write(state, ADDING):
                self._reload(state)
                if state.phase != ADDING:
                    return
        yield from self._settle(state, plan)
        if state.phase == ADDING:
            self._complete(state)

    def _add_to_pages(self, plan: Plan, run: str, sums: Totals, part: int, parts: int) -> float:
        """Add their baselines to groups in pages, unless these have them: parts are records of a shard of their own."""
        step = _PARTS // parts
        first, last = padded(str(part * step + 1)), padded(str((part + 1) * step))
        deltas = [Delta(plan.programs[name].layout, group, first, last, sums[name, group]) for name, group in sums]
        checkpoints = Checkpoints(self.table, self.table)
        quarantine = Quarantine(self.table, RETENTION)
        committer = Committer(self.table, checkpoints, quarantine, Pruner(self.table, checkpoints))
        whole = Part(plan, (), Watermark(found_by(run)), Checkpoint(), baseline=f"{run}#{first}")
        return committer.commit(deltas, whole).write_units

    def _settle(self, state: State, plan: Plan) -> Iterator[Progress]:
        """Let what counts the filled aggregates catch up, so that readers never see it lack them."""
        counted = [program.layout.declaration for program in plan.programs.values()]
        names = set(state.run.names)
        while state.phase == ADDING and (names := {over.name for over in counted if over.source.name in names}):
            # Times of records are whole seconds.
            moment = math.ceil(self.now())
            self.table.sleep(moment - self.now())
            for step in self._wait_for_log(state, partial(self._has_passed_in_own_table, state, moment)):
                yield step
                if self.now() > moment + _SETTLING:
                    break

    def _add_to(self, plan: Plan, run: str, sums: Totals, ref: GroupRef) -> float:
        """Add its baseline to a group, unless it has it."""
        name, group = ref
        layout = plan.programs[name].layout
        if layout.is_gone(group, self.now()):
            # The group may have had its baseline, and a run may rest for long; no reader is promised it so far back.
            return 0.0
        update = Update(layout, group, sums[ref], "")
        update.set(BASELINE, {"S": run})
        request = update.request(self.table.name)
        request["ConditionExpression"] = "attribute_not_exists(#baseline)"
        request["ExpressionAttributeNames"]["#baseline"] = BASELINE
        return paid_write(self.table, "update_item", **request)[1]

    def _complete(self, state: State) -> None:
        """Let readers use the new generations, and end the replaced ones once no process reads these any more."""
        for _ in self.table.tries():
            seen = read_control(self.table)
            history = self._known(seen)
            folded = self._folded(history.last.deployment)
            filled = _filled(state.run, folded)
            declared = {declaration.name: declaration for declaration in self._folded(seen.declared)}
            is_whole = _is_declared(filled, declared) and not _is_lacking(filled, declared, folded, seen.reads)
            if state.run not in seen.runs or not is_whole:
                self._void(state)
                if state.phase == COMPLETE:
                    return
                raise BackfillError(f"run {state.run.id} is void: a deployment has changed or dropped what it fills")
            number = generation_number(filled[0].name)
            told = {base_name(declaration.name): fingerprint(declaration) for declaration in filled}
            statuses = {name: Status(number, history.last.deployment, definition=each) for name, each in told.items()}
            stays = {
                each.name
                for each in folded
                if base_name(each.name) not in told or generation_number(each.name) == number
            }
            kept = _with_sources(folded, stays)
            ends = math.ceil(self.now() + FRESH + SETTLED_AFTER)
            names = {declaration.name for declaration in kept}
            state.phase = COMPLETE
            if self._write_control(
                seen,
                state,
                _followed(history, folded, kept, ends),
                # Others may fill earlier generations of the same names.
                runs=[run for run in seen.runs if run != state.run and names.issuperset(run.names)],
                statuses=seen.statuses | statuses,
                deployments=(kept,),
            ):
                return
            state.phase = ADDING
        raise BackfillError("the table's deployments change all the time: run it again")

    def _close(self, seen: Control, state: State) -> bool:
        """Give a run up, and end its generations."""
        history = self._known(seen)
        folded = self._folded(history.last.deployment)
        number = generation_number(state.run.names[0])
        kept = tuple(declaration for declaration in folded if generation_number(declaration.name) != number)
        history = _followed(history, folded, kept, math.ceil(self.now() + self.open_after))
        runs = [run for run in seen.runs if run != state.run]
        return self._write_control(seen, state, history, runs=runs, deployments=(kept,))


def _with(folded: Collection[Declaration], new: Opening) -> tuple[Declaration, ...]:
    both = tuple(sorted((*folded, *new.generations), key=lambda declaration: declaration.name))
    require_consistent(both)
    return both


def _with_sources(folded: Collection[Declaration], names: set[str]) -> tuple[Declaration, ...]:
    for declaration in folded:
        if declaration.name in names:
            names.update(each.name for each in with_below(declaration))
    return tuple(declaration for declaration in folded if declaration.name in names)


def _followed(
    history: History, folded: tuple[Declaration, ...], kept: tuple[Declaration, ...], valid_from: int
) -> History:
    """The history with an era of what is kept, if that is less than what is folded."""
    if kept == folded:
        return history
    begins = max(valid_from, history.last.valid_from + 1)
    return History((*history.eras, Era(begins, deployment_id(kept))))


def _filled(run: Run, folded: Collection[Declaration]) -> list[Declaration]:
    """Generations that a run fills, scanned or over scanned ones; none if a part of them is gone."""
    names = {declaration.name for declaration in folded}
    if not names.issuperset(run.names):
        return []
    number = generation_number(run.names[0])
    return [declaration for declaration in folded if generation_number(declaration.name) == number]


def _is_lacking(
    filled: Collection[Declaration],
    declared: Mapping[str, Declaration],
    folded: Collection[Declaration],
    reads: Mapping[str, int],
) -> bool:
    """Whether something declared over what is filled still counts another definition of that."""
    # A deployment may have declared it again since the run began.
    bases = {base_name(each.name) for each in filled}
    known = {each.name: each for each in folded}
    for name, over in declared.items():
        one: object = over.source
        two: object = getattr(known.get(read_name(name, reads)), "source", None)
        while name not in bases and isinstance(one, Aggregate):
            if one.name in bases and not (isinstance(two, Aggregate) and same_meaning(one, two)):
                return True
            one, two = one.source, getattr(two, "source", None)
    return False


def _is_declared(filled: Collection[Declaration], declared: Mapping[str, Declaration]) -> bool:
    """Whether all of it is what the stack declares still."""
    found = [(each, declared.get(base_name(each.name))) for each in filled]
    return bool(found) and all(other is not None and same_meaning(each, other) for each, other in found)
