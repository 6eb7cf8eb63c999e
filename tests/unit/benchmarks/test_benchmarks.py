"""The cost of a month, as replayed and on its page; benchmarks end, with a result for every goal."""

from __future__ import annotations

import json
import os
import re
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost_model, cost_page, page
from benchmarks.cost_model import ALARMS, FILE, SERVICES, Workload, bill, fixed, increment, per_million
from benchmarks.cost_page import WAYS, ratio
from benchmarks.goals import GOALS
from benchmarks.run import TINY, measure_engine, run
from dynamodb_counters import Event, Packed
from dynamodb_counters._items.schema import item_bytes
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.world import World

_PROJECT = Path(__file__).parents[3]
_README = (_PROJECT / "README.md").read_text()
FIRST = _README[: _README.index("## Why")]

REPLAYED = {
    0.01: {"DynamoDB writes": 0.04105, "DynamoDB reads": 0.01059, "Lambda": 0.01478 + 0.02981},
    1.0: {"DynamoDB writes": 3.301, "DynamoDB reads": 0.04216, "Lambda": 0.8489 + 1.356},
    10.0: {"DynamoDB writes": 32.49, "DynamoDB reads": 0.04346, "Lambda": 3.165 + 5.12},
}
"""Dollars of a month by events per second in 50 groups, replayed with the real writer and handler, echoes included."""


@pytest.mark.parametrize("rate", REPLAYED)
def test_a_month_costs_what_a_replay_costs(rate: float) -> None:
    dollars = bill(Workload(rate))
    always = fixed("sdk")["StreamAggregator"]
    for service, replayed in REPLAYED[rate].items():
        assert dollars[service] - always[service] == pytest.approx(replayed, rel=0.05), service


def test_the_fixed_part_is_in_every_bill() -> None:
    aggregator = fixed("sdk")["StreamAggregator"]
    assert sum(aggregator.values()) <= 1
    assert sum(bill(Workload(1e-6)).values()) == pytest.approx(sum(aggregator.values()), rel=0.01)


def test_alarms_are_those_of_the_constructs() -> None:
    for name, template in (("StreamAggregator", "aggregator_minimal"), ("EventIngest", "ingest_minimal")):
        document = json.loads((_PROJECT / "tests" / "snapshots" / f"{template}.json").read_text())
        kinds = [resource["Type"] for resource in document["Resources"].values()]
        assert kinds.count("AWS::CloudWatch::Alarm") == ALARMS[name]


def test_writers_and_tenants_cost_what_was_measured() -> None:
    accepting = [Workload(1000, packed=1000, writers=n).stages(4)["accept"].writes for n in (1, 2, 8, 32)]
    assert [units / accepting[0] for units in accepting] == pytest.approx([1, 1.05, 1.35, 2.6], rel=0.03)
    single, many = (Workload(1000, packed=5000, tenants=n).stages(4)["accept"] for n in (1, 10_000))
    assert many.writes / single.writes > 30


def test_chunks_are_as_long_as_those_of_the_default() -> None:
    event, world = Event("view", key=("time", "id"), packed=Packed("time")), World()
    start = int(world.clock()) // 600 * 600
    world.accept(event, *({"time": start, "id": sha256(str(number).encode()).hexdigest()} for number in range(1000)))
    longest = max(item_bytes(item) for item in world.items("view#pack"))
    assert pytest.approx(longest, rel=0.05) == cost_model._CHUNK_MOST


def test_no_flush_is_larger_than_what_one_of_two_consumers_takes() -> None:
    for name, load in (WAYS | cost_page.doors()).items():
        shared = min(load.rate * load.gather / 2, 1000 * load.per_request)
        assert load.packed is None or load.door == "sdk" or load.packed <= shared, name


def test_the_page_is_what_the_model_gives() -> None:
    assert (_PROJECT / "docs" / "benchmarks.md").read_text().startswith(cost_page.text() + cost_page.MEASURED)


def test_prices_stand_in_one_place() -> None:
    """No file of Python has a price of the list as a number."""
    paths = [
        path.relative_to(_PROJECT)
        for root in ("lambdas", "infra", "benchmarks", "simulation", "demo")
        for path in (_PROJECT / root).rglob("*.py")
        if any(number in path.read_text() for number in ("0.625", "0.0000133334"))
    ]
    assert paths == []


