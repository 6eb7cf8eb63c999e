"""Verification: what groups have counted, compared with what their source items come to; and repair of what they lack.

An item's position in a shard is the last record it has applied. The baseline and what the log shows up to that position
is what the item must hold, however far behind it is. So a difference does not depend on the moment, and a repair adds
exactly it while live updates go on, unless something waits for the group.

An invocation whose retry Lambda gave up on may count what a repair adds. So where a repair would add something, it
waits until none is left, and compares again.

Statuses, of which a group may have several, for it holds several numbers:

    exact     it holds what its sources come to; nothing is reported
    drifted   it holds less; or more, where nothing that it counts can have gone
    unknown   it holds more, where what it counts expires, or was erased with its counts kept
    waits     entries of the quarantine wait for it

What has gone leaves a count greater than its sources, never smaller: but for sums, of which it may have been a negative
part. A score equals its measure, whichever of the two is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import localcontext
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from counters_lambda.counting import runner
from counters_lambda.counting.commit import Part
from counters_lambda.counting.counted_names import restrict
from counters_lambda.counting.feeds import ReadGroup, read_groups
from counters_lambda.counting.runner import COMPARING, COMPLETE, DRAINING, Progress, Runner, Totals, part_of
from dynamodb_counters._assumptions import GROUP_KEPT, READ_TOGETHER, SKEW, WIDE_MARGIN
from dynamodb_counters._declarations import Aggregate, Average, Count, Declaration, Direct, Event, Histogram, Window
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.groups import identity, typed_key
from dynamodb_counters._fold.fold import Delta, fold, sums_of
from dynamodb_counters._fold.layouts import GroupKey, GroupRef, ItemLayout, closing_times, late_parts
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Origins, inserted, padded
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import EXACT, Number, parse_number
from dynamodb_counters._items.keys import tier_of
from dynamodb_counters._items.schema import REPAIRED, SCORE, sequence_of
from dynamodb_counters._quarantine import CHANGED_AT, STATE, UNREADABLE, WAITING, held_by, names_of, stored_entries
from dynamodb_counters._registry import Entry, Registry, Run, founded_registry, typed_runs, write_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import BY_LETTER, TOTAL
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.exactly_once import Watermark

Status: TypeAlias = Literal["drifted", "unknown", "waits"]  # Of a difference; a group without one is exact.
Finding: TypeAlias = tuple[Status, str, dict[str, Number]]  # A status, its reason, and what is missing by attribute.
_EXPIRED: Final = "events may have expired, or been erased, that it still counts"
AT_LEAST: Final = "at least so much: events may have expired, or been erased, that it counted, too"
_WAITS: Final = ("1 entry of the quarantine waits for it", "{:,} entries of the quarantine wait for it")
CHANGED_MEANWHILE: Final = "a transaction counted in it meanwhile, or it is gone: verify it again"
ERASED_MEANWHILE: Final = "what waited for it may have been counted, and was erased: verify it again"
_ENDED: Final = "nothing was compared: another process has ended run {}"
SETTLING: Final = "settling"  # The phase in the progress of a repair that waits.
_AT_A_TIME: Final = 2000
_AGAIN: Final = 5
_PAUSE: Final = 5.0
_BREATH: Final = 30.0
_SAMPLE: Final = 10_000


def judge(
    declared: Declaration, missing: Mapping[str, Number], *, may_exceed: bool, is_gone: bool
) -> Iterator[Finding]:
    """Judge what a group lacks that `may_exceed` its sources; if it `is_gone`, it has no item."""
    if not may_exceed:
        yield "drifted", "", dict(missing)
        return
    numbers, measure = dict(missing), ranked_by(declared)
    # How much the score differs from the measure that it repeats.
    apart = 0 if measure is None else missing.get(SCORE, 0) - missing.get(measure, 0)
    if apart:
        numbers[SCORE] = numbers.get(SCORE, 0) - apart
    lost = {name: number for name, number in numbers.items() if is_gone or (number > 0 and _grows(declared, name))}
    certain = {**lost, SCORE: lost.get(SCORE, 0) + apart} if apart else lost
    if certain := {name: number for name, number in certain.items() if number}:
        yield "drifted", AT_LEAST if lost else "", certain
    if rest := {name: number for name, number in numbers.items() if number and name not in lost}:
        yield "unknown", _EXPIRED, rest


def _grows(declaration: Declaration, attribute: str) -> bool:
    """Return whether no item adds less than nothing to an attribute."""
    if isinstance(declaration, Window):
        return isinstance(declaration.measure, Count)
    if attribute == SCORE:
        return declaration.ranking is not None and _grows(declaration, declaration.ranking.measure)
    for name, measure in declaration.measures.items():
        names = measure._attributes(name)
        if attribute in names:
            return isinstance(measure, Count | Histogram) or (isinstance(measure, Average) and attribute == names[1])
    return False


def counted(declaration: Declaration, group: GroupKey, items: list[Image]) -> dict[str, Number]:
    """Return the numbers that a group's items have counted, by attribute."""
    names: Iterable[str] = declaration._attributes
    if isinstance(declaration, Window):
        slots = (TOTAL, *BY_LETTER[group[-2]].slots)
        names = [attribute for slot in slots for attribute in declaration.measure._attributes(slot)]
    if ranked_by(declaration) is not None:
        names = (*names, SCORE)
    sums: dict[str, Number] = {}
    for name in names:
        for item in items:
            with suppress(LookupError, ValueError):
                sums[name] = sums.get(name, 0) + parse_number(item[name]["N"])
    return {name: number for name, number in sums.items() if number}


