"""Streams that runs read to their end, and their time: DynamoDB's."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

from dynamodb_counters._backfill.feeds import ASKED_EVERY, ServiceTime, StreamReader
from dynamodb_counters._table import Table

CLIENT: Any = None


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
    return StreamReader(client, "arn", streams.pauses.append, quiet_pages=50)


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


class Client:
    """Answers with a date, if it has one."""

    exceptions = SimpleNamespace()

    def __init__(self, date: str | None) -> None:
        self.date = date
        self.asked = 0

    def get_item(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        return {"ResponseMetadata": {"HTTPHeaders": {} if self.date is None else {"date": self.date}}}


def service_time(client: Any, monotonic: list[float]) -> ServiceTime:
    return ServiceTime(Table("orders", client, clock=lambda: 5.0), lambda: monotonic[0])


def test_an_answers_date_is_carried_on_by_a_monotonic_clock() -> None:
    client, monotonic = Client("Fri, 20 Nov 2026 00:00:00 GMT"), [100.0]
    now = service_time(client, monotonic)
    first = now()
    assert first == 1795132800.0
    monotonic[0] += ASKED_EVERY - 1
    assert (now(), client.asked) == (first + ASKED_EVERY - 1, 1)
    monotonic[0] += 1
    client.date = "Fri, 20 Nov 2026 00:00:30 GMT"
    assert (now(), client.asked) == (first + 30, 2)


def test_it_never_goes_back() -> None:
    client, monotonic = Client("Fri, 20 Nov 2026 00:00:00 GMT"), [100.0]
    now = service_time(client, monotonic)
    first = now()
    monotonic[0] += ASKED_EVERY
    # Headers have whole seconds.
    client.date = "Fri, 20 Nov 2026 00:00:04 GMT"
    assert now() == first + ASKED_EVERY


def test_slow_answers_never_bring_it_ahead() -> None:
    client, monotonic, begun = Client(None), [100.0], 1795132800.0

    def get_item(**_: Any) -> dict[str, Any]:
        monotonic[0] += 0.5
        date = formatdate(begun + monotonic[0] - 100, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    client.get_item = get_item  # type: ignore[method-assign]
    now = service_time(client, monotonic)
    for _ in range(100):
        assert now() <= begun + monotonic[0] - 100
        monotonic[0] += ASKED_EVERY


def test_without_a_date_the_local_clock_holds() -> None:
    for date in (None, "yesterday"):
        assert service_time(Client(date), [100.0])() == 5.0
