"""Exactly-once counting from a DynamoDB stream: one conditional UpdateItem per item, and a watermark per shard.

Each item holds the last record of each shard that it has counted, its *watermark*. A batch adds up what its records
`first` to `last` of one shard add to the item, also if that is 0, and sends::

    UPDATE    SET _w<shard> = <last> ADD views 3
    CONDITION attribute_not_exists(_w<shard>) OR _w<shard> < <first>
    RETURN    ALL_OLD if the condition fails: what comes after its watermark is added up and sent again

docs/exactly-once.md says why it holds. A watermark carries the time of its record: one that is older than
`WATERMARK_KEPT` refuses nothing that may still come, and is pruned.
"""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from dynamodb_counters.errors import CheckpointError, CommitError, InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

__all__ = ["ExactlyOnce"]
_HOUR: Final = 3600.0
MAX_RECORD_AGE: Final = 26 * _HOUR
"""Seconds since a record's creation until it is counted no more. A stream keeps records for 24 hours, and may deliver
older ones for a while. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""
WATERMARK_KEPT: Final = 27 * _HOUR
"""Seconds since its record's creation until a watermark may go. An invocation that has taken a record of
`MAX_RECORD_AGE` runs for 15 minutes at most, AWS refuses a request 5 minutes after it was signed, and the creation
times of a shard are not promised to ascend: together less than the hour between the two."""
WATERMARK_PREFIX: Final = "_w"
THREADS: Final = 10  # As many as botocore keeps connections by default.
LEAST_TIME: Final = 1000  # Milliseconds of an invocation: no update begins in its last second.
PRUNED_AT: Final = 8  # Fewer old watermarks are not worth a write.
MOST_PRUNED: Final = 100  # Watermarks: an expression has at most 4 KB.
PRUNED_EVERY: Final = 600  # Seconds after which a process looks again at the watermarks of an item.
MOST_REMEMBERED: Final = 20_000  # Items that a process has looked at.
_DIGEST_CHARACTERS, _TIME_BYTES = 9, 3

Key: TypeAlias = tuple[str | int | bytes, ...]
Amounts: TypeAlias = Mapping[str, int | Decimal]
Record: TypeAlias = Mapping[str, Any]
Adds: TypeAlias = Callable[[Record], Iterable[tuple[Key, Amounts]]]
_Contribution: TypeAlias = tuple[int, float, Amounts]
Bound: TypeAlias = tuple[str, Mapping[str, Any]]  # Name of a watermark, and what it must be less than.
_Item: TypeAlias = Mapping[str, Any]  # Or a part of one, as DynamoDB's client has it: {"pk": {"S": "URL#/"}}.


def shard_digest(shard: str) -> str:
    """Return the name of a shard in watermarks.

    >>> shard_digest("shardId-00000001414576573621-f55eea83")
    'ly2uFlpcx'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(shard.encode()).digest()).decode()[:_DIGEST_CHARACTERS]


class Watermark:
    """The attribute of an item that holds the last record of a shard that the item has counted.

    An item pays for it with each write, so it is compact: 54 bits of the digest of the shard's name; a length byte, the
    sequence number and the hour of the record, in binary. DynamoDB orders these bytes as the numbers, and the bound of
    a condition, which has no hour, before a watermark of the same number.
    """

    def __init__(self, shard: str) -> None:
        self.shard = shard
        self.name = WATERMARK_PREFIX + shard_digest(shard)

    @staticmethod
    def bound(sequence: int) -> dict[str, bytes]:
        """Return what the watermarks of earlier records are less than.

        >>> Watermark.bound(258)["B"].hex()
        '020102'
        """
        size = (sequence.bit_length() + 7) // 8
        return {"B": bytes([size]) + sequence.to_bytes(size, "big")}

    @classmethod
    def value(cls, sequence: int, created: float) -> dict[str, bytes]:
        """Return the watermark of a record that was created at a time, in seconds since 1970."""
        return {"B": cls.bound(sequence)["B"] + math.ceil(created / _HOUR).to_bytes(_TIME_BYTES, "big")}

    @staticmethod
    def read(value: Mapping[str, Any]) -> tuple[int, float]:
        """Return sequence number and time of a watermark; raise ValueError if it is none."""
        size, *content = value.get("B") or b"\xff"
        if len(content) not in (size, size + _TIME_BYTES):
            raise ValueError(f"invalid watermark {value!r:.80}: expected a length, so many bytes, and an hour")
        created = int.from_bytes(bytes(content[size:]), "big") * _HOUR or math.inf
        return int.from_bytes(bytes(content[:size]), "big"), created


