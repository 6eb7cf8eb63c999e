"""The common part of backfills and verifications: open, scan while writers go on, wait for the log to catch up.

A run is a sequence of phases in the run's item, which only move forward. A process may die in any of them, and another
one goes on; two that work on the same run do not disturb each other.

The *baseline* is what all items together had contributed at one moment, the run's cut, summed up per group. The
earliest change of an item after the cut shows what it had contributed before; the scan shows it for the others. Parts
are worked off one by one, so that memory is bounded however many items and groups there are.
"""

from __future__ import annotations

import json
import math
import secrets
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import localcontext
from itertools import chain
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

from counters_lambda.counting import run_logs
from counters_lambda.counting.commit import Checkpoints, Committer
from counters_lambda.counting.counted_names import plan_of
from counters_lambda.counting.feeds import Feeds, LeftOver, Scan, ServiceTime, Shard, depth_of, feeds_of
from counters_lambda.counting.run_logs import ONLY_SHARD, RunRow, run_item, run_key
from dynamodb_counters._assumptions import CLOCKS, FRESH, KNOWN_AT_ONCE, LINEAGE_KEPT, RUN_OPEN_AFTER, SETTLED_AFTER
from dynamodb_counters._declarations.groups import Key
from dynamodb_counters._fold.fold import Sums
from dynamodb_counters._fold.layouts import GroupRef, ItemLayout
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW
from dynamodb_counters._items.conversions import EXACT, Number
from dynamodb_counters._items.schema import put_as_seen, read_fields, typed_values
from dynamodb_counters._quarantine import RETENTION, Quarantine, quarantine_key
from dynamodb_counters._registry import Registry, Run, founded_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import HOUR
from dynamodb_counters.errors import BackfillError

OPENING: Final = "opening"
WAITING: Final = "waiting"
SCANNING: Final = "scanning"
DRAINING: Final = "draining"
COMPARING: Final = "comparing"
COMPLETE: Final = "complete"
VOID: Final = "void"
ROUNDS: Final = 5  # Times that a run begins, or reads its groups, because shards were split meanwhile.
SPLITTING: Final = "the table's stream is splitting its shards all the time: try again later"
MOST_HELD: Final = 500_000  # Changed items, or groups, that are held at a time.
_POLL: Final = 2.0
_MOST_BEATS: Final = 1000  # While shards wait, each time twice as many: random keys seldom meet a shard that owns few.
_LAST_PAGES: Final = 25  # A batch that is delivered again in parts may have written the last ones.

Totals: TypeAlias = dict[GroupRef, dict[str, Number]]


@dataclass(frozen=True, slots=True)
class Progress:
    phase: str
    run: str
    done: int = 0  # Seconds, items, shards, entries or groups of the phase.
    total: int = 0  # 0 if unknown.
    units: float = 0.0  # Capacity units consumed by this process.


@dataclass(slots=True)
class Lineage:
    parents: dict[str, str] = field(default_factory=dict)  # Of all shards so far: DynamoDB forgets them after a day.
    open: frozenset[str] = frozenset()

    def meet(self, shards: Collection[Shard]) -> None:
        self.parents |= {shard.id: shard.parent or self.parents.get(shard.id, "") for shard in shards}
        self.open = frozenset(shard.id for shard in shards if shard.is_open)

    @property
    def in_order(self) -> list[str]:
        """All shards that may have a log, parents before children; an emulator's events name none."""
        return sorted((*self.parents, ONLY_SHARD), key=lambda shard: depth_of(shard, self.parents))

    def waiting(self, acknowledged: Mapping[str, bool]) -> list[str]:
        """Return the open shards of which neither they nor a shard they came out of has acknowledged."""

        # Without the latter, shards that go on splitting would never have acknowledged all.
        def is_done(shard: str) -> bool:
            return bool(shard) and (acknowledged.get(shard, False) or is_done(self.parents.get(shard, "")))

        return [] if acknowledged.get(ONLY_SHARD) else sorted(shard for shard in self.open if not is_done(shard))


