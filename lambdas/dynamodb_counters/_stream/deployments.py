"""Deployments: a record is folded by the declarations in force when it was created, whoever delivers it.

The table holds a history: from when on the declarations of which deployment hold. A process that runs others than the
last ones appends its own, for records that are created later than any that somebody may be folding without knowing of
it: a copy of the history was read before the new one had landed, at the latest at the deadline of the invocation that
sent it, and serves invocations that start within a minute; their records have been created by then.

So a batch that one deployment has half written is finished by the same declarations, and what cannot be folded is
quarantined by every delivery alike. Deployments that take turns are eras that take turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SK, TYPE
from dynamodb_counters._stream.checkpoint_items import FRESH, GUARANTEE, SKEW
from dynamodb_counters._stream.deployment_items import (
    AGGREGATOR,
    DEPLOYMENT_PREFIX,
    HISTORY,
    UNKNOWN,
    Era,
    History,
    changes_between,
    deployment_id,
    deployment_item,
    deployment_key,
    history_key,
    read_deployment,
    read_history,
)
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, CountersError

_MOST_ERAS: Final = 100
"""Of two days: more than anybody deploys."""

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
    """The declarations of the last deployment; a `refusal` if the table does not tell."""
    for last in deployed_declarations(table):
        if last is None:
            raise refusal("this version cannot read the last deployment's declarations: install the one that ran")
        return last
    raise refusal("the table has no history of deployments: pass the declarations that counted it")


def deployed_declarations(table: Table) -> Iterator[tuple[Declaration, ...] | None]:
    """The declarations of the table's deployments, the latest first; None for those that this version cannot read."""
    history = read_history(table.read_item(history_key()))
    for name in dict.fromkeys(era.deployment for era in reversed(history.eras)) if history else ():
        yield read_deployment(table.read_item(deployment_key(name)))


class Deployments:
    """The deployments of one table, as one process of one of them knows them.

    `aggregator` names the construct; another one may not take over. "" may, and is taken over by any.
    """

    def __init__(self, table: Table, declarations: tuple[Declaration, ...], aggregator: str = "") -> None:
        self._table = table
        self._aggregator = aggregator
        self._own = declarations
        self._id = deployment_id(declarations)
        self._declarations: dict[str, tuple[Declaration, ...] | None] = {self._id: declarations}
        self._plans: dict[tuple[str, ...], Plan | None] = {}
        self._own_plan = Plan(declarations)
        self._history = History((Era(0, self._id),))
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
        self._history, takeover = self._known(deadline)
        for era in self._history.eras:
            self._load(era.deployment)
        self._read_at = now
        return takeover

    def parts(self, changes: Sequence[Change]) -> Iterator[tuple[Plan, list[Change], bool]]:
        """Cut changes where another deployment comes into force; the last value says whether its plan is unknown."""
        now = self._table.clock()
        for era, part in groupby(changes, lambda change: self._history.at(change.created or now)):
            plan = self._plan(era.deployment)
            yield plan or self._own_plan, list(part), plan is None

    def _plan(self, deployment: str) -> Plan | None:
        """How a deployment folds, groups included that another one of the history calls by another name."""
        others = sorted({era.deployment for era in self._history.eras} - {deployment})
        identity = (deployment, *others)
        if identity not in self._plans:
            declarations = self._load(deployment)
            known = [found for other in others if (found := self._load(other)) is not None]
            self._plans[identity] = None if declarations is None else Plan(declarations, known)
        return self._plans[identity]

    def _load(self, deployment: str) -> tuple[Declaration, ...] | None:
        if deployment not in self._declarations:
            self._declarations[deployment] = read_deployment(self._table.read_item(deployment_key(deployment)))
        return self._declarations[deployment]

    def _known(self, deadline: float) -> tuple[History, Takeover | None]:
        while True:
            item = self._table.read_item(history_key())
            history = read_history(item)
            if history is not None and history.last.deployment == self._id:
                return history, None
            known = item.get(AGGREGATOR, {}).get("S", "")
            if self._aggregator and known not in ("", self._aggregator):
                raise CheckpointError(
                    f"{known!r} counts this table, not {self._aggregator!r}: a table has one StreamAggregator; "
                    "to hand over, remove the attribute 'aggregator' of its item CHECKPOINT# / DEPLOYMENTS"
                )
            lost = history is None and self._others_were_stored()
            if lost and self._table.read_item(history_key()) != item:
                continue  # Another process has just written the first one.
            appended = self._appended(history, deadline, lost=lost)
            if history is not None and len(appended.eras) > _MOST_ERAS:
                return history, Takeover(_TURNS, history_lost=False)
            # Refused, another process has written: this one reads what.
            if self._put(item, appended):
                return appended, Takeover(self._told(history, appended), lost)

    def _appended(self, history: History | None, deadline: float, *, lost: bool) -> History:
        if history is None and not lost:
            return History((Era(0, self._id),))
        before = History((Era(0, UNKNOWN),)) if history is None else history
        valid_from = max(before.last.valid_from, math.ceil(deadline + FRESH + SKEW))
        kept = before.since(self._table.clock() - GUARANTEE - SKEW).eras
        return History((*(era for era in kept if era.valid_from < valid_from), Era(valid_from, self._id)))

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

    def _put(self, seen: dict[str, Any], history: History) -> bool:
        """Write the history on condition that it is as it was seen, and the own declarations."""
        put: Any = {
            "TableName": self._table.name,
            "Item": {**seen, **history_key(), TYPE: {"S": CHECKPOINT}, HISTORY: {"S": history.text()}},
            "ConditionExpression": f"attribute_not_exists({HISTORY})",
        }
        if self._aggregator:
            put["Item"][AGGREGATOR] = {"S": self._aggregator}
        if HISTORY in seen:
            put["ConditionExpression"] = f"{HISTORY} = :seen"
            put["ExpressionAttributeValues"] = {":seen": seen[HISTORY]}
        # Together, so that whoever finds the declarations of another deployment knows that there was a history.
        declared: Any = {"TableName": self._table.name, "Item": deployment_item(self._own)}
        client = self._table.client
        try:
            client.transact_write_items(TransactItems=[{"Put": put}, {"Put": declared}])
        except client.exceptions.TransactionCanceledException as error:
            if error.response["CancellationReasons"][0].get("Code") != "ConditionalCheckFailed":
                raise
            return False
        return True

    def _told(self, before: History | None, after: History) -> str:
        since = datetime.fromtimestamp(after.last.valid_from, UTC).isoformat()
        told = f"deployment {self._id} takes over: it holds for "
        told += f"records created from {since} on" if after.last.valid_from else "all records"
        if before is None:
            return told
        known = self._load(before.last.deployment)
        if known is None:
            return f"{told}; the declarations before it, {before.last.deployment}, cannot be read"
        return f"{told}; it {changes_between(known, self._own)}"
