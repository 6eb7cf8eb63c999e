"""A stream in memory: shards that own ranges of partition keys, close, and have children."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from dynamodb_counters._backfill.feeds import Shard
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


class MemoryStream:
    """The stream of one table; the seed decides shard ids and sequence numbers."""

    def __init__(self, seed: int, shards: int, clock: Callable[[], float], table: str = "counters") -> None:
        self.arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2026-11-20T00:00:00.000"
        self._table = table
        self._random = random.Random(seed)
        self._clock = clock
        self._shards: dict[str, _Shard] = {}
        self._open("", 0, _HASHES, shards)

    def shards(self) -> list[Shard]:
        return [Shard(shard.id, shard.parent, not shard.closed) for shard in self._shards.values()]

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        found = self._shards[shard]
        start = 0 if after is None else found.indexes[after] + 1
        stop = start + limit
        return Page(found.records[start:stop], ended=found.closed and stop >= len(found.records))

    def records(self, shard: str, after: str = "") -> list[Record]:
        """Those after a padded sequence number, as a reader of streams asks for them."""
        found = self.read(shard, None, len(self._shards[shard].records)).records
        return [one for one in found if one["dynamodb"]["SequenceNumber"].zfill(_MOST_DIGITS) > after]

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
            "ApproximateCreationDateTime": float(int(self._clock())),
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
