"""Deployments: a record is folded by the declarations in force when it was created, whoever delivers it.

The table holds a history: from when on the declarations of which deployment hold. A process that runs others than the
last ones appends its own, for records that are created later than any that somebody may be folding without knowing of
it: a copy of the history was read before the new one had landed, at the latest at the deadline of the invocation that
sent it, and serves invocations that start within a minute; their records have been created by then.

So a batch that one deployment has half written is finished by the same declarations, and what cannot be folded is
quarantined by every delivery alike. Deployments that take turns are eras that take turns.

What a deployment holds is what is folded, not what the stack declares: a declaration that changes goes on as it was,
until a backfill has brought its next generation as far. A backfill opens an era of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.change_words import told as changes_told
from dynamodb_counters._declarations.effective import Merged, merged
from dynamodb_counters._declarations.generations import definition
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, DEPLOYMENT_PREFIX, PK, SK
from dynamodb_counters._statuses import Status, deployment_key
from dynamodb_counters._stream.checkpoint_items import FRESH, GUARANTEE, SETTLED_AFTER, SKEW
from dynamodb_counters._stream.control import (
    DECLARED,
    KNOWS_RUNS,
    SOURCE,
    Control,
    read_control,
    read_declarations,
    write_control,
)
from dynamodb_counters._stream.deployment_items import (
    AGGREGATOR,
    UNKNOWN,
    Era,
    History,
    deployment_id,
    history_key,
)
from dynamodb_counters._stream.run_items import Run
from dynamodb_counters._stream.run_logs import RunLogs
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, CountersError

_MOST_ERAS: Final = 100
"""Of two days: more than anybody deploys."""

_BEGINS_TOGETHER: Final = timedelta(minutes=5)
"""A stream that is created with its table begins within seconds."""

_TURNS: Final = (
    "deployments of different declarations take turns on this table; no more takeovers: the last one holds. "
    "Does an alias share traffic between two versions?"
)


@dataclass(frozen=True, slots=True)
class Takeover:
    """What there is to tell of one."""

    text: str
    history_lost: bool


def last_declarations(table: Table, refusal: type[CountersError]) -> tuple[Declaration, ...]:
    """What the last deployment declares; a `refusal` if the table does not tell."""
    seen = read_control(table)
    if seen.history is None:
        raise refusal("the table has no history of deployments: pass the declarations that counted it")
    found = read_declarations(table, seen.declared)
    if found is None:
        raise refusal("this version cannot read the last deployment's declarations: install the one that ran")
    return found


def deployed_declarations(table: Table) -> Iterator[tuple[Declaration, ...] | None]:
    """The declarations of the table's deployments, the latest first; None for those that this version cannot read."""
    history = read_control(table).history
    for name in dict.fromkeys(era.deployment for era in reversed(history.eras)) if history else ():
        yield read_declarations(table, name)