def watermarks_of(item: _Item, own: str) -> dict[str, tuple[int, float]]:
    """Return sequence numbers and times of an item's watermarks, by name, without that which was just written."""
    watermarks = {}
    for name in (name for name in item if name.startswith(WATERMARK_PREFIX) and name != own):
        with suppress(ValueError):  # Other code has written it.
            watermarks[name] = Watermark.read(item[name])
    return watermarks


def old(watermarks: Mapping[str, tuple[int, float]], oldest: float) -> list[str]:
    """Return the names of watermarks whose records were created before a time."""
    return [name for name, (_, created) in watermarks.items() if created < oldest]


@lru_cache(maxsize=1024)
def _expressions(to_set: Sequence[str], to_add: Sequence[str], guard: str) -> tuple[dict[str, Any], list[str]]:
    """Return the expressions of an update, their names, and the placeholders of their values."""
    names = {name: f"#{index:x}" for index, name in enumerate(dict.fromkeys((*to_set, *to_add)))}
    values = [f":{index:x}" for index in range(len(to_set) + len(to_add) + bool(guard))]
    sets = [f"{names[name]} = {value}" for name, value in zip(to_set, values, strict=False)]
    adds = [f"{names[name]} {value}" for name, value in zip(to_add, values[len(to_set) :], strict=False)]
    arguments: dict[str, Any] = {
        "UpdateExpression": f"SET {', '.join(sets)}" + (f" ADD {','.join(adds)}" if adds else ""),
        "ExpressionAttributeNames": {short: name for name, short in names.items()},
    }
    if guard:
        watermark = names[guard]
        arguments["ConditionExpression"] = f"(attribute_not_exists({watermark}) OR {watermark} < {values[-1]})"
        arguments["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return arguments, values


def update_request(
    table: str, key: _Item, sets: _Item, adds: _Item, bound: Bound | None = None, *, is_common: bool = True
) -> dict[str, Any]:
    """Return arguments of UpdateItem: set attributes and add numbers, if a watermark is less than its bound.

    Requests with the same names share their expressions, if that `is_common`.
    """
    name, *below = bound or ("",)
    expressions = _expressions if is_common else _expressions.__wrapped__
    arguments, placeholders = expressions(tuple(sets), tuple(adds), name)
    values = dict(zip(placeholders, (*sets.values(), *adds.values(), *below), strict=True))
    return {**arguments, "TableName": table, "Key": key, "ExpressionAttributeValues": values}


def prune_request(table: str, key: _Item, item: _Item, watermarks: Iterable[str]) -> dict[str, Any]:
    """Return arguments of UpdateItem: remove the first of some watermarks, if none of these has moved meanwhile."""
    names = {f"#{index}": name for index, name in enumerate(list(watermarks)[:MOST_PRUNED])}
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": "REMOVE " + ", ".join(names),
        "ConditionExpression": " AND ".join(f"#{index} = :{index}" for index in range(len(names))),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {f":{short[1:]}": item[name] for short, name in names.items()},
    }


