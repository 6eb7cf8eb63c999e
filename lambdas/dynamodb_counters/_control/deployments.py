"""Deployments: a record is folded by the declarations in force when it was created, whoever delivers it.

The table holds a history: from when on the declarations of which deployment hold. A process that runs others than the
last ones appends its own, for records that are created later than any that another process may be folding without
knowing of it: a copy of the history was read before the new one had landed, at the latest at the deadline of the
invocation that sent it, and serves invocations that start within a minute; their records have been created by then.

So a batch that one deployment has half written is finished by the same declarations, and what cannot be folded is
quarantined by every delivery alike. Deployments that take turns are eras that take turns.

A deployment holds what is folded, not what the stack declares: a declaration that changes goes on as it was,
until a backfill has brought its next generation as far. A backfill opens an era of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from dynamodb_counters._assumptions import (
    FRESH,
    GIVEN_UP_AFTER,
    GUARANTEE,
    MOST_ERAS,
    SKEW,
    STREAM_BEGINS_WITHIN,
    WIDE_MARGIN,
)
from dynamodb_counters._changes.advice import told as changes_told
from dynamodb_counters._changes.effective import Merged, Past, fingerprint, merged
from dynamodb_counters._control.control import (
    DECLARED,
    NUMBERED,
    SOURCE,
    UNKNOWN,
    Control,
    Era,
    History,
    Status,
    decoded,
    deployment_id,
    deployment_item,
    history_key,
    past_of,
    read_control,
    read_declarations,
    stored_deployments,
    write_control,
)
from dynamodb_counters._control.run_items import NO_CUTS, Cuts, Run, RunLogs
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.codec import without_attributes
from dynamodb_counters._declarations.groups import definition, is_replaced, read_name
from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.bookkeeping import typed_values
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, CountersError

_TURNS: Final = (
    "deployments of different declarations take turns on this table; no more takeovers: the last one holds. "
    "Does an alias share traffic between two versions?"
)


@dataclass(frozen=True, slots=True)
class Takeover:
    """A takeover in words, and whether the history before it was lost."""

    text: str
    history_lost: bool


def last_declarations(table: Table, refusal: type[CountersError], *, folded: bool = False) -> tuple[Declaration, ...]:
    """The declarations that the stack deployed last, or those then `folded`; a `refusal` if the table lacks them."""
    seen = read_control(table)
    if seen.history is None:
        raise refusal("the table has no history of deployments: pass the declarations that counted it")
    found = read_declarations(table, seen.history.last.deployment if folded else seen.declared)
    if found is None:
        raise refusal("this version cannot read the last deployment's declarations: install the one that ran")
    return found


def deployed_declarations(table: Table) -> Iterator[tuple[Declaration, ...] | None]:
    """The declarations of the table's deployments, the latest first; None for those that this version cannot read."""
    history = read_control(table).history
    for name in dict.fromkeys(era.deployment for era in reversed(history.eras)) if history else ():
        yield read_declarations(table, name)


