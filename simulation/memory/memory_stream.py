"""A stream in memory, and a client that reads it: shards own ranges of partition keys, close, and have children."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, TypeAlias

from counters_lambda.counting.feeds import Shard
from simulation.memory.typed_values import Item

TTL_IDENTITY: Final = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}

Record: TypeAlias = dict[str, Any]
"""A stream record as it stands in a Lambda event."""

_HASHES: Final = 2**32
_FEWEST_DIGITS: Final = 21
_MOST_DIGITS: Final = 40


class Page(NamedTuple):
    records: list[Record]
    ended: bool


@dataclass(slots=True)
class _Shard:
    id: str
    parent: str
    low: int
    high: int
    sequence: int
    step: int
    closed: bool = False
    records: list[Record] = field(default_factory=list)
    indexes: dict[str, int] = field(default_factory=dict)
    trimmed: int = 0
    """Records that are forgotten."""

    @property
    def is_forgotten(self) -> bool:
        return self.closed and 0 < self.trimmed == len(self.records)


class MemoryStream:
    """The stream of one table, and a client that reads it; the seed decides shard ids and sequence numbers."""

    exceptions = SimpleNamespace(ResourceNotFoundException=LookupError)
    page_records = 1000
    """Records of a page that the client reads."""

    disorder: Callable[[], float] = staticmethod(lambda: 0.0)
    """By how many seconds the time of a record is wrong."""

    def __init__(
        self,
        seed: int,
        shards: int,
        clock: Callable[[], float],
        table: str = "counters",
        label: str = "2026-11-20T00:00:00.000",
    ) -> None:
        self.arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/{label}"
        self._table, self._clock, self._random = table, clock, random.Random(seed)
        self._shards: dict[str, _Shard] = {}
        self._open("", 0, _HASHES, shards)

    def shards(self) -> list[Shard]:
        shards = (shard for shard in self._shards.values() if not shard.is_forgotten)
        return [Shard(shard.id, shard.parent, not shard.closed) for shard in shards]

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        log = self._shards[shard]
        start = max(log.trimmed, 0 if after is None else log.indexes[after] + 1)
        stop = start + limit
        return Page(log.records[start:stop], ended=log.closed and stop >= len(log.records))

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        """Answer as the call of the DynamoDB Streams API."""
        described = []
        for shard in self.shards():
            numbers = {"StartingSequenceNumber": "0"} | ({} if shard.is_open else {"EndingSequenceNumber": "0"})
            parent = {"ParentShardId": shard.parent} if shard.parent else {}
            described.append({"ShardId": shard.id, **parent, "SequenceNumberRange": numbers})
        return {"StreamDescription": {"Shards": described}}

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        """Answer as the call of the DynamoDB Streams API."""
        return {"ShardIterator": f"{request['ShardId']} {request.get('SequenceNumber', '')}"}

    def get_records(self, **request: Any) -> dict[str, Any]:
        """Answer as the call of the DynamoDB Streams API."""
        shard, after = request["ShardIterator"].split(" ")
        page = self.read(shard, after or None, self.page_records)
        last = page.records[-1]["dynamodb"]["SequenceNumber"] if page.records else after
        more = {} if page.ended else {"NextShardIterator": f"{shard} {last}"}
        return {"Records": [_as_boto3(record) for record in page.records], **more}

    def trim(self, created_before: float) -> None:
        """Forget old records, as the stream may after 24 hours, and closed shards that have no others."""
        for shard in self._shards.values():
            while shard.trimmed < len(shard.records) and _created(shard.records[shard.trimmed]) < created_before:
                shard.trimmed += 1

    def history(self) -> Iterator[tuple[str, Record]]:
        """Every record there ever was and its shard, shard by shard."""
        return ((shard.id, record) for shard in self._shards.values() for record in shard.records)

    def records(self, shard: str, after: str = "") -> list[Record]:
        """Those after a padded sequence number, as a reader of streams asks for them."""
        records = self.read(shard, None, len(self._shards[shard].records)).records
        return [record for record in records if record["dynamodb"]["SequenceNumber"].zfill(_MOST_DIGITS) > after]

    def append(self, keys: Item, old: Item | None, new: Item | None, *, size: int, by_ttl: bool = False) -> None:
        """Write the record of a change to the shard that owns its partition key, the first of `keys`."""
        partition = next(iter(keys.values()))["S"]
        owner = zlib.crc32(partition.encode())
        [shard] = [s for s in self._shards.values() if not s.closed and s.low <= owner < s.high]
        shard.sequence += self._random.randint(1, shard.step)
        if self._random.random() < 0.05 and len(str(shard.sequence)) < _MOST_DIGITS - 1:
            shard.sequence *= 10
        sequence = str(shard.sequence)
        change: dict[str, Any] = {
            "ApproximateCreationDateTime": float(int(self._clock() + self.disorder())),
            "Keys": keys,
            "SequenceNumber": sequence,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            **{name: image for name, image in (("NewImage", new), ("OldImage", old)) if image is not None},
            "SizeBytes": size,
        }
        record: Record = {
            "eventID": f"{self._table}-{shard.id[-8:]}{sequence}",
            "eventName": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1",
            "eventSourceARN": self.arn,
            "dynamodb": change,
        }
        if by_ttl:
            record["userIdentity"] = TTL_IDENTITY
        shard.indexes[sequence] = len(shard.records)
        shard.records.append(record)

    def split(self, shard: str, children: int = 2) -> None:
        """Close an open shard; children take over its keys: 2 is a split, 1 what DynamoDB does every few hours."""
        parent = self._shards[shard]
        parent.closed = True
        self._open(parent.id, parent.low, parent.high, children)

    def open_shards(self) -> list[str]:
        return [shard.id for shard in self._shards.values() if not shard.closed]

    def _open(self, parent: str, begin: int, end: int, shards: int) -> None:
        bounds = [begin + (end - begin) * number // shards for number in range(shards + 1)]
        for low, high in pairwise(bounds):
            # Sequence numbers begin just below a power of ten, so that their lengths differ within one shard.
            digits = self._random.randint(_FEWEST_DIGITS, _MOST_DIGITS - 8)
            step = self._random.choice((1, 10**3, 10 ** (digits - 2)))
            sequence = 10**digits - self._random.randint(1, 6) * step
            name = f"shardId-{self._random.getrandbits(40):020d}-{self._random.getrandbits(32):08x}"
            self._shards[name] = _Shard(name, parent, low, high, sequence, step)


def _as_boto3(record: Record) -> dict[str, Any]:
    created = datetime.fromtimestamp(_created(record), UTC)
    return {**record, "dynamodb": {**record["dynamodb"], "ApproximateCreationDateTime": created}}


def _created(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])
