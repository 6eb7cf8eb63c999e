"""Backfills: what a table held before an aggregate was declared is counted, while writers go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Items, Sum, Window
from dynamodb_counters._backfill.runner import SCANNING, WAITING, Progress
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._timeline.tiers import HOUR
from simulation.world import World, reach

ORDER = Items("order", where=Attr("customer").exists())
NUMBER = Aggregate("orders", ORDER, pk="ORDERS", sk="NUMBER", measures={"orders": Count()})
REVENUE = Aggregate("revenue", ORDER, pk="CUSTOMER#{customer}", sk="REVENUE", measures={"total": Sum("price")})


class Orders(World):
    """A table of orders, of which some are `sold`."""

    number = 0

    def __init__(self, *declared: Any, sold: int = 0, **options: Any) -> None:
        super().__init__(*declared, **options)
        if sold:
            self.sell(sold)

    def order(self, number: int, price: int = 10, customer: str = "ann", **more: Any) -> None:
        self.put(f"ORDER#{number}", "ORDER", customer=customer, price=price, **more)

    def cancel(self, *numbers: int) -> None:
        for number in numbers:
            self.table.delete_item(TableName=self.name, Key={"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "ORDER"}})

    def sell(self, count: int = 1, price: int = 10, customer: str = "ann") -> None:
        """Put orders, and deliver them."""
        for _ in range(count):
            self.number += 1
            self.order(self.number, price, customer)
        self.settle()


def compared_and_ended(world: World) -> tuple[Verification, Iterator[Progress]]:
    """A verification that has ended, and the steps left to another process that compares in the same run."""
    first = world.verification()
    steps = first.steps()
    second = world.verification(run=reach(steps, "draining").run).steps()
    reach(second, "comparing")
    list(steps)
    return first, second


@pytest.fixture
def world() -> Orders:
    """A table that counts something else already: 20 orders, delivered."""
    world = Orders(REVENUE, shards=3)
    for number in range(20):
        world.order(number)
    world.deliver_all()
    world.skip()
    return world


class Older:
    """A client of a table that was there before its stream, by some minutes; both began `hours` before the world."""

    def __init__(self, client: Any, minutes: int, hours: float = 0.0) -> None:
        self._client = client
        self._minutes = minutes
        self._hours = hours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_table(self, **request: Any) -> Any:
        described = self._client.describe_table(**request)["Table"]
        began = datetime(2026, 11, 20, 10, 0, 0, 123000, tzinfo=UTC) - timedelta(hours=self._hours)
        label = (began + timedelta(minutes=self._minutes)).replace(tzinfo=None).isoformat(timespec="milliseconds")
        return {"Table": {**described, "CreationDateTime": began, "LatestStreamLabel": label}}


@pytest.mark.parametrize(
    ("minutes", "hours", "is_whole"),
    [(60, 0, False), (0, 0, True), (0, 22.5, True), (0, 23.5, False), (0, 24.5, False), (0, 5000, False)],
)
def test_a_table_that_is_older_than_what_its_stream_shows_is_not_whole(
    minutes: int, hours: float, *, is_whole: bool
) -> None:
    world = Orders(NUMBER, founds=False)
    world.order(1)
    world.skip()
    world.order(2)
    world.aggregator = world.process(Older(world.table, minutes, hours))
    world.deliver_new()
    assert world.read(NUMBER)[1] is is_whole
    if not is_whole:
        world.fill()
        assert world.read(NUMBER) == ({"orders": 2}, True)


def test_a_baseline_that_was_added_before_its_process_died_is_not_added_again(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    run = next(step.run for step in world.backfill().steps() if step.phase == "adding" and step.done)
    world.fill(run=run)
    assert world.read(NUMBER) == ({"orders": 20}, True)


def test_a_count_that_is_right_has_no_differences_while_traffic_flows(world: Orders) -> None:
    verifying = world.verification(segments=2, page_items=5)
    for number, _ in enumerate(verifying.steps()):
        world.order(100 + number, 7, f"customer{number % 3}")
        world.cancel(number % 20)
        if number % 3 == 0:
            world.deliver_new()
    assert (verifying.differences, verifying.compared > 3) == ([], True)


def test_a_run_consumes_no_more_units_a_second_than_it_may(world: Orders) -> None:
    world.deploy(REVENUE, NUMBER)
    world.deliver_new()
    begun = world.clock()
    *_, last = world.backfill(units_per_second=0.02).steps()
    assert world.clock() - begun >= last.units / 0.02 > 300


def test_a_sample_of_the_groups_is_compared_and_the_same_one_each_time(world: Orders) -> None:
    for number in range(40):
        world.order(100 + number, 1, f"customer{number}")
        world.spoil(REVENUE, "total", 5, customer=f"customer{number}")
    world.deliver_new()

    def compared(sample: float) -> tuple[int, set[str]]:
        verifying = world.verification(sample=sample)
        list(verifying.steps())
        return verifying.compared, {str(each.group) for each in verifying.differences}

    (few, some), (all_of_them, whole) = compared(0.3), compared(1.0)
    assert (5 < few < 25, all_of_them > 40, len(whole)) == (True, True, 40)
    assert some < whole
    assert compared(0.3) == (few, some)


def test_a_difference_that_another_process_has_repaired_is_not_repaired_again(world: Orders) -> None:
    world.spoil(REVENUE, "total", 5, customer="ann")
    first, second = world.verify(), world.verify()
    assert (first.repair(), second.repair(), first.repair()) == ((1, 0), (0, 1), (0, 1))
    assert world.missing() == []


def test_events_that_a_scan_takes_for_late_are_no_drift() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), retention=timedelta(days=20))
    assert [tier.name for tier in jobs._kept_tiers] == ["hour", "day"]
    world = World(jobs)
    for number in range(120):
        world.accept(job, {"id": number, "at": int(world.clock())})
        world.deliver_new()
        world.clock.advance(5 * HOUR)
        world.table.expire()
    # The hours of the first day that is kept are late until this one.
    oldest = datetime.fromtimestamp(world.clock(), UTC) - timedelta(days=20)
    bucket = {"_tier": "D", "_bucket": oldest.date().isoformat()}
    [day] = [item for item in world.table.items() if item["sk"]["S"].endswith(bucket["_bucket"])]
    world.write({**day, **{name: {"N": str(int(day.get(name, {"N": "0"})["N"]) + 1)} for name in ("h00", "h20")}})

    verifying = world.verification()
    for _ in verifying.steps():
        world.accept(job, {"id": -int(world.clock()), "at": int(world.clock())})
        world.clock.advance(70)
        world.deliver_new()

    assert [(each.group, each.missing) for each in verifying.differences] == [(bucket, {"h20": -1})]


def test_events_that_a_transaction_counts_long_after_the_cut_are_not_early() -> None:
    job = Event("job", pk="JOB#{id}", sk="JOB")
    jobs = Window("jobs", job, pk="ALL", time="at", longest=timedelta(days=20), future_tolerance=timedelta(minutes=5))
    world = World(jobs)
    verifying = world.verification()
    for number, progress in enumerate(verifying.steps()):
        if progress.phase in (WAITING, SCANNING):
            world.counters.record_once(job, {"id": number, "at": int(world.clock())}, [jobs])
            world.clock.advance(400)
        world.deliver_new()
    assert (verifying.differences, verifying.compared > 0) == ([], True)
