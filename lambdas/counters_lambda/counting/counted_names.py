"""What one process knows of a table's registry: one that folds, and one that reads or counts directly.

Both rely on what they have read for FRESH.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TypeAlias

from botocore.exceptions import ClientError

from counters_lambda.counting.run_logs import RunLogs, is_past
from dynamodb_counters._assumptions import (
    CLOCKS,
    FRESH,
    GIVEN_UP_AFTER,
    KNOWN_AT_ONCE,
    MOST_NAMES,
    RUN_OPEN_AFTER,
    STREAM_BEGINS_WITHIN,
)
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, require_consistent
from dynamodb_counters._declarations.codec import definition, encode
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.schema import typed_values
from dynamodb_counters._quarantine import Quarantine
from dynamodb_counters._registry import (
    COMPLETE,
    DECLARED,
    SOURCE,
    STALE,
    WAITING,
    Entry,
    PageLevels,
    Registry,
    Run,
    entries_of,
    is_same,
    note_surplus,
    read_registry,
    write_registry,
)
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, InvalidArgumentError

Portion: TypeAlias = tuple[Plan, Sequence[Change]]
"""Consecutive changes of a shard, and the plan by which the same names count them."""


class CountedNames:
    """The names that one process of the aggregator folds, each by its registered definition.

    `source` is the ARN of the source table, "" for none; the emulator's function `always_reads` the registry before a
    batch.
    """

    def __init__(
        self, table: Table, declarations: tuple[Declaration, ...], source: str = "", *, always_reads: bool = False
    ) -> None:
        self._table, self._own, self._source = table, declarations, source
        self._always_reads = always_reads
        self._own_entries = {entry.name: entry for entry in entries_of(declarations)}
        self._logs = RunLogs(table)
        self._plans: dict[frozenset[str], Plan] = {}
        self._read_at = -math.inf
        self._has_told = False
        """Whether the header has had what this process declares: two versions do not write it in turns for long."""
        self.registry = Registry()
        self.changed: tuple[str, ...] = ()
        """Names that the own code declares otherwise than they are registered."""
        self.undeclared: tuple[str, ...] = ()
        """Names that count although the own code does not declare them."""
        self.refused: Mapping[str, str] = {}
        """Names that cannot be registered, and why."""

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
        own, there = self._own_entries.keys(), registry.entries.keys()
        self.changed = tuple(sorted((own & there) - self._unchanged(registry)))
        self.undeclared = tuple(sorted(there - own))
        return True

    def _unchanged(self, registry: Registry) -> set[str]:
        """Names that the own code declares as they are registered."""
        both = self._own_entries.keys() & registry.entries.keys()
        return {name for name in both if is_same(registry.entries[name], self._own_entries[name])}

    # Registering

    def _registered(self, registry: Registry) -> Registry:
        for _ in self._table.tries():
            new = self._new_entries(registry)
            attributes = {SOURCE: self._source} if self._source not in ("", registry.source) else {}
            text = encode(self._own, attributes=True)
            if not self._has_told and registry.header.get(DECLARED) != {"S": text}:
                attributes[DECLARED] = text
            if registry.is_founded and not new and not attributes:
                return registry
            changes = [(None, entry) for entry in new]
            if write_registry(self._table, registry, changes, attributes=typed_values(attributes)):
                self._has_told = True
                return read_registry(self._table)
            registry = read_registry(self._table)
        raise CheckpointError("the table's registry changes all the time: the batch is delivered again")

    def _new_entries(self, registry: Registry) -> list[Entry]:
        """Entries of the own declarations that are not registered, and do not contradict what is."""
        now, known, refused = math.ceil(self._table.clock()), list(registry.readable), dict[str, str]()
        # Those that others count first.
        ordered = sorted(self._own, key=lambda each: len(list(with_below(each))))
        missing = [each for each in ordered if each.name not in registry.entries]
        tables = [name for name in (self._table.name, self._source) if name]
        is_whole = bool(missing) and not registry.is_founded and not any(map(self._lacks_past, tables))
        found: list[Entry] = []
        for each in missing:
            try:
                require_consistent((*known, definition(each)))
            except InvalidArgumentError as error:
                refused[each.name] = str(error)
                continue
            known.append(definition(each))
            # A later name waits even in a new table: records of before may have been counted without it.
            is_complete = is_whole or isinstance(each.source, Direct)
            state = COMPLETE if is_complete else WAITING
            found.append(replace(self._own_entries[each.name], state=state, at=now, fresh=not is_complete))
        # What watches a changed declaration has nothing to watch.
        counted = {entry.name for entry in found} | self._unchanged(registry)
        # All processes know of a later threshold by then.
        delay = KNOWN_AT_ONCE if self._always_reads else RUN_OPEN_AFTER
        since = 0 if not registry.is_founded else math.ceil(now + delay)
        for name, entry in self._own_entries.items():
            if entry.watches in counted and name not in registry.entries:
                found.append(replace(entry, at=now, since=since))
        if not registry.is_founded and len(found) > MOST_NAMES:
            raise CheckpointError(f"a table's first deployment declares at most {MOST_NAMES} names, not {len(found)}")
        self.refused = refused
        return found[:MOST_NAMES]

    def _lacks_past(self, name: str) -> bool:
        """Whether the stream of the table, or of the source table, lacks what was there before, or is too old."""
        try:
            table = self._table.client.describe_table(TableName=name)["Table"]
        except ClientError:
            # A source table of another account need not allow it.
            if name != self._source:
                raise
            return True
        created, label = table.get("CreationDateTime"), table.get("LatestStreamLabel")
        if created is None or label is None:
            return False
        # The label is the time at which the stream began, and names no time zone: it is UTC.
        began = datetime.fromisoformat(label).replace(tzinfo=UTC)
        # No aggregator has read it before this first deployment, and Lambda gives up on records of that age.
        is_old = began.timestamp() <= self._table.clock() - GIVEN_UP_AFTER
        return is_old or began > created + timedelta(seconds=STREAM_BEGINS_WITHIN)

    def _require_readable(self, registry: Registry, now: float) -> None:
        """Leave out what cannot be read, once no reader takes it for complete."""
        lacking: list[str] = []
        for name in sorted(registry.names.keys() - {each.name for each in registry.readable}):
            entry = registry.names[name]
            if entry.state == WAITING:
                continue
            if entry.state != STALE:
                # On condition that it is as it was read; then the registry is read again.
                write_registry(self._table, registry, [(entry, entry.entering(STALE, now))])
                lacking.append(name)
            elif now <= entry.at + FRESH + CLOCKS:
                lacking.append(name)
        if lacking:
            raise CheckpointError(
                f"{', '.join(sorted(lacking))} is counted by a definition that this version cannot read: it goes "
                "stale, and the others are counted once no reader takes it for complete, in a minute or two"
            )

    def note_surplus(self, names: Iterable[str]) -> None:
        self.registry = note_surplus(self._table, self.registry, names)

    # Folding

    def portions(self, shard: str, changes: Sequence[Change]) -> tuple[list[Portion], dict[str, str]]:
        """Cut changes where names and runs begin to count; and the first records that these count from."""
        counting = [entry for entry in self.registry.names.values() if entry.counts and entry.declaration is not None]
        since = {entry.run: entry.since for entry in counting if entry.run}
        names = {run: tuple(sorted(entry.name for entry in counting if entry.run == run)) for run in since}
        runs = [*(Run(run, "backfill", since[run], names[run]) for run in since), *self.registry.verifications]
        cuts = {run.id: self._logs.cut(run, shard, changes) for run in runs}

        def past(change: Change) -> frozenset[str]:
            return frozenset(run for run, cut in cuts.items() if cut <= change.sequence)

        found: list[Portion] = []
        for past_runs, part in groupby(changes, past):
            ahead = frozenset(entry.name for entry in counting if entry.run and entry.run not in past_runs)
            some = list(part)
            for change in some:
                restrict(self._table, change, counting)
            found.append((self._plan(ahead), some))
        return found, cuts

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
    origin = change.origin
    if origin is None:
        return
    later = {entry.name for entry in counting if entry.run and not is_past(table, entry.run, entry.since, origin)}
    if later:
        names = {entry.name for entry in counting} if change.names is None else change.names
        change.names = frozenset(names - later)


def plan_of(registry: Registry, ahead: frozenset[str] = frozenset()) -> Plan:
    """What is folded of a registry, with its thresholds, but for names whose first record lies `ahead`."""
    declarations: list[Declaration] = []
    since: dict[str, float] = {}
    for each in registry.counting:
        if any(below.name in ahead for below in with_below(each)):
            continue
        entry = registry.entries[each.name]
        # While a backfill fills it, its numbers are partial; every process knows its end by then.
        begin = entry.at + RUN_OPEN_AFTER if entry.run else 0
        watching = registry.thresholds.get(each.name, ()) if entry.is_complete else ()
        thresholds = [(one, other.since) for other in watching if (one := other.threshold) is not None]
        since |= {one.name: max(begin, at) for one, at in thresholds}
        armed = tuple(one for one, _ in thresholds)
        declarations.append(replace(each, _thresholds=armed) if armed and isinstance(each, Aggregate) else each)
    return Plan(tuple(declarations), since)