def ranked_by(declaration: Declaration) -> str | None:
    ranking = declaration.ranking if isinstance(declaration, Aggregate) else None
    return None if ranking is None else ranking.measure


@dataclass(frozen=True, slots=True)
class Difference:
    """A group whose items say something else than its source."""

    name: str
    group: Mapping[str, str]  # Field to text; for a window also the tier and the start of the bucket.
    missing: Mapping[str, Number]  # Numbers that the items lack, by attribute; negative if they have too much.
    status: Status
    reason: str = ""  # Why it is unknown, or why more than this may be missing.
    ref: GroupRef = ("", ())
    repairs: int = 0  # How many repairs the item has had that the next one writes.


def quarantined_groups(
    table: Table, origins: Origins, plan: Plan, run: Run, entries: Iterable[Entry]
) -> tuple[Counter[GroupRef], set[str]]:
    """Return, by group, how many entries wait or did after the cut; and the names for which erased ones waited."""
    # A redrive decides if a group lacks them; what was erased may have waited for any group.
    # To be read after the groups: whatever they lack because it is in quarantine is there by then.
    waiting, erased = Counter[GroupRef](), set[str]()
    counting = [entry for entry in entries if entry.counts]
    for item in stored_entries(table):
        if item.get(STATE, {}).get("S") == WAITING or float(item.get(CHANGED_AT, {}).get("N", 0)) >= run.since - SKEW:
            with suppress(*UNREADABLE):
                # As the scan counts its item; perhaps not in all names.
                change = held_by(item, inserted({}, run.since), origins)
                restrict(table, change, counting)
                waiting.update(ref for ref in sums_of(fold(plan, [change])) if ref[0] in run.names)
            erased.update(() if STATE in item else names_of(item) or run.names)
    return waiting, erased


