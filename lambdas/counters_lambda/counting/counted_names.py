"""The names that a process of the aggregator folds, by a registry that it relies on for FRESH after it was read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TypeAlias

from botocore.exceptions import ClientError

from counters_lambda.counting.run_logs import RunLogs, is_past
from dynamodb_counters import _assumptions, _registry
from dynamodb_counters._assumptions import FRESH, MOST_NAMES, RUN_OPEN_AFTER
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, require_consistent
from dynamodb_counters._declarations.codec import definition, encode
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.schema import typed_values
from dynamodb_counters._quarantine import Quarantine
from dynamodb_counters._registry import STALE, WAITING, Entry, PageLevels, Registry, Run, read_registry, write_registry
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, InvalidArgumentError

Portion: TypeAlias = tuple[Plan, Sequence[Change]]  # Consecutive changes, and the plan by which the same names count.


class CountedNames:
    """The names that one process folds, each by its registered definition; `source` is a table's ARN, "" for none."""

    def __init__(
        self, table: Table, declarations: tuple[Declaration, ...], source: str = "", *, always_reads: bool = False
    ) -> None:
        self._table, self._own, self._source = table, declarations, source
        self._always_reads = always_reads
        self._own_entries = {entry.name: entry for entry in _registry.entries_of(declarations)}
        self._declared = encode(declarations, attributes=True)
        self._logs = RunLogs(table)
        self._plans: dict[frozenset[str], Plan] = {}
        self._read_at = -math.inf
        self._has_declared = False  # In the header, once: two versions do not write it in turns for long.
        self.registry = Registry()
        self.changed: tuple[str, ...] = ()
        self.undeclared: tuple[str, ...] = ()
        self.refused: Mapping[str, str] = {}  # These as in a `Report`.

    def refresh(self) -> bool:
        """Read the registry if the copy is too old, and register what is new; return whether it was read."""
        now = self._table.clock()
        if self._read_at + FRESH > now and not self._always_reads:
            return False
        registry = self._registered(read_registry(self._table, is_known=self.registry.is_founded))
        self._require_readable(registry, now)
        if registry.entries != self.registry.entries:
            self._plans.clear()
            PageLevels.of_table(self._table).clear()
        self.registry, self._read_at = registry, now
        own, registered = self._own_entries.keys(), registry.entries.keys()
        self.changed = tuple(sorted((own & registered) - self._unchanged(registry)))
        self.undeclared = tuple(sorted(registered - own))
        return True

    def _unchanged(self, registry: Registry) -> set[str]:
        own, registered = self._own_entries, registry.entries
        return {name for name in own.keys() & registered.keys() if _registry.is_same(registered[name], own[name])}

    def _registered(self, registry: Registry) -> Registry:
        for _ in self._table.tries():
            new = self._new_entries(registry)
            attributes = {_registry.SOURCE: self._source} if self._source not in ("", registry.source) else {}
            if not self._has_declared and registry.header.get(_registry.DECLARED) != {"S": self._declared}:
                attributes[_registry.DECLARED] = self._declared
            if registry.is_founded and not new and not attributes:
                return registry
            changes = [(None, entry) for entry in new]
            if write_registry(self._table, registry, changes, attributes=typed_values(attributes)):
                self._has_declared = True
                return read_registry(self._table)
            registry = read_registry(self._table)
        raise CheckpointError("the table's registry changes all the time: the batch is delivered again")

    def _new_entries(self, registry: Registry) -> list[Entry]:
        if self._own_entries.keys() <= registry.entries.keys():
            self.refused = {}
            return []
        now, consistent, refused = math.ceil(self._table.clock()), list(registry.readable), dict[str, str]()
        # Those that others count first.
        ordered = sorted(self._own, key=lambda declaration: len(list(with_below(declaration))))
        missing = [declaration for declaration in ordered if declaration.name not in registry.entries]
        tables = [name for name in (self._table.name, self._source) if name]
        is_whole = bool(missing) and not registry.is_founded and not any(map(self._lacks_past, tables))
        entries: list[Entry] = []
        for declaration in missing:
            try:
                require_consistent((*consistent, definition(declaration)))
            except InvalidArgumentError as error:
                refused[declaration.name] = str(error)
                continue
            consistent.append(definition(declaration))
            # A later name waits even in a new table: records of before may have been counted without it.
            is_complete = is_whole or isinstance(declaration.source, Direct)
            state = _registry.COMPLETE if is_complete else WAITING
            entries.append(replace(self._own_entries[declaration.name], state=state, at=now, fresh=not is_complete))
        # What watches a changed declaration has nothing to watch.
        counted = {entry.name for entry in entries} | self._unchanged(registry)
        # All processes know of a later threshold by then.
        delay = _assumptions.KNOWN_AT_ONCE if self._always_reads else RUN_OPEN_AFTER
        since = 0 if not registry.is_founded else math.ceil(now + delay)
        for name, entry in self._own_entries.items():
            if entry.watches in counted and name not in registry.entries:
                entries.append(replace(entry, at=now, since=since))
        if not registry.is_founded and len(entries) > MOST_NAMES:
            raise CheckpointError(f"a table's first deployment declares at most {MOST_NAMES} names, not {len(entries)}")
        self.refused = refused
        return entries[:MOST_NAMES]

    def _lacks_past(self, name: str) -> bool:
        """Return whether the stream of the table, or of the source table, lacks earlier records, or is too old."""
        try:
            table = self._table.client.describe_table(TableName=name)["Table"]
        except ClientError:
            if name != self._source:  # A source table of another account need not allow it.
                raise
            return True
        if (created := table.get("CreationDateTime")) is None or (label := table.get("LatestStreamLabel")) is None:
            return False
        # The label is the time at which the stream began, and names no time zone: it is UTC.
        began = datetime.fromisoformat(label).replace(tzinfo=UTC)
        # No aggregator has read it before this first deployment, and Lambda gives up on records of that age.
        is_old = began.timestamp() <= self._table.clock() - _assumptions.GIVEN_UP_AFTER
        return is_old or began > created + timedelta(seconds=_assumptions.STREAM_BEGINS_WITHIN)

    def _require_readable(self, registry: Registry, now: float) -> None:
        """Leave out what cannot be read, once no reader takes it for complete."""
        lacking: list[str] = []
        for name in sorted(registry.names.keys() - {declaration.name for declaration in registry.readable}):
            entry = registry.names[name]
            if entry.state == WAITING:
                continue
            if entry.state != STALE:
                # On condition that it is as it was read; then the registry is read again.
                write_registry(self._table, registry, [(entry, entry.entering(STALE, now))])
            if entry.state != STALE or now <= entry.at + FRESH + _assumptions.CLOCKS:
                lacking.append(name)
        if lacking:
            raise CheckpointError(
                f"{', '.join(sorted(lacking))} is counted by a definition that this version cannot read: it goes "
                "stale, and the others are counted once no reader takes it for complete, in a minute or two"
            )

    def note_surplus(self, names: Iterable[str]) -> None:
        self.registry = _registry.note_surplus(self._table, self.registry, names)

    def portions(self, shard: str, changes: Sequence[Change]) -> tuple[list[Portion], dict[str, str]]:
        """Cut changes where names and runs begin to count; and the first records that these count from."""
        counting = [entry for entry in self.registry.names.values() if entry.counts and entry.declaration is not None]
        since = {entry.run: entry.since for entry in counting if entry.run}
        names = {run: tuple(sorted(entry.name for entry in counting if entry.run == run)) for run in since}
        runs = [*(Run(run, "backfill", since[run], names[run]) for run in since), *self.registry.verifications]
        cuts = {run.id: self._logs.cut(run, shard, changes) for run in runs}

        def past(change: Change) -> frozenset[str]:
            return frozenset(run for run, cut in cuts.items() if cut <= change.sequence)

        for change in changes:
            restrict(self._table, change, counting)
        portions: list[Portion] = []
        for past_runs, part in groupby(changes, past):
            ahead = frozenset(entry.name for entry in counting if entry.run and entry.run not in past_runs)
            portions.append((self._plan(ahead), list(part)))
        return portions, cuts

    def _plan(self, ahead: frozenset[str]) -> Plan:
        if ahead not in self._plans:
            self._plans[ahead] = plan_of(self.registry, ahead)
        return self._plans[ahead]

    def log(self, portion: Portion, shard: str, cuts: Mapping[str, str], quarantine: Quarantine) -> float:
        """Log changes for the runs that are open, before they are counted; return the write units."""
        plan, changes = portion
        runs, write = self.registry.runs, self._logs.write
        return sum(write(run, plan, shard, changes, cuts[run.id], quarantine=quarantine) for run in runs)


