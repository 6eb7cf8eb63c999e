"""A stream in memory with all that simulations ask of one: its history, what it forgets, and times that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from dynamodb_counters._backfill.feeds import Shard
from simulation.memory.memory_stream import MemoryStream, Page, Record


class RecordedStream(MemoryStream):
    """The stream of one table, and a client that reads it; the seed decides shard ids and sequence numbers."""

    exceptions = SimpleNamespace(ResourceNotFoundException=LookupError)
    page_records = 1000
    """Records of a page that the client reads."""

    disorder: Callable[[], float] = staticmethod(lambda: 0.0)
    """By how many seconds the time of a record is wrong."""

    def __init__(
        self, seed: int, shards: int, clock: Callable[[], float], table: str = "counters", label: str = ""
    ) -> None:
        self._trimmed: dict[str, int] = {}
        super().__init__(seed, shards, lambda: clock() + self.disorder(), table)
        if label:
            self.arn = f"{self.arn.rpartition('/')[0]}/{label}"

    def shards(self) -> list[Shard]:
        return [shard for shard in super().shards() if not self._is_forgotten(shard.id)]

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        """The call of the DynamoDB Streams API."""
        described = []
        for shard in self.shards():
            numbers = {"StartingSequenceNumber": "0"}
            numbers |= {"EndingSequenceNumber": "0"} if self._shards[shard.id].closed else {}
            parent = {"ParentShardId": shard.parent} if shard.parent else {}
            described.append({"ShardId": shard.id, **parent, "SequenceNumberRange": numbers})
        return {"StreamDescription": {"Shards": described}}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        """The call of the DynamoDB Streams API."""
        return {"ShardIterator": f"{asked['ShardId']} {asked.get('SequenceNumber', '')}"}

    def get_records(self, **asked: Any) -> dict[str, Any]:
        """The call of the DynamoDB Streams API."""
        shard, after = asked["ShardIterator"].split(" ")
        page = self.read(shard, after or None, self.page_records)
        last = page.records[-1]["dynamodb"]["SequenceNumber"] if page.records else after
        more = {} if page.ended else {"NextShardIterator": f"{shard} {last}"}
        return {"Records": [_as_boto3(record) for record in page.records], **more}

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        found, trimmed = self._shards[shard], self._trimmed.get(shard, 0)
        if trimmed and (after is None or found.indexes[after] < trimmed):
            after = found.records[trimmed - 1]["dynamodb"]["SequenceNumber"]
        return super().read(shard, after, limit)

    def trim(self, created_before: float) -> None:
        """Forget old records, as the stream may after 24 hours, and closed shards that have no others."""
        for shard in self._shards.values():
            trimmed = self._trimmed.get(shard.id, 0)
            while trimmed < len(shard.records) and _created(shard.records[trimmed]) < created_before:
                trimmed += 1
            self._trimmed[shard.id] = trimmed

    def history(self) -> Iterator[tuple[str, Record]]:
        """Every record there ever was and its shard, shard by shard."""
        return ((shard.id, record) for shard in self._shards.values() for record in shard.records)

    def _is_forgotten(self, shard: str) -> bool:
        found = self._shards[shard]
        return found.closed and 0 < self._trimmed.get(shard, 0) == len(found.records)


def _as_boto3(record: Record) -> dict[str, Any]:
    return {
        **record,
        "dynamodb": {
            **record["dynamodb"],
            "ApproximateCreationDateTime": datetime.fromtimestamp(_created(record), UTC),
        },
    }


def _created(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])