def test_every_price_has_its_source_and_how_it_was_checked() -> None:
    assert FILE["region"] == "us-east-1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(FILE["date"]))
    for name, service in SERVICES.items():
        assert service["source"].startswith("https://aws.amazon.com/"), name
        for price in service.values():
            assert isinstance(price, str) or price["checked"].startswith(("list, 20", "page, 20")), name


def test_the_first_screen_costs_what_the_model_says() -> None:
    rows = dict(re.findall(r"(?m)^\| (.+?) \| ([\d.]+) \|$", FIRST))
    assert len(rows) == 3
    assert rows == {way: str(_cents(per_million(load, bill(load)))) for way, load in WAYS.items() if way in rows}
    [dollars] = re.findall(r"plain increment, which is not exact, costs \$([\d.]+)\.", " ".join(FIRST.split()))
    plain = Workload(1000)
    assert _cents(per_million(plain, increment(plain))) == Decimal(dollars)


def test_a_small_table_costs_what_the_model_says() -> None:
    ratios = re.findall(r"([\d.]+) times (?:a plain increment )?at (\d+)", " ".join(FIRST.split()))
    assert [rate for _, rate in ratios] == ["1", "100"]
    for times, rate in ratios:
        assert round(ratio(float(rate)), 1) == pytest.approx(float(times))


def _cents(dollars: float) -> Decimal:
    return Decimal(dollars).quantize(Decimal("0.01"), ROUND_HALF_UP)


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(TINY, print, lambda _: None, with_engine=False)


@pytest.mark.skipif(os.environ.get("ENGINES") != "all", reason="`make engines` runs it")
def test_the_section_on_dynamodb_local_ends(dynamodb_local_engine: DynamoDBLocal) -> None:
    report: dict[str, Any] = {"windows": {}}
    section = measure_engine(dynamodb_local_engine, TINY.engine, report)

    assert all(design["exact"] for design in section["designs"].values())
    assert report["windows"]["engine"]["packed_buckets"]["exact"]


def test_every_goal_that_is_not_met_stands_on_the_page() -> None:
    text = (_PROJECT / "docs" / "benchmarks.md").read_text()
    named = [line.partition(":")[0] for line in GOALS.strip().splitlines()]
    [(met, count)] = re.findall(r"^(\d+) of (\d+) goals", text, re.MULTILINE)
    assert int(count) == len(named)
    not_met = text.partition("\n| lately |")[0]
    assert sum(f"\n| {name} |" in not_met for name in named) == len(named) - int(met)


@pytest.mark.night
def test_every_section_ends_and_every_goal_has_a_result(report: dict[str, Any]) -> None:
    assert report["failed"] == {}
    assert len(report["goals"]) > 15
    for goal in report["goals"].values():
        assert set(goal) == {"value", "goal", "met", "before"}
        assert isinstance(goal["met"], bool)


@pytest.mark.night
def test_our_counts_are_exact_under_redelivery_and_careless_ones_are_not(report: dict[str, Any]) -> None:
    cost = report["cost"]
    errors = {name: design["error_percent"] for name, design in cost["redelivered"].items()}
    exact = ("packed", "accept_and_watermark", "transaction_marker", "checkpoint_transaction")
    assert {errors[name] for name in exact} == {0.0}
    assert errors["naive_increment"] > 0
    # When nothing comes twice, every design is exact.
    once = [*cost["hot"].values(), report["windows"]["memory"]["packed_buckets"]]
    once += [design for name, design in cost.items() if name.startswith("log_three_aggregates_packed")]
    assert all(design["exact"] for design in [*once, report["leaderboard"]["accept_and_watermark"]])


@pytest.mark.night
def test_the_page_and_its_figures_are_written(report: dict[str, Any], tmp_path: Path) -> None:
    page.write(report, tmp_path)

    text = (tmp_path / "benchmarks.md").read_text()
    for figure in (tmp_path / "figures").iterdir():
        assert f"figures/{figure.name}" in text
    not_met = text.partition("| lately |")[0]
    assert [name for name, goal in report["goals"].items() if (f"| {name} |" in not_met) is goal["met"]] == []
    assert page.terminal(report)