@dataclass(slots=True)
class State:
    run: Run
    phase: str
    segments: int
    described_at: float
    lineage: Lineage = field(default_factory=Lineage)
    ended_at: float = 0.0
    parts_done: int = 0
    parts: int = 1

    def values(self) -> dict[str, Any]:
        run, shards = self.run, [self.lineage.parents, sorted(self.lineage.open)]
        texts = {"names": json.dumps(run.names), "shards": json.dumps(shards)}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("run", "lineage")}
        return {"kind": run.kind, "since": run.since, **texts, **own}

    @classmethod
    def of(cls, run: str, item: Mapping[str, Any]) -> State:
        parents, is_open = json.loads(item["shards"]["S"])
        begun = Run(run, item["kind"]["S"], int(item["since"]["N"]), tuple(json.loads(item["names"]["S"])))
        return cls(begun, lineage=Lineage(parents, frozenset(is_open)), **read_fields(cls, item))


@dataclass(slots=True)
class Pages:
    """The pages of a run: what its scan has read, and what its log holds."""

    table: Table
    run: Run
    segments: int
    lineage: Lineage

    def scanned(self) -> Iterator[RunRow]:
        """Yield each item that contributed when it was read, or would have."""
        for segment in range(self.segments):
            for page in self.table.partition(run_logs.scan_partition(self.run.id, segment)):
                yield from run_logs.rows_of(page)

    def logged(self) -> Iterator[tuple[str, RunRow]]:
        """Yield each logged change with its shard, some of them repeatedly; parents before children."""
        for shard in self.lineage.in_order:
            for page in self.table.partition(run_logs.log_partition(self.run.id, shard)):
                yield from ((shard, change) for change in run_logs.rows_of(page))

    def last_logged(self, shard: str, limit: int) -> list[Any]:
        pk = run_logs.log_partition(self.run.id, shard)
        return list(self.table.last_of(pk, limit, ("created", "beats", "last")))

    def added(self) -> Iterator[tuple[str, RunRow]]:
        """Yield each change that a verification has logged, once; batches are delivered, and logged, again."""
        through: dict[str, str] = {}
        for shard, change in self.logged():
            if change.sequence > through.get(shard, ""):
                yield shard, change
                through[shard] = change.sequence


def first_changes(pages: Pages, part: int, parts: int) -> dict[str, tuple[str, RunRow]]:
    """Return the first change after the cut of each item that changed, and its shard, by the item's digest."""
    changes: dict[str, tuple[str, RunRow]] = {}
    depths = {shard: depth_of(shard, pages.lineage.parents) for shard in pages.lineage.in_order}
    for shard, change in pages.logged():
        if change.digest and part_of(change.digest, parts) == part:
            origin, first = changes.setdefault(change.digest, (shard, change))
            if (depths[shard], change.sequence) < (depths[origin], first.sequence):
                changes[change.digest] = shard, change
    return changes


def contributions(pages: Pages, part: int, parts: int) -> Iterator[Sums]:
    """Yield the contributions of each item of a part at the cut."""
    changed = first_changes(pages, part, parts)
    for item in pages.scanned():
        if item.digest not in changed and part_of(item.digest, parts) == part:
            yield item.sums
    for _, change in changed.values():
        yield change.sums


def withheld(pages: Pages) -> Iterator[tuple[Key, Key | None]]:
    """Yield the keys of the entries that hold what could not be folded of items as they were at the cut."""
    # Each with that of the scan for the same image, or row of a chunk: where the run let that one wait before it knew
    # of a change of the item, it stands for both.
    parts, scan = _item_parts(pages), run_logs.found_by(pages.run.id)
    for part in range(parts):
        changed, scanned = first_changes(pages, part, parts), dict[tuple[str, str], Key]()
        for item in pages.scanned():
            if item.entries and part_of(item.digest, parts) == part:
                keys = {(item.digest, entry[entry.index(NEW) :]): quarantine_key(scan, entry) for entry in item.entries}
                if item.digest in changed:
                    scanned |= keys
                else:
                    yield from ((key, None) for key in keys.values())
        for digest, (shard, change) in changed.items():
            for entry in change.entries:
                yield quarantine_key(shard, entry), scanned.get((digest, entry[entry.index(NEW) :]))


def _item_parts(pages: Pages) -> int:
    return 1 + sum(1 for _ in pages.logged()) // MOST_HELD


def sum_up(contributed: Iterable[Sums], part: int, parts: int) -> Totals | None:
    """Return the sums of a part's groups; None if they do not fit into memory."""
    totals: Totals = {}
    with localcontext(EXACT):
        for ref, measures in chain.from_iterable(sums.items() for sums in contributed):
            if parts > 1 and part_of(repr(ref), parts) != part:
                continue
            total = totals.setdefault(ref, {})
            if len(totals) > MOST_HELD:
                return None
            for name, number in measures.items():
                total[name] = total.get(name, 0) + number
    return totals