class Looks:
    """When a process looked at the watermarks of items, which it does now and then."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._looked_at = clock, dict[Any, float]()

    def is_recent(self, key: Any) -> bool:
        return self._looked_at.get(key, 0.0) + PRUNED_EVERY > self._clock()

    def returned(self, key: Any) -> Literal["NONE", "ALL_NEW"]:
        """Return what an update is to return: its item, if it is time to look at that again."""
        if self.is_recent(key):
            return "NONE"
        if len(self._looked_at) >= MOST_REMEMBERED:
            self._looked_at.clear()
        self._looked_at[key] = self._clock()
        return "ALL_NEW"


class ExactlyOnce:
    """Adds what the records of a DynamoDB stream count to items of a table, each record once.

    The function's event source mapping needs ``TumblingWindowInSeconds``, as only then does Lambda name the shard of a
    batch, and ``ParallelizationFactor`` 1, as the batches of a shard must follow each other.

    Parameters
    ----------
    table : str
        Name or ARN of the table of the counts. It may be the one whose stream is counted.
    keys : sequence of str, default ("pk", "sk")
        Its partition key, and its sort key if it has one.
    client : DynamoDBClient, optional
        Client of boto3. It needs ``dynamodb:UpdateItem``.
    too_old : callable, optional
        Takes a record that is older than `MAX_RECORD_AGE`, which is not counted. Without one the batch fails.
    clock : callable, optional
        Seconds since 1970.

    Examples
    --------
    >>> counted = ExactlyOnce("my-table")  # doctest: +SKIP
    >>> def adds(record):
    ...     if record["eventName"] == "INSERT":
    ...         yield ("URL#" + record["dynamodb"]["NewImage"]["url"]["S"], "STATISTICS"), {"views": 1}
    >>> def handler(event, context):
    ...     return counted.handle(event, adds, context)
    """

    def __init__(
        self,
        table: str,
        *,
        keys: Sequence[str] = ("pk", "sk"),
        client: DynamoDBClient | None = None,
        too_old: Callable[[Record], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # Who needs watermarks alone does not load it.
        import boto3  # noqa: PLC0415
        from boto3.dynamodb.types import TypeSerializer  # noqa: PLC0415

        if isinstance(keys, str) or len(keys) not in (1, 2):
            raise InvalidArgumentError("keys", keys, "the names of the partition key, and of the sort key if any")
        self._table, self._keys = table, tuple(keys)
        self._client: Any = client or boto3.client("dynamodb")
        self._typed: Callable[[Any], Any] = TypeSerializer().serialize
        self._precision = Context(prec=300, traps=[Inexact, InvalidOperation])
        self._too_old, self._clock = too_old, clock
        self._looks = Looks(clock)

    def handle(self, event: Mapping[str, Any], adds: Adds, context: Any = None) -> dict[str, Any]:
        """Count a batch, and return what the function is to return: the state of the tumbling window.

        Parameters
        ----------
        event : Mapping
            Lambda's event.
        adds : callable
            Yields what a record adds: the key of an item, and numbers by attribute, negative ones to take back. It
            must yield the same for a record each time; what it raises fails the batch.
        context : optional
            Lambda's context. With it, no update begins in the last second of an invocation.

        Raises
        ------
        CheckpointError
            The event names no shard, or a record is older than `MAX_RECORD_AGE` and there is no `too_old`.
        CommitError
            Some items could not be written. Lambda delivers the batch again; the others do not count it twice.
        """
        if records := event.get("Records"):
            if not event.get("shardId") or "eventSourceARN" not in records[0]:
                raise CheckpointError(
                    "the event has no shardId, or no eventSourceARN, without which redeliveries look like new records: "
                    "set TumblingWindowInSeconds in the event source mapping, and return what this returns"
                )
            # Streams of two tables may use one name for a shard.
            watermark = Watermark(f"{event['shardId']}@{records[0]['eventSourceARN']}")
            self._count(watermark, self._contributions(records, adds), context)
        return {"state": event.get("state") or {}}

    def _contributions(self, records: Iterable[Record], adds: Adds) -> dict[Key, list[_Contribution]]:
        by_key: dict[Key, list[_Contribution]] = {}
        for record in records:
            change = record["dynamodb"]
            sequence, created = int(change["SequenceNumber"]), float(change["ApproximateCreationDateTime"])
            if created + MAX_RECORD_AGE < self._clock():
                if self._too_old is None:
                    raise CheckpointError(f"record {sequence} is older than {MAX_RECORD_AGE / _HOUR:.0f} hours")
                self._too_old(record)
                continue
            for key, amounts in adds(record):
                if not isinstance(key, tuple) or len(key) != len(self._keys):
                    raise InvalidArgumentError("key", key, f"a tuple of {', '.join(self._keys)}")
                for name, amount in amounts.items():
                    if not isinstance(amount, int | Decimal) or name.startswith(WATERMARK_PREFIX):
                        raise InvalidArgumentError(name, amount, f"an int or Decimal, by no {WATERMARK_PREFIX}… name")
                by_key.setdefault(tuple(key), []).append((sequence, created, amounts))
        return by_key

    def _count(self, watermark: Watermark, by_key: Mapping[Key, list[_Contribution]], context: Any) -> None:
        def attempt(key: Key) -> Exception | None:
            try:
                self._apply(watermark, key, by_key[key], context)
            except Exception as error:  # noqa: BLE001 - the others are counted
                return error
            return None

        # No thread outlives the call: Lambda would freeze it, and thaw it in another invocation.
        with ThreadPoolExecutor(THREADS) as pool:
            failures = [error for error in pool.map(attempt, by_key) if error]
        if failures:
            raise CommitError(failures)

    def _apply(self, watermark: Watermark, key: Key, contributions: Sequence[_Contribution], context: Any) -> None:
        """Add contributions to an item, except those that it has counted."""
        item_key = {name: self._typed(value) for name, value in zip(self._keys, key, strict=True)}
        while contributions:
            if context is not None and context.get_remaining_time_in_millis() < LEAST_TIME:
                raise TimeoutError("the invocation's time is nearly up")
            (first, *_), (last, created, _) = contributions[0], contributions[-1]
            # records   the item's watermark  the condition   what happens
            # 5, 6      none                  holds           views +2, watermark 6; the invocation dies
            # 5, 6      6                     6 < 5 fails     nothing remains: the batch was counted
            # 5, 6, 7   6                     6 < 5 fails     7 remains, and is sent
            # 7         6                     6 < 7 holds     views +1, watermark 7
            sets, bound = {watermark.name: watermark.value(last, created)}, (watermark.name, watermark.bound(first))
            request = update_request(self._table, item_key, sets, self._sums(contributions), bound)
            request["ReturnValues"] = self._looks.returned(key)
            try:
                item = self._client.update_item(**request).get("Attributes", {})
            except self._client.exceptions.ConditionalCheckFailedException as error:
                counted, _ = watermark.read(error.response["Item"][watermark.name])
                contributions = [contribution for contribution in contributions if contribution[0] > counted]
            else:
                prunable = old(watermarks_of(item, watermark.name), self._clock() - WATERMARK_KEPT)
                if len(prunable) >= PRUNED_AT:
                    # A later update tries again.
                    with suppress(self._client.exceptions.ClientError):
                        self._client.update_item(**prune_request(self._table, item_key, item, prunable))
                return

    def _sums(self, contributions: Iterable[_Contribution]) -> dict[str, Any]:
        sums: dict[str, int | Decimal] = {}
        # Python's own precision would round; DynamoDB's, of 38 digits, is for the sums.
        with localcontext(self._precision):
            for _, _, amounts in contributions:
                sums |= {name: sums.get(name, 0) + amount for name, amount in amounts.items()}
            # 38 digits that end in zeros are fewer; some emulators read no exponents.
            return {name: {"N": f"{Decimal(amount).normalize():f}"} for name, amount in sums.items()}