@dataclass(kw_only=True)
class Verification(Runner):
    """Verifies declarations of a table, by default all; of a `sample` of their groups, by default all of them."""

    sample: float = 1.0
    differences: list[Difference] = field(default_factory=list)
    compared: int = 0
    _kind = "verify"
    _exceeding: set[str] = field(default_factory=set)  # Names that may hold more than their sources show.

    def _try_to_open(self, registry: Registry, opened: float) -> bool:
        declared = registry.declarations
        # Nothing in the table says what a Counter must hold.
        direct = {declaration.name for declaration in declared if isinstance(declaration.source, Direct)}
        fed, names = {declaration.name for declaration in declared} - direct, []
        for name in sorted(with_parts(self.names, declared) or registry.names.keys() - direct):
            if name not in fed:
                raise BackfillError(f"invalid name={name!r}: expected one of {', '.join(sorted(fed))}, not a Counter")
            if registry.entries[name].is_complete:
                names.append(name)
            elif self.names:
                raise BackfillError(f"invalid name={name!r}: it does not count everything yet, backfill it")
        if not names:
            raise BackfillError("nothing to verify: no name counts everything yet, backfill them")
        return self._write_runs(registry, (*registry.verifications, self._begin(opened, names)))

    def _close(self, registry: Registry) -> bool:
        return self._write_runs(registry, (run for run in registry.verifications if run != self.state.run))

    def _write_runs(self, registry: Registry, runs: Iterable[Run]) -> bool:
        return write_registry(self.table, registry, (), attributes=typed_runs(runs), also=self._also())

    def _finish(self) -> Iterator[Progress]:
        self._enter(DRAINING, COMPARING)
        if self.state.phase != COMPARING:
            raise BackfillError(_ENDED.format(self.state.run.id))
        self._by = self._plan()
        # All that had gone before the cut is noted by now.
        registry, table = founded_registry(self.table), self.table.client.describe_table(TableName=self.table.name)
        may_exceed = partial(registry.may_exceed, is_restored="RestoreSummary" in table["Table"])
        self._exceeding = {declaration.name for declaration in registry.declarations if may_exceed(declaration)}
        # From now on, Lambda gives up on nothing older than the scan: the log of each shard is past that.
        until = self.now() + self.outlives
        yield from self._compare_all()
        if self.outlives and self.groups("drifted"):
            # Invocations may be left of those whose retry Lambda gave up on: they may count what a repair adds.
            yield from self._until(until, SETTLING, _BREATH)
            # Also groups that did not differ: what was given up on may have canceled out, until a part was counted.
            self.differences, self.compared = [], 0
            yield from self._compare_all()
        if not self._ended(COMPLETE):
            # Groups read after that may hold changes that no process has logged.
            raise BackfillError(_ENDED.format(self.state.run.id))

    def _compare_all(self) -> Iterator[Progress]:
        pages = self._pages()
        for part, parts, baseline in runner.baselines(pages, 0, 1):
            # Also groups that began since.
            begun = (ref for _, change in pages.added() for ref in change.added if part_of(repr(ref), parts) == part)
            size, totals = self.sample * _SAMPLE, Totals({ref: {} for ref in begun}) | baseline
            sums = {ref: total for ref, total in totals.items() if part_of(f"sample{ref!r}", _SAMPLE) < size}
            yield self._step(COMPARING, self.compared, self.compared + len(sums))
            yield from self._compare(sums)

    def _compare(self, sums: Totals) -> Iterator[Progress]:
        pending, total = sorted(sums), self.compared + len(sums)
        for again in range(_AGAIN):
            groups = yield from self._hold(pending, total)
            differing, unsettled = self._differing(sums, groups)
            sources: Any = [self._layout(ref).declaration.source for ref in differing.keys() - unsettled]
            if any(isinstance(source, Event) and source.packed is None for source in sources):
                yield from self._await_transactions(total)
                differing, unsettled = self._differing(sums, groups)
            pending = sorted(differing.keys() & unsettled) if again < _AGAIN - 1 else []
            self._judge({ref: differing[ref] for ref in sorted(differing.keys() - set(pending))}, unsettled, groups)
            if not pending:
                break
            self.table.sleep(_PAUSE)
        self.compared += len(sums)

    def _judge(self, differing: Totals, unsettled: set[GroupRef], groups: Mapping[GroupRef, ReadGroup]) -> None:
        waits, erased = Counter[GroupRef](), set[str]()
        if differing:
            names, origins = founded_registry(self.table).names.values(), self.feeds.origins(self.table)
            waits, erased = quarantined_groups(self.table, origins, self._by, self.state.run, names)
        for ref, missing in differing.items():
            layout, items, may_exceed = self._layout(ref), groups[ref].items, ref[0] in self._exceeding
            with localcontext(EXACT):
                findings = list(judge(layout.declaration, missing, may_exceed=may_exceed, is_gone=not items))
            if waits[ref]:
                findings = [("waits", _WAITS[waits[ref] > 1].format(waits[ref]), missing)]
            elif ref in unsettled:
                findings = [("unknown", CHANGED_MEANWHILE, missing)]
            elif ref[0] in erased and any(status == "drifted" for status, _, _ in findings):
                findings = [("unknown", ERASED_MEANWHILE, missing)]
            key = identity(typed_key(layout.key(ref[1], "")))
            marks = (item[REPAIRED] for item in items if identity(item) == key and REPAIRED in item)
            repairs = 0
            with suppress(*UNREADABLE):  # An item refuses a repair that follows no mark of its own.
                repairs = int(sequence_of(next(marks, Watermark.bound(0))))
            for status, reason, numbers in findings:
                values = layout.values(ref[1])
                self.differences.append(Difference(ref[0], values, numbers, status, reason, ref, repairs))

    def _differing(self, sums: Totals, groups: dict[GroupRef, ReadGroup]) -> tuple[Totals, set[GroupRef]]:
        """Return the numbers that differing groups lack; and the groups whose numbers are uncertain so far."""
        expected, unsettled = {ref: dict(sums[ref]) for ref in groups}, set[GroupRef]()
        with localcontext(EXACT):
            # After the items: all that the stream has brought them is logged by now.
            for shard, change in self._pages().added():
                for ref, measures in change.added.items():
                    if ref not in groups:
                        continue
                    is_applied = change.is_direct or change.sequence <= groups[ref].applied.get(shard, "")
                    if change.is_direct or not (is_applied or groups[ref].items):
                        unsettled.add(ref)
                    for name, number in measures.items() if is_applied else ():
                        expected[ref][name] = expected[ref].get(name, 0) + number
        lacks = {ref: self._missing(ref, expected[ref], groups[ref]) for ref in groups}
        return {ref: missing for ref, missing in lacks.items() if missing}, unsettled

    def _await_transactions(self, total: int) -> Iterator[Progress]:
        """Wait until the log holds all transactions so far: they count before the stream brings their records."""
        moment = self.now() + self.feeds.clocks
        while self.now() < moment:
            # A heartbeat sent before that moment would prove nothing.
            yield self._step(COMPARING, self.compared, total)
            self.table.sleep(_PAUSE)
        if self.state.phase != COMPARING:
            raise BackfillError(_ENDED.format(self.state.run.id))
        for _ in self._wait_for_log(partial(self._has_passed_in_own_table, moment)):
            yield self._step(COMPARING, self.compared, total)

    def _hold(self, refs: list[GroupRef], total: int) -> Generator[Progress, None, dict[GroupRef, ReadGroup]]:
        """Read groups; again if a shard began meanwhile, since their positions in it were not read."""
        for _ in range(runner.ROUNDS):
            shards = set(self.state.lineage.parents)
            groups: dict[GroupRef, ReadGroup] = {}
            for start in range(0, len(refs), _AT_A_TIME):
                groups |= self._read(refs[start : start + _AT_A_TIME])
                yield self._step(COMPARING, self.compared + len(groups), total)
            self._describe()
            if shards.issuperset(self.state.lineage.parents):
                return groups
        raise BackfillError(runner.SPLITTING)

    def _read(self, refs: list[GroupRef]) -> dict[GroupRef, ReadGroup]:
        lookups = [(self._layout(ref), ref[1]) for ref in refs]
        for _ in range(_AGAIN):
            begun = self.now()
            groups = read_groups(self.table, lookups, self.state.lineage.in_order)
            if self.now() < begun + READ_TOGETHER:
                return dict(zip(refs, groups, strict=True))
        raise BackfillError("reading takes too long: the checkpoints that were read before have settled since")

    def _missing(self, ref: GroupRef, expected: Mapping[str, Number], group: ReadGroup) -> dict[str, Number]:
        layout = self._layout(ref)
        if self._is_beyond(layout, ref[1]):
            return {}
        with localcontext(EXACT):
            numbers = counted(layout.declaration, ref[1], group.items)
            # The score repeats one of them.
            if (measure := ranked_by(layout.declaration)) is not None and measure in expected:
                expected = {**expected, SCORE: expected[measure]}
            missing = {name: expected.get(name, 0) - numbers.get(name, 0) for name in {**expected, **numbers}}
        late = late_parts(layout.declaration, ref[1], self.state.run.since)
        return {name: number for name, number in sorted(missing.items()) if number and name not in late}

    def _is_beyond(self, layout: ItemLayout, group: GroupKey) -> bool:
        """Return whether nothing shows what a group must hold: its retention is over, or that of its source."""
        now, expires_at, declaration = self.now(), layout.expires_at(group), layout.declaration
        source, fields = declaration.source, declaration.fields
        # The scan took for late what had been counted in time.
        is_late = layout.closing_time is not None and layout.closing_time(group) <= self.state.run.since
        is_gone = expires_at is not None and expires_at <= now
        if is_late or is_gone or declaration.on_expiry != "keep" or not any(map(tier_of, fields)):
            return is_late or is_gone
        # Groups of a source with a retention may be deleted.
        retention = source.retention if isinstance(source, Aggregate) else None
        return retention is not None and closing_times(fields, retention)(group) + GROUP_KEPT - WIDE_MARGIN <= now

    def groups(self, status: Status) -> Counter[str]:
        refs = {difference.ref for difference in self.differences if difference.status == status}
        return Counter(name for name, _ in refs)

    def repair(self) -> tuple[int, int]:
        """Add to each group what it lacks, once; return how many items were repaired, and how many were left."""
        missing: dict[GroupRef, Delta] = {}
        entries = founded_registry(self.table).entries.values()
        # What was emptied meanwhile has other items.
        names = {entry.name for entry in entries if entry.is_complete and entry.at <= self.state.run.since}
        drifted = [difference for difference in self.differences if difference.status == "drifted"]
        emptied = len({difference.ref for difference in drifted if difference.name not in names})
        for difference in drifted:
            if difference.name not in names:
                continue
            ref = difference.ref
            layout, number = self._layout(ref), padded(str(difference.repairs + 1))
            delta = missing.setdefault(ref, Delta(layout, ref[1], number, number))
            if layout.ranking is not None:
                delta.measures.setdefault(SCORE, 0)
            with localcontext(EXACT):
                delta.measures |= {name: delta.measures.get(name, 0) + n for name, n in difference.missing.items()}
        mark = Watermark("")
        mark.name = REPAIRED
        result = runner.committer_of(self.table).commit([*missing.values()], Part(self._by, (), mark))
        return result.updated, result.skipped + result.quarantined + emptied
