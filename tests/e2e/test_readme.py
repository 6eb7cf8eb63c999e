"""The README's example runs as it stands: synthesized as an app, and counting in a table."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cost_model import Workload, bill, increment, per_million
from benchmarks.cost_page import WAYS, ratio
from dynamodb_counters import Counters
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._table import Table
from simulation.engines import Engine
from simulation.engines.tables import create_table

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text()
FIRST = README[: README.index("## Why")]
APP, USE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_app_synthesizes(tmp_path: Path) -> None:
    exec(APP.replace("App()", f"App(outdir={str(tmp_path)!r})"), {})
    assert "AWS::DynamoDB::GlobalTable" in (tmp_path / "Blog.template.json").read_text()


def test_the_example_counts(moto_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    client = moto_engine.client
    create_table(client, "blog")
    monkeypatch.setattr("dynamodb_counters._counters.make_client", lambda: client)
    known: dict[str, Any] = {"table_name": "blog"}
    exec(APP.split("app = App()")[0], known)
    lines = USE.splitlines()
    get, window = (next(line for line in lines if f".{name}(" in line) for name in ("get", "window"))
    exec("\n".join(line for line in lines if line not in (get, window)), known)

    images = client.scan(TableName="blog")["Items"]
    changes = [{"NewImage": image, "SequenceNumber": "1", "ApproximateCreationDateTime": 1.8e9} for image in images]
    Aggregator(Table("blog", client), (known["VIEWS"], known["LAST_24H"]), quarantine_retention_seconds=1e6).handle(
        {"Records": [{"eventName": "INSERT", "dynamodb": change} for change in changes], "shardId": "shardId-1"}
    )

    assert isinstance(known["counters"], Counters)
    assert eval(get, known) == 1
    as_of = "datetime(2026, 11, 20, 10, 0, tzinfo=UTC)"
    exec("from datetime import UTC, datetime", known)
    assert eval(window.replace("hours=24)", f"hours=24), as_of={as_of}").split("  #")[0], known) == 1


def test_the_first_screen_costs_what_the_model_says() -> None:
    rows = re.findall(r"(?m)^\| (.+?) \| ([\d.]+) \|$", FIRST)
    assert dict(rows) == {way: str(_cents(per_million(load, bill(load)))) for way, load in WAYS.items()}
    [dollars] = re.findall(r"plain increment, which is not exact, costs \$([\d.]+)\.", " ".join(FIRST.split()))
    plain = Workload(1000)
    assert _cents(per_million(plain, increment(plain))) == Decimal(dollars)


def test_a_small_table_costs_what_the_model_says() -> None:
    ratios = re.findall(r"([\d.]+) times (?:a plain increment )?at (\d+)", " ".join(FIRST.split()))
    assert [rate for _, rate in ratios] == ["1", "10", "100"]
    for times, rate in ratios:
        assert round(ratio(float(rate)), 1) == pytest.approx(float(times))


def _cents(dollars: float) -> Decimal:
    return Decimal(dollars).quantize(Decimal("0.01"), ROUND_HALF_UP)
