"""A stream is read to its end, whatever pages it comes in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dynamodb_counters._backfill.feeds import StreamReader


class _Streams:
    """Two pages of shards; a shard's records come in given pages, the last of them without an iterator if closed."""

    def __init__(self, pages: list[list[int]], *, closed: bool) -> None:
        self._pages, self._closed = pages, closed
        self.pauses: list[float] = []

    def describe_stream(self, **asked: Any) -> Any:
        if "ExclusiveStartShardId" not in asked:
            child = {"ShardId": "a-child", "ParentShardId": "b-parent"}
            return {"StreamDescription": {"Shards": [child], "LastEvaluatedShardId": "a-child"}}
        parent = {"ShardId": "b-parent", "ParentShardId": "forgotten"}
        return {"StreamDescription": {"Shards": [parent]}}

    def get_shard_iterator(self, **asked: Any) -> Any:
        assert asked["ShardIteratorType"] == "TRIM_HORIZON"
        return {"ShardIterator": "0"}

    def get_records(self, **asked: Any) -> Any:
        place = int(asked["ShardIterator"])
        created = datetime(2026, 11, 20, 10, tzinfo=UTC)
        numbers = self._pages[place] if place < len(self._pages) else []
        records = [
            {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": created}} for number in numbers
        ]
        is_last = self._closed and place + 1 == len(self._pages)
        return {"Records": records} if is_last else {"Records": records, "NextShardIterator": str(place + 1)}


def _reader(streams: _Streams) -> StreamReader:
    client: Any = streams
    return StreamReader(client, "arn", streams.pauses.append)


def test_parents_come_before_children() -> None:
    assert [shard.id for shard in _reader(_Streams([], closed=True)).shards()] == ["b-parent", "a-child"]


def test_a_closed_shard_is_read_to_its_end_over_any_number_of_empty_pages() -> None:
    streams = _Streams([[1], *[[]] * 40, [2, 3], [], [4]], closed=True)
    read = list(_reader(streams).records("b-parent"))
    assert [record["dynamodb"]["SequenceNumber"] for record in read] == ["1", "2", "3", "4"]
    assert read[0]["dynamodb"]["ApproximateCreationDateTime"] == 1_795_168_800.0
    assert {record["eventSourceARN"] for record in read} == {"arn"}


def test_an_open_shard_is_read_until_nothing_has_come_for_a_while() -> None:
    streams = _Streams([[1], [], [2]], closed=False)
    assert len(list(_reader(streams).records("b-parent"))) == 2
    assert 5 <= sum(streams.pauses) <= 60
