"""The commit: one conditional UpdateItem an item, which applies each stream record exactly once.

Every aggregate item holds, for each shard that feeds it, the sequence number of the last record applied: the watermark.
An update adds its deltas and moves the watermark to its last record, on condition that the watermark is still before
its first. When it is not, the old item, which comes with the refusal, tells which records remain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters.errors import CommitError
from dynamodb_counters.fold import Delta, Origin
from dynamodb_counters.schema import SEQUENCE_DIGITS, WATERMARK_PREFIX
from dynamodb_counters.store.table import Table
from dynamodb_counters.store.updates import Update
from dynamodb_counters.times import HOUR

Refold: TypeAlias = Callable[[Mapping[Origin, str]], list[Delta]]
"""Folds the batch again for some items, each from after a given sequence number."""

_SHARD_PREFIX: Final = "shardId-"


@dataclass(slots=True)
class Committed:
    """What a commit did.

    Parameters
    ----------
    updated : int
        Items written.
    skipped : int
        Items that an earlier delivery had brought as far already.
    write_units : float
        Write units the writes consumed, as DynamoDB reported them.
    """

    updated: int = 0
    skipped: int = 0
    write_units: float = 0.0


def commit(table: Table, shard: str, deltas: list[Delta], refold: Refold) -> Committed:
    """Write the deltas of a batch, each record's exactly once.

    Parameters
    ----------
    table : Table
        Where to.
    shard : str
        The shard the batch comes from.
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
    name = watermark_name(shard)
    done = Committed()
    failures: list[Exception] = []
    while deltas:
        attempts = [(delta, table.pool.submit(_write, table, name, delta)) for delta in deltas]
        floors: dict[Origin, str] = {}
        for delta, attempt in attempts:
            try:
                answer = attempt.result()
            except (ClientError, BotoCoreError) as error:
                failures.append(error)
                continue
            done.write_units += answer.write_units
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


def watermark_name(shard: str) -> str:
    """Name the attribute that holds a shard's watermark.

    Parameters
    ----------
    shard : str
        Shard id as the stream tells it. Its constant beginning is left out, as the name is paid for in every item.

    Returns
    -------
    str
        Attribute name.

    Examples
    --------
    >>> watermark_name("shardId-00000001414576573621-f55eea83")
    '_w:1414576573621-f55eea83'
    """
    return WATERMARK_PREFIX + shard.removeprefix(_SHARD_PREFIX).lstrip("0")


@dataclass(frozen=True, slots=True)
class _Answer:
    write_units: float
    reached: str | None = None
    """The item's watermark, where it refused the update."""


def _write(table: Table, name: str, delta: Delta) -> _Answer:
    update = Update(delta.program, delta.group, delta.measures)
    # The hour is for pruning. It stands behind the number, so the order of watermarks is that of the numbers.
    update.set(name, {"S": f"{delta.last}@{int(table.clock()) // HOUR}"})
    update.require_unset_or_below(name, {"S": delta.first})
    try:
        answer = table.client.update_item(
            **update.request(table.name),
            ReturnConsumedCapacity="TOTAL",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except table.client.exceptions.ConditionalCheckFailedException as error:
        # A refused write consumes a unit, but its answer does not say so.
        return _Answer(1.0, _item(error)[name]["S"][:SEQUENCE_DIGITS])
    return _Answer(answer["ConsumedCapacity"]["CapacityUnits"])


def _item(error: ClientError) -> dict[str, dict[str, str]]:
    # botocore puts the old item beside the error, which its type stubs do not know.
    response: dict[str, Any] = dict(error.response)
    item: dict[str, dict[str, str]] = response["Item"]
    return item
