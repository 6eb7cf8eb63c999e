"""The table a schedule runs on: in memory, or a real engine's."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from simulation.aws import streams
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import ApiSource, Source
from simulation.engines.tables import create_table
from simulation.faults.hooked_client import HookedClient
from simulation.memory.memory_stream import TTL_IDENTITY, Record
from simulation.memory_table import MemoryTable

if TYPE_CHECKING:
    from simulation.engines.dynamodb_local import DynamoDBLocal


_BEGINS_AFTER: Final = timedelta(minutes=20)
"""By how much the stream of a restored table is younger than the table."""


MakeBackend: TypeAlias = Callable[[random.Random], "MemoryBackend | LocalBackend"]


class MemoryBackend(MemoryTable):
    """A table in memory; `source_table` is the ARN of the table of the events, if that is another than the counts'.

    An engine is given `lag` seconds where a schedule has nothing to do but to wait for it.
    """

    lag = 0.0
    source_table: str | None = None

    def __init__(self, rng: random.Random, clock: VirtualClock | None = None, **schema: Any) -> None:
        self.clock = clock or VirtualClock()
        self._drawn = rng.getstate()
        shards = rng.choice((1, 2, 3, 12))
        super().__init__(self.clock, rng.getrandbits(32), shards, **schema)
        self.page_items = 3
        self.client: Any = self
        # From a generator of their own: all else is as if times were right.
        self.stream.disorder = streams.disorder(random.Random(str(self._drawn)))

    def beside(self, name: str, keys: tuple[str, ...], ttl: str) -> MemoryBackend:
        # The streams of both begin with the same shard ids and sequence numbers: nothing may rest on their difference.
        same = random.Random()
        same.setstate(self._drawn)
        return MemoryBackend(same, self.clock, name=name, keys=keys, ttl=ttl)

    def split(self, rng: random.Random) -> None:
        self.stream.split(rng.choice(self.stream.open_shards()), rng.choice((1, 2)))

    def roll_over(self) -> None:
        for shard in self.stream.open_shards():
            self.stream.split(shard, 1)

    def trim(self, created_before: float) -> None:
        self.stream.trim(created_before)

    def history(self) -> Iterable[tuple[str, Record]]:
        return self.stream.history()

    def drop(self) -> None:
        """Nothing outlives it."""


class RestoredTable(MemoryBackend):
    """A table with the items that another one has now."""

    def __init__(self, original: MemoryTable, clock: VirtualClock, seed: int = 0) -> None:
        super().__init__(random.Random(seed + 10**6), clock, name="restored")
        self._only.indexes |= original.tables[original.name].indexes
        self._copied_at = datetime.fromtimestamp(clock(), UTC)
        for item in deepcopy([*original.items()]):
            self._only.partitions.setdefault(item["pk"]["S"], {})[item["sk"]["S"]] = item
        self.begin()

    def begin(self) -> None:
        """Enable the stream, now."""
        self._began = datetime.fromtimestamp(self.clock(), UTC)

    def describe_table(self, **request: Any) -> dict[str, Any]:
        described = super().describe_table(**request)
        label = self._began.replace(tzinfo=None).isoformat(timespec="milliseconds")
        described["Table"] |= {"CreationDateTime": self._began - _BEGINS_AFTER, "LatestStreamLabel": label}
        described["Table"] |= {"RestoreSummary": {"RestoreDateTime": self._copied_at}}
        return described


class _DatingClock(VirtualClock):
    """Calls functions before time passes."""

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.before: list[Callable[[], None]] = []

    def advance(self, seconds: float) -> None:
        for call in self.before if seconds > 0 else ():
            call()
        super().advance(seconds)


class LocalBackend:
    """A table of its own in DynamoDB Local.

    The engine dates records by the machine's clock; here a record is dated by virtual time before that passes, and a
    deletion by `expire` is known by the image it deleted.
    """

    lag = 0.005
    source_table: str | None = None

    def __init__(
        self,
        engine: DynamoDBLocal,
        _rng: random.Random | None = None,
        clock: VirtualClock | None = None,
        name: str = "schedule",
        keys: tuple[str, ...] = ("pk", "sk"),
        ttl: str = "ttl",
    ) -> None:
        assert engine.streams is not None
        self._engine = engine
        dating = clock if isinstance(clock, _DatingClock) else _DatingClock(time.time())
        dating.before.append(self._date)
        self.clock: VirtualClock = dating
        self.name = f"{name}-{uuid.uuid4().hex[:12]}"
        self.client: Any = HookedClient(engine.client, self._note)
        self._is_undated = True
        self._keys, self._ttl = keys, ttl
        self._expired: set[str] = set()
        # Schedules expire items themselves; and with TTL in seven tables, the engine has no thread left to roll over.
        stream = create_table(engine.client, self.name, expires=False, keys=keys)
        self.stream: Source = ApiSource(engine.streams, stream, self._amend)

    def beside(self, name: str, keys: tuple[str, ...], ttl: str) -> LocalBackend:
        return _Beside(self._engine, None, self.clock, name, keys, ttl)

    def items(self) -> Iterable[Mapping[str, Any]]:
        for page in self.client.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True):
            yield from page["Items"]

    def expire(self, limit: int) -> list[dict[str, Any]]:
        ttl = self._ttl
        due = [item for item in self.items() if ttl in item and float(item[ttl]["N"]) <= self.clock()][:limit]
        for item in due:
            self._expired.add(_identity(item))
            self.client.delete_item(TableName=self.name, Key={name: item[name] for name in self._keys})
        return [dict(item) for item in due]

    def split(self, rng: random.Random) -> None:  # noqa: ARG002
        """Close all open shards, each with a child: the engine can do no less."""
        self._engine.rollover()

    def roll_over(self) -> None:
        self._engine.rollover()

    def trim(self, created_before: float) -> None:
        """Do nothing: the engine forgets nothing while a schedule runs."""

    def history(self) -> Iterable[tuple[str, Record]]:
        for shard in self.stream.shards():
            for record in self.stream.read(shard.id, None, 100_000).records:
                yield shard.id, record

    def drop(self) -> None:
        self.client.delete_table(TableName=self.name)

    def _note(self, name: str, send: Any, _: dict[str, Any]) -> Any:
        self._is_undated |= name not in ("get_item", "query", "scan", "batch_get_item", "describe_table")
        return send()

    def _date(self) -> None:
        """Read the stream to its end, which dates what is new."""
        if self._is_undated:
            for shard in self.stream.shards():
                self.stream.read(shard.id, None, 100_000)
            self._is_undated = False

    def _amend(self, record: Record) -> Record:
        change = record["dynamodb"]
        change["ApproximateCreationDateTime"] = float(int(self.clock()))
        if record["eventName"] == "REMOVE" and _identity(change["OldImage"]) in self._expired:
            return {**record, "userIdentity": TTL_IDENTITY}
        return record


class _Beside(LocalBackend):
    """A table whose shards the engine replaces together with those of the other."""

    def split(self, rng: random.Random) -> None: ...

    def roll_over(self) -> None: ...


def _identity(item: Mapping[str, Any]) -> str:
    # All attributes distinguish an image that expires from an earlier or later one of the same key.
    return repr(sorted((name, sorted(value.items())) for name, value in item.items()))