class Deployments:
    """The deployments of one table, as one process of one of them knows them.

    `aggregator` names the construct; another one may not take over. "" may, and is taken over by any. `source` is the
    ARN of the source table, "" for none.
    """

    def __init__(
        self, table: Table, declarations: tuple[Declaration, ...], aggregator: str = "", source: str = ""
    ) -> None:
        self._table = table
        self._aggregator = aggregator
        self._source = source
        self._own = declarations
        own = tuple(map(definition, declarations))
        self._id = deployment_id(own)
        self._declarations: dict[str, tuple[Declaration, ...] | None] = {self._id: own}
        self._plans: dict[tuple[str, ...], Plan | None] = {}
        self._own_plan = Plan(own)
        self._history = History((Era(0, self._id),))
        self._runs: tuple[Run, ...] = ()
        self._logs = RunLogs(table)
        self._read_at = -math.inf

    @property
    def known_since(self) -> float:
        """Of records created earlier, nobody can tell any more by which declarations they were folded."""
        return self._history.eras[0].valid_from

    def refresh(self, deadline: float) -> Takeover | None:
        """Read the history if the copy is too old; take over unless the own declarations are the last."""
        now = self._table.clock()
        if self._read_at + FRESH > now:
            return None
        known, takeover = self._known(deadline)
        assert known.history is not None
        self._history, self._runs = known.history, known.runs
        for era in self._history.eras:
            self._load(era.deployment)
        self._read_at = now
        return takeover

    def parts(self, changes: Sequence[Change], shard: str = "") -> Iterator[tuple[Plan, list[Change], bool]]:
        """Cut changes where another deployment comes into force; the last value says whether its plan is unknown.

        Without a shard, changes near the cut of a backfill are taken by their times.
        """
        now = self._table.clock()
        opened = [era for era in self._history.eras if era.run] if shard and changes else []
        cuts = {era.run: self._logs.cut(era.run, era.valid_from, shard, changes) for era in opened}
        runs = self._runs if shard and changes else ()
        begun = [self._logs.cut(run.id, run.since, shard, changes) for run in runs]

        def side(change: Change) -> tuple[Era, int]:
            # What comes before a run's cut is counted before what comes after it is logged.
            past = sum(cut <= change.sequence for cut in begun)
            return self._history.at(change.created or now, change.sequence, cuts), past

        for (era, _), part in groupby(changes, side):
            plan = self._plan(era.deployment)
            yield plan or self._own_plan, list(part), plan is None

    def log(self, plan: Plan, shard: str, changes: Sequence[Change]) -> float:
        """Log changes for the runs that are open, before they are counted; return the write units."""
        cuts = [(run, self._logs.cut(run.id, run.since, shard, changes)) for run in self._runs]
        return sum(self._logs.write(run, plan, shard, changes, cut) for run, cut in cuts)

    def _plan(self, deployment: str) -> Plan | None:
        """How a deployment folds, groups included that another one of the history calls by another name."""
        others = sorted({era.deployment for era in self._history.eras} - {deployment})
        identity = (deployment, *others)
        if identity not in self._plans:
            declarations = self._load(deployment)
            known = [found for other in others if (found := self._load(other)) is not None]
            self._plans[identity] = None if declarations is None else Plan(declarations, known)
        return self._plans[identity]

    def _known(self, deadline: float) -> tuple[Control, Takeover | None]:
        while True:
            seen = Control(self._table.read_item(history_key()))
            history = seen.history
            if history is not None and self._is_own(seen) and history.last.deployment == self._id:
                return seen, None
            seen = read_control(self._table)
            history = seen.history
            if history is not None and self._holds(history, seen):
                return seen, None
            known = seen.item.get(AGGREGATOR, {}).get("S", "")
            if self._aggregator and known not in ("", self._aggregator):
                raise CheckpointError(
                    f"{known!r} counts this table, not {self._aggregator!r}: a table has one StreamAggregator; "
                    "to hand over, remove the attribute 'aggregator' of its item CHECKPOINT# / DEPLOYMENTS"
                )
            lost = history is None and self._others_were_stored()
            if lost and read_control(self._table) != seen:
                continue  # Another process has just written the first one.
            new = self._merged(history, seen)
            appended = self._appended(history, deployment_id(new.effective), deadline, lost=lost)
            if history is not None and len(appended.eras) > _MOST_ERAS:
                return seen, Takeover(_TURNS, history_lost=False)
            # Refused, another process has written: this one reads what.
            written = self._put(seen, appended, new)
            if written is not None:
                return written, Takeover(self._told(history, appended, new), lost)

    def _merged(self, history: History | None, seen: Control) -> Merged:
        """What is folded once the own declarations hold."""
        folded = (self._load(history.last.deployment) if history is not None else None) or ()
        new = merged(self._own, folded, seen.reads)
        if new.refused:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in new.refused.items())
            raise CheckpointError(f"the deployment cannot take over: {reasons}")
        self._declarations[deployment_id(new.effective)] = new.effective
        return new

    def _holds(self, history: History, seen: Control) -> bool:
        """Whether what the own declarations come to is in force."""
        return self._is_own(seen) and deployment_id(self._merged(history, seen).effective) == history.last.deployment

    def _is_own(self, seen: Control) -> bool:
        """Whether the own declarations are what the table takes for the stack's."""
        return seen.declared == self._id and seen.knows_runs is not None and self._source in ("", seen.source)

    def _appended(self, history: History | None, deployment: str, deadline: float, *, lost: bool) -> History:
        if history is None and not lost:
            return History((Era(0, deployment),))
        before = History((Era(0, UNKNOWN),)) if history is None else history
        kept = before.since(self._table.clock() - GUARANTEE - SKEW).eras
        if before.last.deployment == deployment:
            return History(kept)
        # A backfill's era begins where it was to begin.
        earliest = before.last.valid_from + bool(before.last.run)
        valid_from = max(earliest, math.ceil(deadline + FRESH + SKEW))
        return History((*(era for era in kept if era.valid_from < valid_from), Era(valid_from, deployment)))

    def _others_were_stored(self) -> bool:
        """Whether another deployment than this one has ever run."""
        found = self._table.client.query(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND begins_with({SK}, :prefix)",
            ExpressionAttributeValues={":pk": {"S": CHECKPOINT_PREFIX}, ":prefix": {"S": DEPLOYMENT_PREFIX}},
            ConsistentRead=True,
            Limit=2,
        )
        return any(item[SK] != deployment_key(self._id)[SK] for item in found["Items"])

    def _put(self, seen: Control, history: History, new: Merged) -> Control | None:
        attributes: dict[str, Any] = {DECLARED: {"S": self._id}}
        if self._source:
            attributes[SOURCE] = {"S": self._source}
        if seen.knows_runs is None:
            # An earlier version may be running that does not log for runs; there was none before the first history.
            first = history.last.valid_from == 0
            since = 0 if first else math.ceil(self._table.clock() + SETTLED_AFTER)
            attributes[KNOWS_RUNS] = {"N": str(since)}
        if self._aggregator:
            attributes[AGGREGATOR] = {"S": self._aggregator}
        names = {declaration.name for declaration in new.effective}
        return write_control(
            self._table,
            seen,
            history,
            runs=[run for run in seen.runs if names.issuperset(run.names)],
            statuses=self._statuses(seen, new, history.last),
            deployments=(new.effective, self._load(self._id) or ()),
            attributes=attributes,
        )

    def _statuses(self, seen: Control, new: Merged, era: Era) -> dict[str, Status] | None:
        """How declarations stand from now on: a table that is new counts everything."""
        if seen.history is not None:
            return _followed(seen.statuses, new, era)
        if seen.generations or not (self._source or self._has_past()):
            return None
        began = math.ceil(self._table.clock())
        return {name: Status(0, era.deployment, whole=False, since=began) for name in new.changes}

    def _has_past(self) -> bool:
        """Whether the table was there before its stream, which then does not tell of everything in it."""
        table = self._table.client.describe_table(TableName=self._table.name)["Table"]
        created, label = table.get("CreationDateTime"), table.get("LatestStreamLabel")
        if created is None or label is None:
            return False
        # The label is the time at which the stream began, and names no time zone: it is UTC.
        return datetime.fromisoformat(label).replace(tzinfo=UTC) > created + _BEGINS_TOGETHER

    def _told(self, before: History | None, after: History, new: Merged) -> str:
        since = datetime.fromtimestamp(after.last.valid_from, UTC).isoformat()
        told = f"deployment {self._id} takes over: it holds for "
        told += f"records created from {since} on" if after.last.valid_from else "all records"
        if before is None:
            return told
        known = self._load(before.last.deployment)
        if known is None:
            return f"{told}; the declarations before it, {before.last.deployment}, cannot be read"
        return f"{told}; it {changes_told(new)}"

    def _load(self, deployment: str) -> tuple[Declaration, ...] | None:
        if deployment not in self._declarations:
            self._declarations[deployment] = read_declarations(self._table, deployment)
        return self._declarations[deployment]


def _followed(before: Mapping[str, Status], new: Merged, era: Era) -> dict[str, Status]:
    """How declarations stand once a deployment has taken over a table that others have counted."""
    after: dict[str, Status] = {}
    for name, change in new.changes.items():
        known = before.get(change.renamed_from or name)
        if change.kind in ("new", "keep"):
            after[name] = Status(new.reads.get(name, 0), era.deployment, whole=False, since=era.valid_from)
        elif change.kind == "waits" or (known is not None and change.renamed_from):
            after[name] = replace(known or Status(), deployment=era.deployment)
        elif known is not None and change.kind != "removed":
            after[name] = known
    return after
