"""Backfills: what a table held before an aggregate was declared is counted, while writers go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Counters, Event, Items, Sum, Window
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.feeds import Feeds, StreamReader
from dynamodb_counters._backfill.runner import SCANNING, WAITING, Progress
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.registry import entry_key, read_registry
from dynamodb_counters._declarations.codec import definition, encode
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from simulation.memory.memory_stream import Record
from simulation.workbench import Workbench

ORDER = Items("order", where=Attr("customer").exists())
NUMBER = Aggregate("orders", ORDER, pk="ORDERS", sk="NUMBER", measures={"orders": Count()})
REVENUE = Aggregate("revenue", ORDER, pk="CUSTOMER#{customer}", sk="REVENUE", measures={"total": Sum("price")})


def put(bench: Workbench, number: int, price: int, customer: str = "ann") -> None:
    item = {
        "pk": {"S": f"ORDER#{number}"},
        "sk": {"S": "ORDER"},
        "customer": {"S": customer},
        "price": {"N": str(price)},
    }
    bench.table.put_item(TableName=bench.table.name, Item=item)


def delete(bench: Workbench, number: int) -> None:
    key = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}}
    bench.table.delete_item(TableName=bench.table.name, Key=key)


class Stream:
    """Delivers what is new to the bench's aggregator, shard by shard, as often as it is asked to."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._delivered: dict[str, int] = {}

    def deliver(self) -> None:
        for shard, new in self.skip().items():
            records = self._bench.young(new)
            for start in range(0, len(records), 100):
                self._bench.deliver(records[start : start + 100], shard)

    def new(self) -> dict[str, list[Record]]:
        return {shard: self._bench.records(shard)[self._delivered.get(shard, 0) :] for shard in self._bench.shards()}

    def skip(self) -> dict[str, list[Record]]:
        """Give up on what is new; return it."""
        new = self.new()
        self._delivered |= {shard: self._delivered.get(shard, 0) + len(records) for shard, records in new.items()}
        return new


def feeds(bench: Workbench) -> Feeds:
    streams: Any = bench.table.stream
    return Feeds(StreamReader(streams, streams.arn, sleep=lambda _: None))


def backfill(bench: Workbench, stream: Stream, **options: Any) -> Backfill:
    def sleep(seconds: float) -> None:
        bench.clock.advance(seconds)
        stream.deliver()

    client: Any = bench.table
    table = Table(bench.table.name, client, clock=bench.clock, sleep=sleep)
    return Backfill(table=table, feeds=feeds(bench), now=bench.clock, **options)


def verification(bench: Workbench, stream: Stream, **options: Any) -> Verification:
    return Verification(table=backfill(bench, stream).table, feeds=feeds(bench), now=bench.clock, **options)


def fill(bench: Workbench, stream: Stream, **options: Any) -> None:
    """Run a backfill to its end, until readers know of it."""
    assert [*backfill(bench, stream, **options).steps()][-1].phase == "complete"
    bench.clock.advance(61)


def verify(bench: Workbench, stream: Stream) -> Verification:
    verifying = verification(bench, stream)
    assert [*verifying.steps()][-1].phase == "complete"
    return verifying


def before_the_end(monkeypatch: pytest.MonkeyPatch, work: type[Any], then: Callable[[], object]) -> None:
    """Have something happen once a run has nothing left to wait for."""
    finish: Callable[[Any], Iterator[Progress]] = work._finish

    def late(self: Any) -> Iterator[Progress]:
        then()
        return finish(self)

    monkeypatch.setattr(work, "_finish", late)


def compared_and_ended(bench: Workbench, stream: Stream) -> tuple[Verification, Iterator[Progress]]:
    """A verification that has ended, and the steps left to another process that compares in the same run."""
    first = verification(bench, stream)
    steps = first.steps()
    run = next(step.run for step in steps if step.phase == "draining")
    second = verification(bench, stream, run=run).steps()
    assert any(step.phase == "comparing" for step in second)
    list(steps)
    return first, second


