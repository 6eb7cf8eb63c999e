"""The commit: one conditional UpdateItem an item, which applies each stream record exactly once.

Every aggregate item holds, for each shard that feeds it, the sequence number of the last record applied: the watermark.
An update adds its deltas and moves the watermark to its last record, on condition that the watermark is still before
its first. When it is not, the old item, which comes with the refusal, tells which records remain.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._fold.deltas import Delta, Origin
from dynamodb_counters._fold.quarantine_content import SUM, pack
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import fits, format_number
from dynamodb_counters._items.table_schema import PK, SEQUENCE_DIGITS
from dynamodb_counters._stream.quarantine import Quarantine
from dynamodb_counters._stream.watermarks import prune, watermark, watermark_name
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters._timeline.times import HOUR
from dynamodb_counters.errors import CommitError

Refold: TypeAlias = Callable[[Mapping[Origin, str]], list[Delta]]
"""Folds the batch again for some items, each from after a given sequence number."""

RESERVE_SECONDS: Final = 12.0
"""No request starts with less time left: one that meets every retry of the client's takes about that long."""


@dataclass(slots=True)
class Committed:
    """What a commit did.

    Parameters
    ----------
    updated : int
        Items written.
    skipped : int
        Items that an earlier delivery had brought as far already.
    set_aside : int
        Items that could not take their sum, which is in quarantine now.
    write_units : float
        Write units the writes consumed, as DynamoDB reported them.
    """

    updated: int = 0
    skipped: int = 0
    set_aside: int = 0
    write_units: float = 0.0


class Committer:
    """Writes the deltas of one shard.

    Parameters
    ----------
    table : Table
        Where to.
    shard : str
        The shard the deltas come from.
    quarantine : Quarantine
        Where a sum goes that an item cannot take.
    time_left : callable
        Gives the seconds until the invocation must have ended.
    """

    def __init__(self, table: Table, shard: str, quarantine: Quarantine, time_left: Callable[[], float]) -> None:
        self._table = table
        self._shard = shard
        self._watermark = watermark_name(shard)
        self._hour = int(table.clock()) // HOUR
        self._quarantine = quarantine
        self._time_left = time_left

    def commit(self, deltas: list[Delta], refold: Refold) -> Committed:
        """Write the deltas of a batch, each record's exactly once.

        Parameters
        ----------
        deltas : list of Delta
            One an item.
        refold : callable
            Called for items of which an earlier delivery has applied a part.

        Returns
        -------
        Committed
            What was done.

        Raises
        ------
        CommitError
            Some items could not be written. The others are; the batch must be delivered again.
        """
        done = Committed()
        failures: list[Exception] = []
        while deltas:
            floors: dict[Origin, str] = {}
            for delta, answer in self._write_all(deltas):
                if isinstance(answer, Exception):
                    failures.append(answer)
                    continue
                done.write_units += answer.write_units
                done.set_aside += answer.set_aside
                if answer.reached is None:
                    done.updated += 1
                elif answer.reached >= delta.last:
                    done.skipped += 1
                else:
                    floors[delta.origin] = answer.reached
            deltas = refold(floors) if floors else []
        if failures:
            raise CommitError(failures)
        return done

    def _write_all(self, deltas: list[Delta]) -> list[tuple[Delta, _Answer | Exception]]:
        # A task a thread, not one an item: handing over a task costs as much CPU as making a request's arguments.
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
        if self._time_left() < RESERVE_SECONDS:
            raise TimeoutError("the invocation's time is nearly up")
        if not all(map(fits, delta.measures.values())):
            return self._set_aside(delta, "the sum has more than 38 digits")
        update = self._guarded(Update(delta.program, delta.group, delta.measures, self._shard), delta)
        try:
            # Only where watermarks pile up are the item's attributes worth their way back.
            gathers = delta.program.gathers_watermarks(delta.group)
            returned: Literal["NONE", "ALL_NEW"] = "ALL_NEW" if gathers else "NONE"
            answer = self._table.client.update_item(**update, ReturnConsumedCapacity="TOTAL", ReturnValues=returned)
        except self._table.client.exceptions.ConditionalCheckFailedException as error:
            # A refused write consumes a unit, but its answer does not say so.
            return _Answer(1.0, _reached(dict(error.response), self._watermark))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise
            # The item cannot take it: a sum beyond 38 digits, or an attribute that is no number.
            return self._set_aside(delta, error.response["Error"]["Message"])
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        return _Answer(units + prune(self._table, update["Key"], answer.get("Attributes", {}), self._watermark))

    def _set_aside(self, delta: Delta, reason: str) -> _Answer:
        """Move the watermark without the sum, and the sum to quarantine, in one transaction."""
        move: Any = self._guarded(Update(delta.program, delta.group, {}, self._shard), delta)
        numbers = {name: format_number(number) for name, number in delta.measures.items()}
        content = {"name": delta.program.name, "group": list(delta.group), "numbers": numbers}
        place = f"{delta.first}#{zlib.crc32(repr(move['Key']).encode())}#{delta.program.name}"
        item = self._quarantine.item(self._shard, place, reason, {SUM: pack(content)})
        put: Any = {"TableName": self._table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
        try:
            self._table.client.transact_write_items(TransactItems=[{"Update": move}, {"Put": put}])
        except self._table.client.exceptions.TransactionCanceledException as error:
            first: dict[str, Any] = dict(error.response["CancellationReasons"][0])
            if first.get("Code") != "ConditionalCheckFailed":
                raise
            return _Answer(4.0, _reached(first, self._watermark))
        return _Answer(4.0, set_aside=1)

    def _guarded(self, update: Update, delta: Delta) -> dict[str, Any]:
        update.set(self._watermark, {"S": watermark(delta.last, self._hour)})
        update.require_unset_or_below(self._watermark, {"S": delta.first})
        request = update.request(self._table.name)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return request


@dataclass(slots=True)
class _Answer:
    write_units: float
    reached: str | None = None
    """The item's watermark, where it refused the update."""
    set_aside: int = 0


def _reached(refusal: Mapping[str, Any], name: str) -> str:
    return str(refusal["Item"][name]["S"][:SEQUENCE_DIGITS])
