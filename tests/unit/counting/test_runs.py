"""Streams that runs read to their end, and their time: DynamoDB's."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from counters_lambda.counting.feeds import ASKED_EVERY, ServiceTime, Shard, StreamReader
from counters_lambda.counting.run_logs import RunRow
from counters_lambda.counting.runner import Lineage, contributions, part_of, sum_up
from counters_lambda.counting.verification import judge
from dynamodb_counters import Aggregate, Count, Counter, Event, Ranking, Sum
from dynamodb_counters._fold.fold import Sums
from dynamodb_counters._items.schema import SCORE
from dynamodb_counters._table import Table
from simulation.world import World


class _Streams:
    """Two pages of shards; a shard's records come in given pages, the last of them without an iterator if closed."""

    def __init__(self, pages: list[list[int]], *, closed: bool) -> None:
        self._pages, self._closed = pages, closed
        self.pauses: list[float] = []

    def describe_stream(self, **request: Any) -> Any:
        if "ExclusiveStartShardId" not in request:
            child = {"ShardId": "a-child", "ParentShardId": "b-parent"}
            return {"StreamDescription": {"Shards": [child], "LastEvaluatedShardId": "a-child"}}
        parent = {"ShardId": "b-parent", "ParentShardId": "forgotten"}
        return {"StreamDescription": {"Shards": [parent]}}

    def get_shard_iterator(self, **request: Any) -> Any:
        assert request["ShardIteratorType"] == "TRIM_HORIZON"
        return {"ShardIterator": "0"}

    def get_records(self, **request: Any) -> Any:
        place = int(request["ShardIterator"])
        created = datetime(2026, 11, 20, 10, tzinfo=UTC)
        numbers = self._pages[place] if place < len(self._pages) else []
        records = [{"dynamodb": {"SequenceNumber": str(n), "ApproximateCreationDateTime": created}} for n in numbers]
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
        self.requests = 0

    def get_item(self, **_: Any) -> dict[str, Any]:
        self.requests += 1
        return {"ResponseMetadata": {"HTTPHeaders": {} if self.date is None else {"date": self.date}}}


def service_time(client: Any, monotonic: list[float]) -> ServiceTime:
    return ServiceTime(Table("orders", client, clock=lambda: 5.0), lambda: monotonic[0])


def test_an_answers_date_is_carried_on_by_a_monotonic_clock() -> None:
    client, monotonic = Client("Fri, 20 Nov 2026 00:00:00 GMT"), [100.0]
    now = service_time(client, monotonic)
    first = now()
    assert first == 1795132800.0
    monotonic[0] += ASKED_EVERY - 1
    assert (now(), client.requests) == (first + ASKED_EVERY - 1, 1)
    monotonic[0] += 1
    client.date = "Fri, 20 Nov 2026 00:00:30 GMT"
    assert (now(), client.requests) == (first + 30, 2)
    monotonic[0] += ASKED_EVERY
    # It never goes back, though headers have whole seconds.
    client.date = "Fri, 20 Nov 2026 00:00:34 GMT"
    assert now() == first + 30 + ASKED_EVERY


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


_numbers = st.integers(-2, 3)
_few = st.integers(-3, 3)
SALE = Event("sale", key=("shop", "id"))
STOCK = Counter("stock", by=("shop", "sku"), left=Count())
SHOPS = Aggregate("shops", STOCK, by="shop", left=Sum("left"))
KINDS = Aggregate("kinds", STOCK, by="sku", kinds=Count())


@dataclass
class _Item:
    """Contributions of an item at the cut and after each change since, and how many changes its scan has seen."""

    contributed: list[int]
    changes: int
    in_parent: int
    """How many changes came through the shard that has a child by now."""


_items = st.lists(
    st.builds(_Item, st.lists(_numbers, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3)), max_size=6
)


def _sums(group: str, number: int) -> Sums:
    return {("views", (group,)): {"n": number}} if number else {}


@given(_items, st.integers(1, 3), st.booleans())
def test_a_baseline_is_what_items_contributed_at_the_cut(items: list[_Item], parts: int, is_repeated: bool) -> None:
    scanned, logged, expected = [], [], collections.Counter[str]()
    for place, (group, item) in enumerate(zip("ababab", items, strict=False)):
        digest, changes = f"item-{place}", min(item.changes, len(item.contributed) - 1)
        scanned.append(RunRow(digest, _sums(group, item.contributed[changes])))
        expected[group] += item.contributed[0]
        for index, old in enumerate(item.contributed[:-1]):
            # The numbers of a child say nothing about those of its parent.
            shard, sequence = ("parent", 10 + index) if index < item.in_parent else ("child", index)
            logged.append((shard, RunRow(digest, _sums(group, old), sequence=f"{sequence:040}")))
    logged *= 2 if is_repeated else 1
    lineage = Lineage()
    lineage.meet([Shard("parent", "", is_open=False), Shard("child", "parent", is_open=True)])
    pages: Any = SimpleNamespace(scanned=lambda: scanned, logged=lambda: reversed(logged), lineage=lineage)

    every = [entry for part in range(parts) for entry in contributions(pages, part, parts)]

    sums = {group[0]: measures["n"] for (_, group), measures in (sum_up(every, 0, 1) or {}).items() if measures["n"]}
    assert sums == {group: number for group, number in expected.items() if number}


@given(st.lists(st.text(max_size=4), unique=True), st.integers(1, 5))
def test_parts_hold_each_group_once_and_split_into_four(texts: list[str], parts: int) -> None:
    contributed = [{("views", (text,)): {"n": 1}} for text in texts]
    refs = [ref for part in range(parts) for ref in sum_up(contributed, part, parts) or ()]
    assert sorted(refs) == sorted(("views", (text,)) for text in texts)
    assert all(part_of(text, 4 * parts) // 4 == part_of(text, parts) for text in texts)


@given(st.sampled_from([Count(), Sum("price")]), _few, _few)
def test_a_score_that_differs_from_its_measure_is_drift_though_events_may_have_expired(
    measure: Count | Sum, total: int, score: int
) -> None:
    ranking = Ranking(measure="total", leaderboard="SHOPS")
    shops = Aggregate("shops", SALE, by="shop", measures={"total": measure}, ranking=ranking)
    missing = {name: number for name, number in (("total", total), (SCORE, score)) if number}

    statuses = list(judge(shops, missing, may_exceed=True, is_gone=False))

    certain = [numbers.get(SCORE, 0) for status, _, numbers in statuses if status == "drifted"]
    loss = total if isinstance(measure, Count) and total > 0 else 0
    assert sum(certain) == score - total + loss
    differences = [numbers for *_, numbers in statuses]
    assert {name: sum(numbers.get(name, 0) for numbers in differences) for name in missing} == missing
    assert all(all(numbers.values()) for numbers in differences)


def test_what_is_over_a_counter_is_verified_and_backfilled() -> None:
    world = World(STOCK, SHOPS)
    for sku in "xy":
        world.counters.increment(STOCK, shop="a", sku=sku, amount=5)
    world.deliver_new()
    assert world.missing() == []
    world.spoil(SHOPS, "left", 2, shop="a")
    assert [(item.name, dict(item.missing)) for item in world.verify().differences] == [("shops", {"left": -2})]

    world.deploy(STOCK, SHOPS, KINDS)
    world.fill()
    assert world.read(KINDS, sku="x") == ({"kinds": 1}, True)
    assert world.read(STOCK, shop="a", sku="x") == ({"left": 5}, True)