def part_of(text: str, parts: int) -> int:
    """Return in which of so many equal parts a text is; a part of four times as many lies within one of these."""
    return zlib.crc32(text.encode()) * parts >> 32


def baselines(pages: Pages, part: int, parts: int) -> Iterator[tuple[int, int, Totals]]:
    """Yield the baselines of all groups from a part on, in so many that each fits into memory: part, parts, sums."""
    items = _item_parts(pages)
    while part < parts:
        sums = sum_up((sums for number in range(items) for sums in contributions(pages, number, items)), part, parts)
        if sums is None:
            part, parts = part * 4, parts * 4
        else:
            yield part, parts, sums
            part += 1


def committer_of(table: Table) -> Committer:
    return Committer(table, Quarantine(table, RETENTION), Checkpoints(table, table), None)


@dataclass(kw_only=True)
class Work:
    table: Table
    now: Callable[[], float]  # DynamoDB's time.
    names: Collection[str] = ()
    run: str = ""  # The run that it works on, as soon as that is open.
    segments: int = 4
    units_per_second: float | None = None
    fresh: float = FRESH + CLOCKS  # Seconds after which nobody relies on what an entry of the registry was before.
    folded: float = SETTLED_AFTER + CLOCKS  # Seconds after which no invocation folds what the registry was before.
    _units: float = 0.0

    def _spend(self, units: float) -> None:
        self._units += units
        if self.units_per_second is not None:
            self.table.sleep(units / self.units_per_second)

    def _until(self, moment: float, phase: str, pause: float = _POLL) -> Iterator[Progress]:
        """Wait until a moment has passed; yield how much of the time has."""
        begun = self.now()
        while (now := self.now()) <= moment:
            yield self._step(phase, now - begun, moment - begun)
            self.table.sleep(min(pause, moment - now + 0.1))

    def _step(self, phase: str, count: float, total: float) -> Progress:
        return Progress(phase, self.run, int(count), int(total), self._units)


