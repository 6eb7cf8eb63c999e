"""A backfill: names brought to where they would be had they always been counted; and the drop of names.

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
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, Self

from counters_lambda.counting.commit import Part
from counters_lambda.counting.feeds import ServiceTime, is_emulated, scan_page, units_of
from counters_lambda.counting.run_logs import found_by
from counters_lambda.counting.runner import COMPLETE as ENDED
from counters_lambda.counting.runner import (
    DRAINING,
    VOID,
    Progress,
    Runner,
    Totals,
    Work,
    baselines,
    committer_of,
    withheld,
)
from dynamodb_counters._assumptions import FRESH, KNOWN_AT_ONCE, ONE_CLOCK
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.fold import Delta
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import BASELINE, PK, SK, TYPE, update_as_seen
from dynamodb_counters._quarantine import confirm
from dynamodb_counters._registry import (
    COMPLETE,
    COUNTING,
    FILLING,
    STALE,
    WAITING,
    Entry,
    Registry,
    Run,
    founded_registry,
    read_registry,
    scanned_names,
    threshold_name,
    write_registry,
)
from dynamodb_counters._registry import State as RegistryState
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import MINUTE
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, Watermark

DELETING: Final = "deleting"
WITHHOLDING: Final = "withholding"
ADDING: Final = "adding"

_AT_A_TIME: Final = 256

_PARTS: Final = 1 << 60
"""Parts into which a baseline may be divided: whatever their number is, a part lies between the same records."""

_SETTLING: Final = 5 * MINUTE
"""Seconds after which an aggregate that has not caught up lags, as counts may."""


def names_to_fill(registry: Registry, names: Collection[str] = ()) -> list[Entry]:
    """The entries that a backfill fills: those of some names, by default of all that wait; and of what is over them.

    What these count is filled, too, where it is not complete.
    """
    known = {name: entry for name, entry in registry.names.items() if not entry.dropped}
    declared = {each.name: each for each in registry.declarations}
    _require_fillable(known, declared, names)
    lacking = {
        name
        for name, each in declared.items()
        if not _uncounted(each, known) and known[name].state in (WAITING, STALE) and not isinstance(each.source, Direct)
    }
    found = with_parts(names, declared.values()) or lacking
    for each in [each for each in declared.values() if each.name in found]:
        found |= {below.name for below in with_below(each)} & lacking
    for each in declared.values():
        if found & {below.name for below in with_below(each)}:
            found.add(each.name)
    entries = [known[name] for name in sorted(found & known.keys())]
    if filling := sorted({entry.run for entry in entries if entry.state == FILLING}):
        raise BackfillError(f"run {filling[0]} fills {', '.join(names) or 'it'} already: go on with it by --run")
    return entries


def _uncounted(declaration: Declaration, known: Mapping[str, Entry]) -> list[str]:
    """Names, of a declaration and of all below it, that nothing counts, or that are being dropped."""
    return [below.name for below in with_below(declaration) if below.name not in known]


def _require_fillable(known: Mapping[str, Entry], declared: Mapping[str, Declaration], names: Collection[str]) -> None:
    unread = {name for name, entry in known.items() if entry.state != COMPLETE or name in names} - declared.keys()
    if unread:
        raise BackfillError(f"this version cannot read {', '.join(sorted(unread))}: install the one that runs")
    for name in names:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise BackfillError(f"invalid name={name!r}: expected one that the table counts: {there}")
        if isinstance(declared[name].source, Direct):
            raise BackfillError(f"invalid name={name!r}: expected what items are counted in, not a Counter")
        if gone := _uncounted(declared[name], known):
            raise BackfillError(f"{name!r} counts {gone[0]!r}, which nothing counts, or which is being dropped")


@dataclass(kw_only=True)
class Emptying(Work):
    """Empties names of a table; those to be dropped stay registered until then."""

    items: int = 0
    """About how many the table has, if known."""
    deleted: Counter[str] = field(default_factory=Counter)
    """Items by name."""
    scanned: int = 0
    _emptied: dict[str, Entry] = field(default_factory=dict)
    """The entries of the names as they were emptied: they wait."""

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
                self._emptied = {entry.name: entry for entry in entries}
                if (yield from self._delete_all()):
                    return
                raise BackfillError("another process works on the same names: run it again")
            for each in registry.declarations:
                # Processes fold what counts another name only over names that are folded.
                counted = [below.name for below in with_below(each) if below.name in names]
                if counted and each.name not in names and registry.entries[each.name].counts:
                    raise BackfillError(f"{each.name!r} counts {counted[0]!r}: run it again")
            yield from self._rest(entries, STALE, self.fresh)
            now = self.now()
            changes = [(entry, after) for entry in entries if (after := self._next(entry, now)) != entry]
            write_registry(self.table, registry, changes, attributes={})
        raise BackfillError("the table's registry changes all the time: try again later")

    def _next(self, entry: Entry, now: float) -> Entry:
        if entry.state == STALE and entry.dropped == self._drops:
            return entry.entering(WAITING, now, since=0, run="")
        if entry.state in COUNTING:
            return entry.entering(STALE, now, dropped=self._drops)
        # Nobody folds it: only that it is to be dropped is new.
        return replace(entry, dropped=self._drops)

    def _rest(self, entries: list[Entry], state: str, seconds: float) -> Iterator[Progress]:
        """Wait until nobody relies on what names in a state were before."""
        resting = [entry.at for entry in entries if entry.state == state and not entry.fresh]
        if resting:
            yield from self._until(max(resting) + seconds, state)

    def _delete_all(self) -> Generator[Progress, None, bool]:
        """Delete all items of names that were ever counted, while these wait as they did."""
        full = {name for name, entry in self._emptied.items() if not entry.fresh}
        starts: dict[int, Any] = dict.fromkeys(range(self.segments)) if full else {}
        while starts:
            left: list[Image] = []
            answers = self.table.each(lambda at: scan_page(self.table, at[0], self.segments, at[1]), [*starts.items()])
            for segment, answer in zip([*starts], answers, strict=True):
                self.scanned += len(answer["Items"])
                self._spend(units_of(answer))
                left += [item for item in answer["Items"] if item.get(TYPE, {}).get("S") in full]
                starts[segment] = answer.get("LastEvaluatedKey")
            starts = {segment: start for segment, start in starts.items() if start}
            for start in range(0, len(left), _AT_A_TIME):
                # What was read of them was counted before: the next run has not begun.
                if not self._still_waits():
                    return False
                some = left[start : start + _AT_A_TIME]
                self.table.each(self._delete, some)
                self._spend(len(some))
                self.deleted.update(item[TYPE]["S"] for item in some)
            yield self._step(DELETING, self.scanned, self.items)
        return self._still_waits()

    def _still_waits(self) -> bool:
        entries = read_registry(self.table).entries
        return all(entries.get(name) == entry for name, entry in self._emptied.items())

    def _delete(self, item: Image) -> None:
        """Delete an item as it was read: in the next run its watermarks are later, or it has a baseline of that."""
        compared = [TYPE, BASELINE, *(name for name in item if name.startswith(WATERMARK_PREFIX))]
        seen = {name: item.get(name) for name in compared}
        request = update_as_seen(self.table.name, {PK: item[PK], SK: item[SK]}, {}, seen)
        self.table.write("delete_item", **request)


@dataclass(kw_only=True)
class Dropping(Emptying):
    """Drops names: empties them, and removes them from the registry, once nobody folds them."""

    _drops: ClassVar[bool] = True

    @classmethod
    def of_table(cls, table: Table, now: Callable[[], float] | None = None, **options: Any) -> Self:
        """Make what drops names of a table, which waits no longer than that needs."""
        described = table.client.describe_table(TableName=table.name)
        if is_emulated(described):
            options |= {"fresh": FRESH + ONE_CLOCK, "folded": KNOWN_AT_ONCE}
        items = described["Table"].get("ItemCount", 0)
        return cls(table=table, now=now or ServiceTime(table), items=items, **options)

    def steps(self) -> Iterator[Progress]:
        """Drop the names; yield after each step the phase, and how much of it is done."""
        registry = founded_registry(self.table)
        names = self._chosen(registry)
        alerts = [entry for name in names for entry in registry.thresholds.get(name, ())]
        alerts += [registry.entries[name] for name in names if registry.entries[name].watches]
        if removed := [(entry, None) for entry in {each.name: each for each in alerts}.values()]:
            write_registry(self.table, registry, removed)
        counting = [name for name in names if not registry.entries[name].watches]
        if not counting:
            return
        yield from self.empty(counting)
        removed = [(entry, None) for entry in self._emptied.values()]
        if not write_registry(self.table, read_registry(self.table), removed):
            raise BackfillError("another process works on the same names: run it again")

    def _chosen(self, registry: Registry) -> list[str]:
        """The names, with those that a `Distinct` is made of; refuse what something else counts."""
        names = {name if name in registry.entries else threshold_name(name) for name in self.names}
        for name in sorted(names):
            if name not in registry.entries:
                there = ", ".join(sorted(registry.names)) or "none"
                given = name.removeprefix(threshold_name(""))
                raise BackfillError(f"invalid name={given!r}: expected one that the table counts: {there}")
        names = with_parts(names, registry.declarations) & registry.entries.keys()
        for each in registry.declarations:
            # What was registered since waits: it can be filled once its source is declared anew.
            if each.name not in names and each.source.name in names and not registry.entries[each.source.name].dropped:
                raise BackfillError(f"{each.name!r} counts {each.source.name!r}: drop it, too")
        return sorted(names)


@dataclass(kw_only=True)
class Backfill(Emptying, Runner):
    """Backfills some names of a table; by default all that wait for it."""

    withheld: int = 0
    """Entries of the quarantine that wait for what was filled: it cannot count them."""
    _kind = "backfill"

    def preview(self) -> tuple[list[str], int, int]:
        """The names that a run would fill, and about how many items and bytes it would read for them."""
        names = [entry.name for entry in names_to_fill(founded_registry(self.table), self.names)]
        described = self._described()
        items, size = (sum(table.get(name, 0) for table in described) for name in ("ItemCount", "TableSizeBytes"))
        return names, items, size

    def _prepare(self) -> Iterator[Progress]:
        entries = names_to_fill(founded_registry(self.table), self.names)
        if not entries:
            raise BackfillError("nothing to backfill: every name counts all there is")
        yield from self.empty([entry.name for entry in entries])

    def _try_to_open(self, registry: Registry, opened: float) -> bool:
        is_same = all(registry.entries.get(name) == entry for name, entry in self._emptied.items())
        # What they count may have been emptied meanwhile.
        if not is_same or [each.name for each in names_to_fill(registry, self._emptied)] != sorted(self._emptied):
            raise BackfillError("another process works on the same names: run it again")
        run = self._begin(opened, scanned_names(self._emptied.values()))
        filled = {"since": run.since, "run": run.id, "fresh": False, "surplus": False}
        changes = [(entry, entry.entering(FILLING, opened, **filled)) for entry in self._emptied.values()]
        # With the header: a command that empties what they count is refused, or refuses this.
        return write_registry(self.table, registry, changes, attributes={}, also=self._also())

    def _finish(self) -> Iterator[Progress]:
        self._enter(DRAINING, ADDING)
        if self.state.phase == ADDING:
            yield from self._withhold()
            yield from self._add()

    def _withhold(self) -> Iterator[Progress]:
        """Let what the baseline lacks wait in quarantine, as if the stream had brought it."""
        keys = withheld(self._pages())
        while some := list(islice(keys, _AT_A_TIME)):
            self.table.each(lambda one: confirm(self.table, *one), some)
            self._spend(len(some))
            self.withheld += len(some)
            yield self._step(WITHHOLDING, self.withheld, 0)

    def _add(self) -> Iterator[Progress]:
        plan, pages = self._plan(), self._pages()
        mark, committer, added = Watermark(found_by(self.state.run.id)), committer_of(self.table), 0
        mark.name = BASELINE
        for part, parts, sums in baselines(pages, self.state.parts_done, self.state.parts):
            paged, left = [ref for ref in sums if plan.programs[ref[0]].layout.pages], len(sums)
            alone = sorted(sums.keys() - set(paged))
            slices = (alone[start : start + _AT_A_TIME] for start in range(0, len(alone), _AT_A_TIME))
            # All that a page gets at once: its mark covers them all.
            for refs in filter(None, (paged, *slices)):
                self._require_open()
                deltas = self._deltas(plan, self.state.run, {ref: sums[ref] for ref in refs}, part, parts)
                done = committer.commit(deltas, Part(plan, (), mark))
                self._spend(done.write_units)
                self.withheld += done.quarantined
                added, left = added + len(refs), left - len(refs)
                yield self._step(ADDING, added, added + left * (parts - part))
            self.state.parts_done, self.state.parts = part + 1, parts
            if not self._write(ADDING):
                self._reload()
                if self.state.phase != ADDING:
                    return
        yield from self._settle(plan)
        if self.state.phase == ADDING:
            if not self._ended(ENDED):
                self._void()
            if self.state.phase != ENDED:
                raise BackfillError(self._dropped.format(self.run))

    def _deltas(self, plan: Plan, run: Run, sums: Totals, part: int, parts: int) -> list[Delta]:
        """Deltas of groups, as one record of a shard of the backfill's own: later than those of all runs before."""
        begin, step, now = run.since * _PARTS, _PARTS // parts, self.now()
        first, last = padded(str(begin + part * step + 1)), padded(str(begin + (part + 1) * step))
        deltas = [Delta(plan.programs[ref[0]].layout, ref[1], first, last, sums[ref]) for ref in sums]
        # What is gone may have had its baseline, and a run may rest for long; no reader is promised it so far back.
        return [delta for delta in deltas if not delta.layout.is_gone(delta.group, now)]

    def _settle(self, plan: Plan) -> Iterator[Progress]:
        """Let what counts the filled aggregates catch up, so that readers never see it lack them."""
        counted = [program.layout.declaration for program in plan.programs.values()]
        names = set(self.state.run.names)
        while self.state.phase == ADDING and (names := {over.name for over in counted if over.source.name in names}):
            # Times of records are whole seconds.
            moment = math.ceil(self.now())
            self.table.sleep(moment - self.now())
            for step in self._wait_for_log(partial(self._has_passed_in_own_table, moment)):
                yield step
                if self.now() > moment + _SETTLING:
                    break

    def _changes(self, registry: Registry, entered: RegistryState) -> list[tuple[Entry, Entry]]:
        """The entries that the run fills, each with what it becomes."""
        filled = (each for each in registry.names.values() if each.state == FILLING and each.run == self.state.run.id)
        return [(entry, entry.entering(entered, self.now())) for entry in filled]

    def _void(self) -> None:
        try:
            super()._void()
        finally:
            # Of a run whose other names were dropped or filled anew, the rest goes stale, too.
            registry = founded_registry(self.table)
            if changes := self._changes(registry, STALE):
                write_registry(self.table, registry, changes)

    def _close(self, registry: Registry) -> bool:
        """End a run: what it has filled is complete; if the run is void, or what that counts is, it goes stale."""
        changes = self._changes(registry, COMPLETE)
        declared = [entry.declaration for entry, _ in changes]
        if any(each is None or registry.lacking(each, lasting=True) for each in declared):
            self.state.phase = VOID
        if self.state.phase == VOID:
            changes = self._changes(registry, STALE)
        return write_registry(self.table, registry, changes, also=self._also())