class Live:
    """A table whose aggregator has registered what it declares, and its stream."""

    def __init__(self, *declarations: Any, founds: bool = True) -> None:
        self.bench = Workbench(declarations)
        if founds:
            self.bench.aggregator.handle({})
        self.stream = Stream(self.bench)

    def deliver(self) -> None:
        """Deliver what is new, and what that changes."""
        for _ in range(3):
            self.stream.deliver()

    def verify(self) -> Verification:
        return verify(self.bench, self.stream)


def read(bench: Workbench, declaration: Aggregate, **values: Any) -> tuple[dict[str, Any], bool]:
    client: Any = bench.table
    group = Counters(bench.table.name, client=client, clock=bench.clock).get(declaration, values, consistent=True)
    return dict(group.measures), group.complete


def mend(bench: Any, *declared: Any) -> None:
    """Have names folded otherwise, as a later version of the code may; then deploy declarations that say so."""
    known = read_registry(bench.store).names
    for each in declared:
        if each.name in known:
            bench.table.update_item(
                TableName=bench.table.name,
                Key=entry_key(each.name),
                UpdateExpression="SET definition = :new",
                ExpressionAttributeValues={":new": {"S": encode((definition(each),))}},
            )
    bench.deploy(declared)


@pytest.fixture
def bench() -> Workbench:
    """A table that counts something else already: 20 orders, delivered."""
    bench = Workbench([REVENUE], shards=3)
    for number in range(20):
        put(bench, number, 10)
    bench.deliver_all()
    return bench


class Older:
    """A client of a table that was there before its stream, by some minutes; both began `hours` before the bench."""

    def __init__(self, client: Any, minutes: int, hours: float = 0.0) -> None:
        self._client = client
        self._minutes = minutes
        self._hours = hours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_table(self, **request: Any) -> Any:
        told = self._client.describe_table(**request)["Table"]
        began = datetime(2026, 11, 20, 10, 0, 0, 123000, tzinfo=UTC) - timedelta(hours=self._hours)
        label = (began + timedelta(minutes=self._minutes)).replace(tzinfo=None).isoformat(timespec="milliseconds")
        return {"Table": {**told, "CreationDateTime": began, "LatestStreamLabel": label}}


def counted_from_now_on(minutes: int, hours: float = 0.0) -> tuple[Workbench, Stream]:
    """A table with two items, of whose stream only the second one's record is there still."""
    bench = Workbench([NUMBER])
    put(bench, 1, 10)
    stream = Stream(bench)
    stream.skip()
    put(bench, 2, 10)
    bench.aggregator = bench.process(Older(bench.table, minutes, hours))
    stream.deliver()
    return bench, stream


def test_a_table_that_was_there_before_its_stream_is_not_whole() -> None:
    bench, stream = counted_from_now_on(minutes=60)
    assert read(bench, NUMBER) == ({"orders": 0}, False)
    fill(bench, stream)
    assert read(bench, NUMBER) == ({"orders": 2}, True)


@pytest.mark.parametrize(("hours", "is_whole"), [(0, True), (22.5, True), (23.5, False), (24.5, False), (5000, False)])
def test_a_table_whose_stream_is_older_than_what_it_shows_is_not_whole(hours: float, *, is_whole: bool) -> None:
    bench, stream = counted_from_now_on(minutes=0, hours=hours)
    assert read(bench, NUMBER)[1] is is_whole
    if not is_whole:
        fill(bench, stream)
        assert read(bench, NUMBER) == ({"orders": 2}, True)


def spoil(bench: Workbench, declaration: Aggregate, measure: str, by: int, **values: str) -> None:
    [key] = ItemLayout(declaration).keys(group_key(declaration, values))
    bench.table.update_item(
        TableName=bench.table.name,
        Key=key,
        UpdateExpression="ADD #m :by",
        ExpressionAttributeNames={"#m": measure},
        ExpressionAttributeValues={":by": {"N": str(by)}},
    )


def test_a_baseline_that_was_added_before_its_process_died_is_not_added_again(bench: Workbench) -> None:
    bench.deploy([REVENUE, NUMBER])
    stream = Stream(bench)
    run = next(step.run for step in backfill(bench, stream).steps() if step.phase == "adding" and step.done)
    fill(bench, stream, run=run)
    assert read(bench, NUMBER) == ({"orders": 20}, True)