@dataclass(kw_only=True)
class Runner(Work, ABC):
    """Works on one run of a table; goes on with `run` if another process began it."""

    feeds: Feeds
    page_items: int = 2000
    open_after: float = RUN_OPEN_AFTER
    outlives: float = 0.0  # Seconds that a repair waits: what Lambda has given up on may be counted for so long.
    state: State = field(init=False)
    _by: Plan = field(init=False)  # What counts the names that it looks at.

    _kind: ClassVar[Literal["backfill", "verify"]]
    _dropped: ClassVar[str] = "run {} is void: what it looks at is not counted any more"

    @classmethod
    def of_table(cls, table: Table, streams: Any, now: Callable[[], float] | None = None, **options: Any) -> Self:
        """Make what works on a run with what its table says; `now` is DynamoDB's time if not its own."""
        feeds = feeds_of(table, streams)
        if feeds.clocks != CLOCKS:
            # In the emulator. Readers have the same copy for as long as anywhere.
            options |= {"open_after": KNOWN_AT_ONCE, "folded": KNOWN_AT_ONCE, "outlives": 0.0}
            options["fresh"] = FRESH + feeds.clocks
        return cls(table=table, feeds=feeds, now=now or ServiceTime(table), **options)

    def steps(self) -> Iterator[Progress]:
        """Work on the run; yield after each step where it is."""
        if self.run:
            self._find()
        for _ in range(ROUNDS):
            if not self.run:
                yield from self._prepare()
                self._open()
            if self.state.phase == WAITING:
                yield from self._until(self.state.run.since + self.feeds.clocks, WAITING)
            if self.state.phase != WAITING or self._same_shards():
                break
            self._void()
            if self.state.phase == COMPLETE:
                break
            self.run = ""
        else:
            raise BackfillError(SPLITTING)
        self._enter(WAITING, SCANNING)
        if self.state.phase == SCANNING:
            yield from self._scan()
        if self.state.phase == DRAINING:
            yield from self._wait_for_log(self._has_passed)
        yield from self._finish()
        yield self._step(self.state.phase, 1, 1)

    def _prepare(self) -> Iterator[Progress]:
        """Bring what the run looks at to where it can begin."""
        yield from ()

    @abstractmethod
    def _try_to_open(self, registry: Registry, opened: float) -> bool:
        """Open a run; False if another process has written meanwhile."""

    @abstractmethod
    def _finish(self) -> Iterator[Progress]:
        """Finish a run whose log has caught up with the scan."""

    def give_up(self) -> None:
        self._find()
        self._void()

    @abstractmethod
    def _close(self, registry: Registry) -> bool:
        """Write a run's last phase, and that it is not open any more; False if another process has written."""

    def _also(self) -> list[Any]:
        return [{"Put": {"TableName": self.table.name, "Item": self._item()}}]

    def _find(self) -> None:
        item = self.table.read_item(run_key(self.run))
        if not item:
            raise BackfillError(f"invalid run={self.run!r}: expected the id of a run of the last 30 days")
        self.state = State.of(self.run, item)
        if self.state.run.kind != self._kind:
            expected = f"one of `counters {self._kind}`, not of `counters {self.state.run.kind}`"
            raise BackfillError(f"invalid run={self.run!r}: expected {expected}")
        # Shards may be forgotten by now that it must know in these phases.
        has_rested = self.now() > self.state.described_at + LINEAGE_KEPT
        has_rested &= self.state.phase in (SCANNING, DRAINING, COMPARING)
        # An opening whose process died landed at an unknown time.
        if has_rested or self.state.phase in (OPENING, VOID):
            self._void()
        if self.state.phase == VOID:
            raise BackfillError(f"run {self.run} is void: begin another one")

    def _open(self) -> None:
        for _ in self.table.tries():
            opened = self.now()
            if self._try_to_open(founded_registry(self.table), opened):
                if self.now() <= opened + self.feeds.clocks:
                    self._enter(OPENING, WAITING)
                    self.run = self.state.run.id
                    return
                self._void()
        raise BackfillError("the table's registry changes all the time: try again later")

    def _begin(self, opened: float, names: Collection[str]) -> Run:
        run_id = f"{self._kind[0]}{secrets.token_hex(8)}"
        run = Run(run_id, self._kind, math.ceil(opened + self.open_after), tuple(names))
        self.state = State(run, OPENING, self.segments, opened)
        self.state.lineage.meet(self.feeds.shards())
        return run

    def _same_shards(self) -> bool:
        """Return whether no shard began near the cut, where the clocks of two shards could disagree about it."""
        before = set(self.state.lineage.parents)
        self.state.lineage.meet(self.feeds.shards())
        return set(self.state.lineage.parents) == before

    def _require_open(self) -> None:
        """Give up a run that is not open any more; return if another process has completed it."""
        if self.state.run not in founded_registry(self.table).runs:
            self._void()
            if self.state.phase != COMPLETE:
                raise BackfillError(self._dropped.format(self.state.run.id))

    def _plan(self) -> Plan:
        registry = founded_registry(self.table)
        plan = plan_of(registry)
        if self.state.run not in registry.runs or not plan.programs.keys() >= {*self.state.run.names}:
            self._void()
            raise BackfillError(self._dropped.format(self.state.run.id))
        return plan

    def _scan(self) -> Iterator[Progress]:
        plan, table, state = self._plan(), self.table, self.state
        declared = [program.layout.declaration for program in plan.programs.values()]
        quarantine = Quarantine(table, RETENTION, self.feeds.origins(table).ttl_of(declared))
        sources = self.feeds.tables(table)
        scan = Scan(table, sources, state.run, plan, state.segments, self.page_items, quarantine, self._spend)
        total = sum(table.get("ItemCount", 0) for table in self._described())
        try:
            for scanned in scan.rounds():
                if self.now() > self.state.described_at + HOUR:
                    self._describe()
                yield self._step(SCANNING, scanned, max(total, scanned))
        except LeftOver as name:
            self._void()  # Stale from now on, it is emptied first.
            raise BackfillError(f"{name} was counted in before it was registered: run it again") from None
        if self.state.phase == SCANNING:
            self.state.ended_at = self.now()
        self._enter(SCANNING, DRAINING)

    def _described(self) -> list[Mapping[str, Any]]:
        """Return what DynamoDB says of the tables, up to six hours late."""
        tables = [source.table for source in self.feeds.tables(self.table)]
        return [table.client.describe_table(TableName=table.name)["Table"] for table in tables]

    def _wait_for_log(self, has_passed: Callable[[str], bool]) -> Iterator[Progress]:
        """Wait until every shard has logged what it is to, or another process is done with it."""
        phase, beats_at, beats, pause = self.state.phase, -math.inf, 1, 10 * _POLL
        acknowledged: dict[str, bool] = {}
        while True:
            self._describe()
            if self.state.phase == phase:
                self._require_open()
            if self.state.phase != phase:
                return
            for shard in self.state.lineage.in_order:
                if not acknowledged.get(shard):
                    acknowledged[shard] = has_passed(shard)
            waiting = self.state.lineage.waiting(acknowledged)
            # A child without more records says nothing of its parent.
            foreign = filter(self.feeds.is_foreign, self.state.lineage.parents)
            waiting += [shard for shard in foreign if not acknowledged[shard] and shard not in waiting]
            if not waiting:
                return
            count = len(self.state.lineage.parents)
            yield self._step(self.state.phase, count - len(waiting), count)
            if self.now() > beats_at + pause:
                # Twice as many each time; then half as often, as its aggregator may be down for hours.
                pause = pause if beats < _MOST_BEATS else min(2 * pause, HOUR)
                beats_at, beats = self.now(), min(2 * beats, _MOST_BEATS)
                for _ in range(max(2 * len(waiting), beats)):
                    # Items of random keys: idle shards get something to log.
                    key = run_logs.beat_key(self.state.run.id, secrets.token_hex(8))
                    self.table.client.put_item(TableName=self.table.name, Item=run_item(key, {}, self.table.clock()))
                    self._spend(1.0)
            self.table.sleep(_POLL)

    def _has_passed(self, shard: str) -> bool:
        """Return whether the last page of a shard's log is from after the scan, or the shard has nothing else."""
        pages, source, end = self._pages(), self.feeds.source, self.state.ended_at + self.feeds.clocks
        if source is not None and source.has(shard) and self.now() > end:
            logged = [page["last"]["S"] for page in pages.last_logged(shard, _LAST_PAGES)]
            return not source.has_more(shard, max(logged, default=""), self.state.run.since, end)
        last = pages.last_logged(shard, 1)
        return any(float(page["created"]["N"]) > end or page["beats"]["N"] != "0" for page in last)

    def _has_passed_in_own_table(self, moment: float, shard: str) -> bool:
        last = self._pages().last_logged(shard, 1)
        return bool(self.feeds.is_foreign(shard)) or any(float(page["created"]["N"]) >= moment for page in last)

    def _layout(self, ref: GroupRef) -> ItemLayout:
        return self._by.programs[ref[0]].layout

    def _pages(self) -> Pages:
        segments = self.state.segments * len(self.feeds.tables(self.table))
        return Pages(self.table, self.state.run, segments, self.state.lineage)

    def _item(self) -> dict[str, Any]:
        return run_item(run_key(self.state.run.id), self.state.values(), self.table.clock())

    def _write(self, phase: str) -> bool:
        """Write the run's item if it is in a phase still."""
        before = typed_values({"phase": phase})
        return self.table.write("put_item", **put_as_seen(self.table.name, self._item(), before, before))

    def _enter(self, before: str, phase: str) -> None:
        """Go from one phase to another, unless another process has brought the run further."""
        if self.state.phase != before:
            return
        self.state.phase = phase
        if not self._write(before):
            self._reload()

    def _describe(self) -> None:
        self.state.lineage.meet(self.feeds.shards())
        self.state.described_at = self.now()
        self._enter(self.state.phase, self.state.phase)

    def _reload(self) -> None:
        state = State.of(self.state.run.id, self.table.read_item(run_key(self.state.run.id)))
        if state.phase == VOID:
            raise BackfillError(f"run {state.run.id} is void: another process gave it up")
        state.lineage.parents |= self.state.lineage.parents
        self.state = state

    def _void(self) -> None:
        """Give a run up; BackfillError if another process has done so, nothing if it is complete."""
        if not self._ended(VOID):
            # Another process has ended it; or a deployment has, which writes nothing into the run's item.
            self._reload()
            if self.state.phase != COMPLETE:
                self._enter(self.state.phase, VOID)

    def _ended(self, phase: str) -> bool:
        """End a run that is open; False if it is not any more."""
        self.state.phase = phase
        for _ in self.table.tries():
            registry = founded_registry(self.table)
            if self.state.run not in registry.runs:
                return False
            if self._close(registry):
                return True
        raise BackfillError("the table's registry changes all the time: run it again")
