"""Dollars per month follow from the units and from one price file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from benchmarks import bill
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.dollars import ALARMS, BUSY_METRIC, IDLE_METRIC, METRICS, MONTH, function_dollars, idle
from dynamodb_counters._cost.functions import Function
from dynamodb_counters._cost.month_bill import Bill, bills
from dynamodb_counters._cost.workload_settings import FEWEST_PARTITIONS, Door, Workload
from dynamodb_counters._price_file import PRICES

_PROJECT = Path(__file__).parents[3]
_HOT = (Counted(50, skew=1.0),)


def _bill(title: str, load: Workload) -> Bill:
    return next(each for each in bills(load, PRICES.of) if each.title == title)


def test_dynamodb_is_its_units_at_their_price() -> None:
    found = _bill("naive increment", Workload(1000, _HOT))
    assert found.dollars["DynamoDB writes"] == pytest.approx(1000 * MONTH * 0.625e-6)
    own = _bill("this: accept + watermark", Workload(1000, _HOT))
    units = sum(stage.writes for stage in own.units.values())
    assert own.dollars["DynamoDB writes"] == pytest.approx(1000 * MONTH * units * 0.625e-6)
    assert own.total == pytest.approx(sum(own.dollars.values()))


@pytest.mark.parametrize("way", bill.WAYS, ids=lambda way: way.title)
def test_the_benchmark_has_the_same_bill(way: bill.Way) -> None:
    found = bill.bill_of(way, 10, 60, 600)
    *lines, total = found.values()
    assert total == pytest.approx(sum(lines))
    packed = 600 if way.design == "this: packed" else None
    load = Workload(10, _HOT, 150, gather=60, packed=packed, door=way.door, per_request=way.per_request)
    if way.direct:
        assert (found["SQS"], found["API Gateway"]) == (0, _bill("naive increment", load).dollars["API Gateway"])
    else:
        # The sizes of chunks are measured there.
        assert total == pytest.approx(_bill(way.design, load).total, rel=0.2 if packed else 1e-6)


def test_a_batch_of_requests_divides_the_door_by_its_events() -> None:
    single, many = (Workload(1000, _HOT, door="http", per_request=number) for number in (1, 100))
    one, hundred = (_bill("this: accept + watermark", load).dollars for load in (single, many))
    assert hundred["API Gateway"] == pytest.approx(one["API Gateway"] / 100)


@pytest.mark.parametrize(("runs", "traces"), [(0.5, 0.5), (1, 1.0), (11, 1.5)])
def test_one_invocation_per_second_and_a_twentieth_of_the_others_is_traced(runs: float, traces: float) -> None:
    used = [Function(runs / 2, 0.0, 1)] * 2
    found = [function_dollars(used, PRICES.of, tracing=tracing)["X-Ray"] for tracing in (True, False)]
    assert found == [pytest.approx(traces * MONTH * PRICES.of("xray.trace")), 0.0]


def test_the_consumer_of_a_queue_reads_what_a_duplicate_repeats() -> None:
    doors: tuple[Door, ...] = ("sdk", "queue")
    sdk, queue = (Workload(1000, _HOT, door=door, duplicates=0.5) for door in doors)
    assert (sdk.stages(1)["accept"].reads, queue.stages(1)["accept"].reads) == (0.0, 0.5)


def test_an_idle_queue_is_polled() -> None:
    found = _bill("this: accept + watermark", Workload(0.001, _HOT, door="queue")).dollars
    assert found["SQS"] == pytest.approx(21_600 * 730 / 24 * 0.4e-6, rel=0.02)


def test_alarms_and_metrics_are_those_of_the_constructs() -> None:
    snapshots = _PROJECT / "tests" / "snapshots"
    for name, plain, monitored in (
        ("StreamAggregator", "aggregator_minimal", "aggregator_monitored"),
        ("EventIngest", "ingest_minimal", "ingest_everything"),
    ):
        counts = tuple(
            sum(
                each["Type"] == "AWS::CloudWatch::Alarm"
                for each in json.loads((snapshots / f"{file}.json").read_text())["Resources"].values()
            )
            for file in (plain, monitored)
        )
        assert ALARMS[name] == counts
    documented = (_PROJECT / "docs" / "monitoring.md").read_text().partition("## Runtime metrics")[2]
    assert all(f"`{name}`" in documented for names in METRICS.values() for name in names)


def test_only_the_streams_mapping_has_metrics_that_are_billed() -> None:
    asked = {
        name: [
            each["Properties"].get("MetricsConfig")
            for each in json.loads((_PROJECT / "tests" / "snapshots" / f"{name}.json").read_text())[
                "Resources"
            ].values()
            if each["Type"] == "AWS::Lambda::EventSourceMapping"
        ]
        for name in ("aggregator_minimal", "ingest_minimal")
    }
    assert asked == {"aggregator_minimal": [{"Metrics": ["EventCount"]}], "ingest_minimal": [None]}
    assert {IDLE_METRIC, BUSY_METRIC}.isdisjoint(name for names in METRICS.values() for name in names)
    month = PRICES.of("cloudwatch.metric_month")
    rates = {1e-6: 1.0, 1.0: 5.0}
    for rate, metrics in rates.items():
        found = _bill("this: accept + watermark", Workload(rate, _HOT)).dollars["CloudWatch metrics"]
        assert found == pytest.approx(metrics * month, rel=0.02)


def test_an_idle_aggregator_costs_less_than_a_dollar_and_an_active_one_less_than_three() -> None:
    fixed = idle(Workload(0, _HOT), PRICES.of)
    assert fixed.keys() == {"StreamAggregator"}
    assert sum(fixed["StreamAggregator"].values()) <= 1
    active = _bill("this: accept + watermark", Workload(1.0, _HOT)).dollars
    assert active["CloudWatch alarms"] + active["CloudWatch metrics"] <= 3
    hardly = _bill("this: accept + watermark", Workload(1e-6, _HOT)).total
    assert hardly == pytest.approx(sum(fixed["StreamAggregator"].values()), rel=0.01)


def test_the_fixed_part_is_in_the_bill_of_any_rate() -> None:
    for door in get_args(Door):
        load = Workload(1000, _HOT, door=door, monitoring=True, dashboard=True, tracing=True)
        bill = _bill("this: accept + watermark", load)
        for dollars in idle(load, PRICES.of).values():
            assert all(bill.dollars[service] >= fixed for service, fixed in dollars.items())
        assert bill.dollars["CloudWatch dashboards"] == 3 * len(idle(load, PRICES.of))


def test_partitions_follow_from_the_rate() -> None:
    assert Workload(1, _HOT).shards() == FEWEST_PARTITIONS
    assert Workload(100_000, (Counted(1),)).shards() == 144
    assert Workload(100_000, (Counted(1),), partitions=7).shards() == 7
    assert Workload(100_000, _HOT, packed=5_000).shards() < 20


def test_a_batch_holds_the_tables_own_changes() -> None:
    full = Workload(10_000, (Counted(10**6),), partitions=4, batch=1000)
    assert full.batches(4).events == pytest.approx(500, rel=0.01)
    packed = Workload(100_000, (Counted(10**6),), partitions=4, batch=1000, packed=64)
    # 58 chunks, and 16 changes for each, the quarter of 64 that comes to their shard.
    assert packed.batches(4).events == pytest.approx(64 * 1000 / 17, rel=0.01)


def test_prices_stand_in_one_place() -> None:
    """No file of Python has a price of the list as a number."""
    numbers = {f"{each['dollars']:.10f}".rstrip("0") for _, _, each in _price_file() if 0 < each["dollars"] < 1}
    rare = numbers & {"0.625", "0.0000133334"}
    assert rare == {"0.625", "0.0000133334"}
    found = [
        path.relative_to(_PROJECT)
        for root in ("lambdas", "infra", "benchmarks", "simulation", "demo")
        for path in (_PROJECT / root).rglob("*.py")
        if any(number in path.read_text() for number in rare)
    ]
    assert found == []


def test_every_price_has_its_source_and_how_it_was_checked() -> None:
    assert PRICES.region == "us-east-1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", PRICES.date)
    for name, source, price in _price_file():
        assert source.startswith("https://aws.amazon.com/"), name
        assert price["checked"].startswith(("list, 20", "page, 20")), name


def test_the_page_shows_the_price_file() -> None:
    page = (_PROJECT / "docs" / "cost.md").read_text()
    assert f"as of {PRICES.date}, in {PRICES.region}" in page
    for name, source, price in _price_file():
        dollars = f"{price['dollars']:.10f}".rstrip("0").rstrip(".") + (" per million" if price["per"] > 1 else "")
        assert f"| [`{name}`]({source}) | {dollars} | {price['checked']} |" in page


def _price_file() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, source and content of each price as it stands in the file."""
    content = tomllib.loads((_PROJECT / "lambdas" / "dynamodb_counters" / "prices.toml").read_text())
    for name in PRICES.prices:
        service, _, key = name.partition(".")
        yield name, content[service]["source"], content[service][key]