def test_a_count_that_is_right_has_no_differences_while_traffic_flows(bench: Workbench) -> None:
    stream = Stream(bench)
    verifying = verification(bench, stream, segments=2, page_items=5)
    for number, _ in enumerate(verifying.steps()):
        put(bench, 100 + number, 7, f"customer{number % 3}")
        delete(bench, number % 20)
        if number % 3 == 0:
            stream.deliver()
    assert (verifying.differences, verifying.compared > 3) == ([], True)


def test_a_run_consumes_no_more_units_a_second_than_it_may(bench: Workbench) -> None:
    bench.deploy([REVENUE, NUMBER])
    stream = Stream(bench)
    stream.deliver()
    begun = bench.clock()
    *_, last = backfill(bench, stream, units_per_second=0.02).steps()
    assert bench.clock() - begun >= last.units / 0.02 > 300


def test_a_sample_of_the_groups_is_compared_and_the_same_one_each_time(bench: Workbench) -> None:
    for number in range(40):
        put(bench, 100 + number, 1, f"customer{number}")
        spoil(bench, REVENUE, "total", 5, customer=f"customer{number}")
    stream = Stream(bench)
    stream.deliver()

    def compared(sample: float) -> tuple[int, set[str]]:
        verifying = verification(bench, stream, sample=sample)
        list(verifying.steps())
        return verifying.compared, {str(each.group) for each in verifying.differences}

    (few, some), (all_of_them, whole) = compared(0.3), compared(1.0)
    assert (5 < few < 25, all_of_them > 40, len(whole)) == (True, True, 40)
    assert some < whole
    assert compared(0.3) == (few, some)


def test_a_difference_that_another_process_has_repaired_is_not_repaired_again(bench: Workbench) -> None:
    spoil(bench, REVENUE, "total", 5, customer="ann")
    stream = Stream(bench)
    first, second = verify(bench, stream), verify(bench, stream)
    assert (first.repair(), second.repair(), first.repair()) == ((1, 0), (0, 1), (0, 1))
    assert verify(bench, stream).differences == []


def test_events_that_a_scan_takes_for_late_are_no_drift() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), retention=timedelta(days=20))
    assert [tier.name for tier in jobs._kept_tiers] == ["hour", "day"]
    bench = Workbench([jobs])
    bench.aggregator.handle({})
    stream = Stream(bench)
    for number in range(120):
        bench.counters.accept(job, {"id": number, "at": int(bench.clock())})
        stream.deliver()
        bench.clock.advance(5 * HOUR)
        bench.table.expire()
    # The hours of the first day that is kept are late until this one.
    oldest = datetime.fromtimestamp(bench.clock(), UTC) - timedelta(days=20)
    bucket = {"_tier": "D", "_bucket": oldest.date().isoformat()}
    [day] = [item for item in bench.table.items() if item["sk"]["S"].endswith(bucket["_bucket"])]
    key = {name: day[name] for name in ("pk", "sk")}
    one_more = {"UpdateExpression": "ADD h00 :by, h20 :by", "ExpressionAttributeValues": {":by": {"N": "1"}}}
    bench.table.update_item(TableName=bench.table.name, Key=key, **one_more)

    verifying = verification(bench, stream)
    for _ in verifying.steps():
        bench.counters.accept(job, {"id": -int(bench.clock()), "at": int(bench.clock())})
        bench.clock.advance(70)
        stream.deliver()

    assert [(each.group, each.missing) for each in verifying.differences] == [(bucket, {"h20": -1})]


def test_events_that_a_transaction_counts_long_after_the_cut_are_not_early() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), future_tolerance=timedelta(minutes=5))
    bench = Workbench([jobs])
    bench.aggregator.handle({})
    stream = Stream(bench)
    verifying = verification(bench, stream)
    for number, progress in enumerate(verifying.steps()):
        if progress.phase in (WAITING, SCANNING):
            bench.counters.record_once(job, {"id": number, "at": int(bench.clock())}, [jobs])
            bench.clock.advance(400)
        stream.deliver()
    assert (verifying.differences, verifying.compared > 0) == ([], True)