class Deployments:
    """The deployments of one table, as one process of one of them knows them."""

    # `source` is the ARN of the source table, "" for none. A command never `takes_over`: it counts by the history as it
    # is. It, and the emulator's function, `always_reads` the history before a batch.

    def __init__(
        self,
        table: Table,
        declarations: tuple[Declaration, ...],
        source: str = "",
        *,
        takes_over: bool = True,
        always_reads: bool = False,
    ) -> None:
        self._table, self._source = table, source
        self._takes_over, self._always_reads = takes_over, always_reads or not takes_over
        self._declared, self._declared_id = declarations, deployment_id(declarations)
        self._own = without_attributes(declarations)
        own = tuple(map(definition, self._own))
        self._id = deployment_id(own)
        self._declarations: dict[str, tuple[Declaration, ...] | None] = {self._id: own}
        self._plans: dict[str, Plan | None] = {}
        self._own_plan = Plan(own)
        self.history = History((Era(0, self._id),))
        self._runs: tuple[Run, ...] = ()
        self._logs = RunLogs(table)
        self._read_at = -math.inf

    def refresh(self, deadline: float) -> Takeover | None:
        """Read the history if the copy is too old; take over unless the own declarations are the last."""
        now = self._table.clock()
        if self._read_at + FRESH > now and not self._always_reads:
            return None
        known, takeover = self._known(deadline)
        assert known.history is not None
        self.history, self._runs = known.history, known.runs
        for era in self.history.eras:
            self._load(era.deployment)
        self._read_at = now
        return takeover

    def cuts(self, shard: str, changes: Sequence[Change]) -> Cuts:
        """The first records of a shard that open runs, and eras that backfills have opened, count from."""
        opened = {era.run: era.valid_from for era in self.history.eras if era.run}
        if not opened and not self._runs:
            return NO_CUTS
        return Cuts(
            {run: self._logs.cut(run, since, shard, changes) for run, since in opened.items()},
            {run.id: self._logs.cut(run.id, run.since, shard, changes) for run in self._runs},
        )

    def plan_of(self, deployment: str) -> Plan | None:
        """The declarations of a deployment, compiled; None if they cannot be read."""
        if deployment not in self._plans:
            declarations = self._load(deployment)
            self._plans[deployment] = None if declarations is None else Plan(declarations)
        return self._plans[deployment]

    def plan_in_force(self) -> Plan:
        """The plan that folds where the declarations of a record's time cannot be read."""
        return self.plan_of(self.history.last.deployment) or self._own_plan

    def log(self, plan: Plan, shard: str, changes: Sequence[Change], cuts: Cuts, quarantine: Quarantine) -> float:
        """Log changes for the runs that are open, before they are counted; return the write units."""
        write, of_runs = self._logs.write, cuts.of_runs
        return sum(write(run, plan, shard, changes, of_runs[run.id], quarantine=quarantine) for run in self._runs)

    def awaited(self, images: Iterable[Unfoldable]) -> list[Unfoldable]:
        """The images that wait for something, for that alone: not for what a completed backfill has replaced."""
        # Replaced generations are folded until every process knows of that.
        folded = {declaration.name for declaration in self._load(self.history.last.deployment) or ()}
        found = []
        for image in images:
            names = tuple(name for name in image.names if not is_replaced(name, folded))
            if names or not image.names:
                found.append(replace(image, names=names))
        return found

    def _known(self, deadline: float) -> tuple[Control, Takeover | None]:
        while True:
            seen = Control(self._table.read_item(history_key()))
            if self._is_own(seen) and seen.history is not None and seen.history.last.deployment == self._id:
                return seen, None
            seen = read_control(self._table)
            if not self._takes_over:
                return self._in_force(seen), None
            if self._holds(seen, self._merged(seen)):
                return seen, None
            taken = self._take_over(seen, deadline)
            if taken is not None:
                return taken

    def _take_over(self, seen: Control, deadline: float) -> tuple[Control, Takeover | None] | None:
        """Append the own deployment; None if another process has written meanwhile, and there is more to read."""
        history = seen.history
        if history is None:
            self._require_transactions()
        stored = stored_deployments(self._table)
        lost = history is None and not stored.keys() <= {self._id, self._declared_id}
        if lost and read_control(self._table) != seen:
            return None  # Another process has just written the first one.
        if self._id in stored and decoded(stored[self._id]) is None:
            # One's own are known, whatever has become of the item.
            stored[self._id] = deployment_item(self._own)
        past = past_of(stored.values(), seen)
        new = self._merged(seen, past)
        if new.refused:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in new.refused.items())
            raise CheckpointError(f"the deployment cannot take over: {reasons}")
        if self._holds(seen, new):
            return seen, None
        appended = self._appended(history, deployment_id(new.effective), deadline, lost=lost)
        if history is not None and len(appended.eras) > MOST_ERAS:
            return seen, Takeover(_TURNS, history_lost=False)
        last = max([past.last_number, *new.reads.values()])
        values = {DECLARED: self._declared_id, NUMBERED: last, SOURCE: self._source}
        written = write_control(
            self._table,
            seen,
            appended,
            runs=[run for run in seen.runs if {each.name for each in new.effective}.issuperset(run.names)],
            statuses=self._statuses(seen, new, appended.last),
            deployments=(new.effective,),
            passing=() if self._declared_id in stored else (self._declared,),
            attributes=typed_values({name: value for name, value in values.items() if value}),
        )
        return None if written is None else (written, Takeover(self._told(history, appended, new), lost))

    def _in_force(self, seen: Control) -> Control:
        """The control, if the own declarations are the stack's; CheckpointError otherwise."""
        if seen.history is None:
            raise CheckpointError(
                "the table has no history of deployments that can be read: invoke the aggregator's function, whose "
                "declarations then hold, and run the command again"
            )
        if not self._is_own(seen):
            raise CheckpointError(
                f"invalid declarations={self._declared_id!r}: expected {seen.declared!r}, the deployment that is in "
                "force; only a deployed function takes over: run the command without --declarations, or deploy them "
                "first"
            )
        return seen

    def _merged(self, seen: Control, past: Past = Past()) -> Merged:  # noqa: B008 - frozen
        """The declarations that are folded once the own ones hold."""
        history = seen.history
        folded = (self._load(history.last.deployment) if history is not None else None) or ()
        new = merged(self._own, folded, seen.reads if history is not None else {}, past)
        self._declarations[deployment_id(new.effective)] = new.effective
        return new

    def _holds(self, seen: Control, new: Merged) -> bool:
        history = seen.history
        in_force = history is not None and deployment_id(new.effective) == history.last.deployment
        return self._is_own(seen) and in_force and not new.refused

    def _is_own(self, seen: Control) -> bool:
        """Whether the own declarations are what the table takes for the stack's."""
        return seen.declared == self._declared_id and self._source in ("", seen.source)

    def _appended(self, history: History | None, deployment: str, deadline: float, *, lost: bool) -> History:
        if history is None and not lost:
            return History((Era(0, deployment),))
        before = History((Era(0, UNKNOWN),)) if history is None else history
        self._require_begun(before.last)
        kept = before.since(self._table.clock() - GUARANTEE - SKEW).eras
        if before.last.deployment == deployment:
            return History(kept)
        # A backfill's era begins where it was to begin.
        earliest = before.last.valid_from + bool(before.last.run)
        valid_from = max(earliest, math.ceil(deadline + FRESH + SKEW))
        return History((*(era for era in kept if era.valid_from < valid_from), Era(valid_from, deployment)))

    def _require_begun(self, last: Era) -> None:
        """Refuse to follow an era that no machine with a right clock has written."""
        now = self._table.clock()
        if last.valid_from > now + WIDE_MARGIN:
            begins, here = (datetime.fromtimestamp(at, UTC).isoformat() for at in (last.valid_from, int(now)))
            raise CheckpointError(
                f"the last era of the table begins at {begins}, but it is {here} here: one of two machines has a wrong "
                "clock; set this one's, or remove the era from the attribute 'history' of the item CHECKPOINT# / "
                "DEPLOYMENTS"
            )

    def _statuses(self, seen: Control, new: Merged, era: Era) -> dict[str, Status]:
        """How declarations stand from now on: a table that is new counts everything."""
        if seen.history is not None:
            return _followed(seen.statuses, new, era, era.valid_from, {})
        is_whole = era.valid_from == 0 and not (self._source or self._has_past())
        since = 0 if is_whole else math.ceil(self._table.clock())
        # Where the history was lost, those that go on where readers are stand as they stood.
        known = {name: each for name, each in seen.statuses.items() if each.reads == new.reads.get(name, 0)}
        return _followed(seen.statuses, new, era, since, known)

    def _require_transactions(self) -> None:
        """Refuse a table that takes none; it was created so, thus before its first deployment."""
        table = self._table.client.describe_table(TableName=self._table.name)["Table"]
        if table.get("MultiRegionConsistency") == "STRONG":
            raise CheckpointError(
                f"invalid table {self._table.name!r}: expected a table without multi-Region strong consistency, which "
                "refuses transactions"
            )

    def _has_past(self) -> bool:
        """Whether the stream lacks items of the table, which was there before it, or is too old."""
        table = self._table.client.describe_table(TableName=self._table.name)["Table"]
        created, label = table.get("CreationDateTime"), table.get("LatestStreamLabel")
        if created is None or label is None:
            return False
        # The label is the time at which the stream began, and names no time zone: it is UTC.
        began = datetime.fromisoformat(label).replace(tzinfo=UTC)
        # No aggregator has read it before this first deployment, and Lambda gives up on records of that age.
        is_old = began.timestamp() <= self._table.clock() - GIVEN_UP_AFTER
        return is_old or began > created + timedelta(seconds=STREAM_BEGINS_WITHIN)

    def _told(self, before: History | None, after: History, new: Merged) -> str:
        since = datetime.fromtimestamp(after.last.valid_from, UTC).isoformat()
        said = f"deployment {self._declared_id} takes over: it holds for "
        said += f"records created from {since} on" if after.last.valid_from else "all records"
        if before is None:
            return said
        known = self._load(before.last.deployment)
        if known is None:
            return f"{said}; the declarations before it, {before.last.deployment}, cannot be read"
        return f"{said}; {changes_told(new)}"

    def _load(self, deployment: str) -> tuple[Declaration, ...] | None:
        if deployment not in self._declarations:
            self._declarations[deployment] = read_declarations(self._table, deployment)
        return self._declarations[deployment]


def _followed(
    before: Mapping[str, Status], new: Merged, era: Era, since: int, found_again: Mapping[str, Status]
) -> dict[str, Status]:
    """How declarations stand once a deployment has taken over; those that are new count from a time on, 0 for all."""
    after: dict[str, Status] = {}
    effective = {each.name: each for each in new.effective}
    for name, change in new.changes.items():
        if change.kind == "removed":
            continue
        number, known = new.reads.get(name, 0), before.get(name, Status())
        held = effective.get(read_name(name, new.reads))
        if change.kind in ("new", "keep"):
            # Nothing but calls is in a Counter: it lacks none.
            is_whole = not since or (held is not None and isinstance(held.source, Direct))
            known = found_again.get(name) or Status(number, whole=is_whole, since=0 if is_whole else since)
        elif change.before is None:
            known = Status(number, whole=False, since=since)
        # Writers that are deployed first learn from this by which definition to count.
        told = fingerprint(held) if held is not None else ""
        after[name] = replace(known, deployment=era.deployment, definition=told)
    return after
