"""`counters dev` shows counts that changed and what functions log, and refuses what it cannot run, in one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum, Window
from dynamodb_counters._dev.deployed import ChangedCounts, Logs, shown
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.cli.in_process import run

ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}")
SHOPS = Aggregate(
    "shops", ORDER, pk="SHOP#{shop}", sk="TOTAL", measures={"orders": Count(), "taken": Sum("price")}, write_shards=2
)
HOURS = Window("hours", ORDER, pk="SHOP#{shop}", time="at", retention=timedelta(hours=48))


@pytest.fixture
def store(moto_engine: Engine) -> Store:
    create_table(moto_engine.client, "shop", expires=False)
    return Store(moto_engine, "shop")


def accept(store: Store, **order: Any) -> None:
    at = datetime.fromtimestamp(store.clock(), UTC).isoformat()
    store.counters.accept(ORDER, {"price": 5, "at": at, **order})


def test_only_groups_that_changed_are_shown_as_readers_see_them(store: Store, moto_engine: Engine) -> None:
    counts = ChangedCounts(store.counters, moto_engine.streams)
    for number in range(4):
        accept(store, shop="a", id=number)
    store.deliver(store.inserts(), SHOPS, HOURS)

    shops, hours = counts.new()
    measures = {"orders": 4, "taken": 20}
    assert shops == {"aggregate": "shops", "values": {"shop": "a"}, "measures": measures, "complete": True}
    assert (hours["window"], hours["values"], hours["count"]) == ("hours", {"shop": "a"}, 4)
    assert list(counts.new()) == []


def test_only_new_lines_for_people_are_shown() -> None:
    lines = ["START RequestId: 1", "hello\n"]

    class Client:
        def get_paginator(self, _: str) -> Client:
            return self

        def paginate(self, *, logGroupName: str) -> list[Any]:  # noqa: N803
            assert logGroupName == "/writer"
            return [{"events": [{"message": line} for line in lines]}]

    function, logs = {"FunctionName": "Writer", "LoggingConfig": {"LogGroup": "/writer"}}, Logs(Client())
    assert logs.new(function) == ["Writer  hello"]
    lines += ["END RequestId: 1", "again"]
    assert logs.new(function) == ["Writer  again"]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("REPORT RequestId: 1\tDuration: 9 ms", ""),
        (json.dumps({"_aws": {"CloudWatchMetrics": []}, "Records": 1}), ""),
        (json.dumps({"level": "ERROR", "message": "no such url", "xray": "1"}), "ERROR no such url"),
        (json.dumps({"errorMessage": "boom", "errorType": "ValueError"}), "boom"),
        (json.dumps({"plain": 1}), '{"plain": 1}'),
        ("[1]", "[1]"),
        ("text\n", "text"),
    ],
)
def test_a_message_is_shown_as_one_reads_it(message: str, line: str) -> None:
    assert shown(message) == line


def test_without_an_app_it_says_where_one_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("dev")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: there is no cdk.json here: go to the app's directory\n"


def test_without_the_emulator_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dynamodb_counters._dev.emulator.find_spec", lambda _: None)
    (tmp_path / "cdk.json").write_text("{}")
    done = run("dev")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: the emulator is not installed: pip install 'cdk-dynamodb-counters[dev]'\n"
