"""The commit: one conditional UpdateItem per group, which applies each stream record exactly once.

Every item holds a watermark per shard that feeds it: the sequence number of the last record applied. For a delta of
records `first` to `last` the commit sends, literally (names and values are placeholders in the request)::

    UPDATE    SET _type = "views", #watermark = <last> ADD views 3
    CONDITION attribute_not_exists(#watermark) OR #watermark < <first>
    RETURN    ALL_OLD if the condition fails

A batch of records 1-3 that is delivered twice, the second time with record 4, after a crash between two items:

    time  invocation  item  item's watermark  what happens
    1     A           x     none              condition holds: +3, watermark = 3
    2     A           y     none              A dies before it writes y; Lambda delivers the batch again
    3     B           x     3                 condition fails (3 < 1 is false); ALL_OLD says: applied through 3
    4     B           y     none              condition holds: +4, watermark = 4
    5     B           x     3                 folds again for x, only records after 3: +1, condition 3 < 4 holds
    6     A           y     4                 A was not dead, only slow: its condition fails, nothing remains to fold
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import AppliedThrough
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import fits, format_number
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._stream.pruning import Pruner
from dynamodb_counters._stream.quarantine import Quarantine
from dynamodb_counters._stream.quarantine_items import DELTA, pack
from dynamodb_counters._stream.watermarks import Watermark
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.errors import CommitError

Refold: TypeAlias = Callable[[AppliedThrough], list[Delta]]
"""Folds the batch again for some groups, each from after the record it has applied."""

RESERVE_SECONDS: Final = 12.0
"""No request starts with less time left: one that meets every retry of the client takes about that long."""


@dataclass(slots=True)
class Committed:
    """Items written, items an earlier delivery had brought as far, deltas quarantined, write units as reported."""

    updated: int = 0
    skipped: int = 0
    quarantined: int = 0
    write_units: float = 0.0


class Committer:
    """Writes the deltas of one shard while the invocation's `time_left`, in seconds, lasts."""

    def __init__(
        self,
        table: Table,
        watermark: Watermark,
        quarantine: Quarantine,
        pruner: Pruner,
        time_left: Callable[[], float],
    ) -> None:
        self._table = table
        self._watermark = watermark
        self._quarantine = quarantine
        self._pruner = pruner
        self._time_left = time_left

    def commit(self, deltas: list[Delta], refold: Refold) -> Committed:
        """Write the deltas of a batch; `CommitError` means that some are not written: deliver the batch again."""
        done = Committed()
        failures: list[Exception] = []
        while deltas:
            applied_through: dict[GroupRef, str] = {}
            for delta, answer in self._write_all(deltas):
                if isinstance(answer, Exception):
                    failures.append(answer)
                    continue
                done.write_units += answer.write_units
                done.quarantined += answer.quarantined
                if answer.applied_through is None:
                    done.updated += 1
                elif answer.applied_through >= delta.last:
                    done.skipped += 1
                else:
                    applied_through[delta.ref] = answer.applied_through
            deltas = refold(applied_through) if applied_through else []
        if failures:
            raise CommitError(failures)
        return done

    def _write_all(self, deltas: list[Delta]) -> list[tuple[Delta, _Answer | Exception]]:
        # A task per thread, not per item: handing over a task costs as much CPU as building a request.
        parts = [deltas[start::CONCURRENCY] for start in range(min(CONCURRENCY, len(deltas)))]
        tasks = [self._table.pool.submit(self._write_some, part) for part in parts]
        return [written for task in tasks for written in task.result()]

    def _write_some(self, deltas: list[Delta]) -> list[tuple[Delta, _Answer | Exception]]:
        written: list[tuple[Delta, _Answer | Exception]] = []
        for delta in deltas:
            try:
                written.append((delta, self._write(delta)))
            except (ClientError, BotoCoreError, TimeoutError) as error:
                written.append((delta, error))
        return written

    def _write(self, delta: Delta) -> _Answer:
        assert delta.first <= delta.last, f"records {delta.first} to {delta.last} are out of order"
        if self._time_left() < RESERVE_SECONDS:
            raise TimeoutError("the invocation's time is nearly up")
        if not all(map(fits, delta.measures.values())):
            return self._quarantine_delta(delta, "the sum has more than 38 digits")
        update = Update(delta.layout, delta.group, delta.measures, self._watermark.shard)
        request = self._guarded(update, delta)
        returned: Literal["NONE", "ALL_NEW"] = "ALL_NEW" if self._pruner.wants(update.key) else "NONE"
        try:
            answer = self._table.client.update_item(**request, ReturnConsumedCapacity="TOTAL", ReturnValues=returned)
        except self._table.client.exceptions.ConditionalCheckFailedException as error:
            return self._refused(dict(error.response))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise
            # The item cannot take it: a sum beyond 38 digits, or an attribute that is not a number.
            return self._quarantine_delta(delta, error.response["Error"]["Message"])
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        if item := answer.get("Attributes"):
            units += self._pruner.prune(request["Key"], item, self._watermark.name)
        return _Answer(units)

    def _quarantine_delta(self, delta: Delta, reason: str) -> _Answer:
        """Move the watermark without the delta, and the delta to quarantine, in one transaction."""
        move: Any = self._guarded(Update(delta.layout, delta.group, {}, self._watermark.shard), delta)
        numbers = {name: format_number(number) for name, number in delta.measures.items()}
        content = {"name": delta.layout.name, "group": list(delta.group), "numbers": numbers}
        key_digest = hashlib.sha256(repr(move["Key"]).encode()).hexdigest()[:32]
        entry_id = f"{delta.first}#{key_digest}#{delta.layout.name}"
        item = self._quarantine.item(self._watermark.shard, entry_id, reason, {DELTA: pack(content)})
        put: Any = {"TableName": self._table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
        try:
            answer = self._table.client.transact_write_items(
                TransactItems=[{"Update": move}, {"Put": put}], ReturnConsumedCapacity="TOTAL"
            )
        except self._table.client.exceptions.TransactionCanceledException as error:
            first: dict[str, Any] = dict(error.response["CancellationReasons"][0])
            if first.get("Code") != "ConditionalCheckFailed":
                raise
            return self._refused(first)
        units = sum(table.get("CapacityUnits", 0.0) for table in answer.get("ConsumedCapacity", []))
        return _Answer(units, quarantined=1)

    def _guarded(self, update: Update, delta: Delta) -> dict[str, Any]:
        update.set(self._watermark.name, self._watermark.value(delta.last))
        update.require_unset_or_below(self._watermark.name, self._watermark.bound(delta.first))
        request = update.request(self._table.name)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return request

    def _refused(self, refusal: Mapping[str, Any]) -> _Answer:
        # A refused write consumes as much as one that succeeds, but its answer does not say so.
        item = refusal["Item"]
        return _Answer(write_units(item_bytes(item)), self._watermark.of(item))


@dataclass(slots=True)
class _Answer:
    write_units: float
    applied_through: str | None = None
    """The item's watermark, if it refused the update."""
    quarantined: int = 0