def restrict(table: Table, change: Change, counting: Sequence[Entry]) -> None:
    """Let a record that is redriven count only in names whose cut lies before it."""
    if (origin := change.origin) is None:
        return
    later = {entry.name for entry in counting if entry.run and not is_past(table, entry.run, entry.since, origin)}
    if later:
        names = {entry.name for entry in counting} if change.names is None else change.names
        change.names = frozenset(names - later)


def plan_of(registry: Registry, ahead: frozenset[str] = frozenset()) -> Plan:
    """Return what is folded of a registry, with its thresholds, but for names whose first record lies `ahead`."""
    folded: list[Declaration] = []
    since: dict[str, float] = {}
    for declared in registry.counting:
        if any(below.name in ahead for below in with_below(declared)):
            continue
        entry = registry.entries[declared.name]
        # While a backfill fills it, its numbers are partial; every process knows its end by then.
        begin = entry.at + RUN_OPEN_AFTER if entry.run else 0
        watching = registry.thresholds.get(declared.name, ()) if entry.is_complete else ()
        thresholds = [(threshold, alert.since) for alert in watching if (threshold := alert.threshold) is not None]
        since |= {threshold.name: max(begin, at) for threshold, at in thresholds}
        armed = tuple(threshold for threshold, _ in thresholds)
        folded.append(replace(declared, _thresholds=armed) if armed and isinstance(declared, Aggregate) else declared)
    return Plan(tuple(folded), since)
