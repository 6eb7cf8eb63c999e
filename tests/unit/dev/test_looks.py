"""`counters dev` shows counts that changed and what functions log, and refuses what it cannot run, in one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum, Window
from dynamodb_counters._dev import deployed
from dynamodb_counters._dev.deployed import Function, FunctionLogs, TableCounts, shown
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.cli.in_process import run

ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}")
SHOPS = Aggregate(
    "shops", ORDER, pk="SHOP#{shop}", sk="TOTAL", measures={"orders": Count(), "taken": Sum("price")}, write_shards=2
)
ALL = Aggregate("all", ORDER, pk="ALL", sk="TOTAL", measures={"orders": Count()})
HOURS = Window("hours", ORDER, pk="SHOP#{shop}", time="at", retention=timedelta(hours=48))


@pytest.fixture
def store(moto_engine: Engine) -> Store:
    create_table(moto_engine.client, "shop", expires=False)
    return Store(moto_engine, "shop")


def accept(store: Store, **order: Any) -> None:
    at = datetime.fromtimestamp(store.clock(), UTC).isoformat()
    store.counters.accept(ORDER, {"price": 5, "at": at, **order})


def test_only_changes_are_shown_and_write_shards_are_added_up(store: Store) -> None:
    counts = TableCounts("shop", store.client, (SHOPS, HOURS))
    assert counts.changed() == {}
    for number in range(4):
        accept(store, shop="a", id=number)
    store.deliver(store.inserts(), SHOPS, HOURS)

    assert counts.changed() == {
        ("shops", (("shop", "a"),)): {"orders": 4, "taken": 20},
        ("hours", (("shop", "a"),)): {"total": 4},
    }
    assert counts.changed() == {}


def test_a_declaration_that_is_added_is_shown_with_the_next_look(store: Store) -> None:
    counts = TableCounts("shop", store.client, (SHOPS,))
    accept(store, shop="a", id=1)
    store.deliver(store.inserts(), SHOPS, ALL)
    assert [name for name, _ in counts.changed()] == ["shops"]

    counts.declared((SHOPS, ALL))

    assert counts.changed() == {("all", ()): {"orders": 1}}


def test_a_table_too_large_to_scan_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployed, "MOST_ITEMS", 2)
    for number in range(3):
        accept(store, shop="a", id=number)
    counts = TableCounts("shop", store.client, (SHOPS,))

    assert (counts.changed(), counts.is_too_large) == ({}, True)


def test_only_new_lines_for_people_are_shown() -> None:
    lines = ["START RequestId: 1", "hello\n"]

    class Logs:
        def get_paginator(self, _: str) -> Logs:
            return self

        def paginate(self, **_: Any) -> list[Any]:
            return [{"events": [{"message": line} for line in lines]}]

    function, logs = Function("Writer", "/writer"), FunctionLogs(Logs())
    assert list(logs.new([function])) == ["Writer  hello"]
    lines.append("END RequestId: 1")
    lines += ["again", "again"]
    assert list(logs.new([function])) == ["Writer  again"]
    lines += ["again", "hello"]
    assert list(logs.new([function])) == ["Writer  hello"]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("REPORT RequestId: 1\tDuration: 9 ms", ""),
        (json.dumps({"_aws": {"CloudWatchMetrics": []}, "Records": 1}), ""),
        (json.dumps({"type": "platform.report"}), ""),
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
    monkeypatch.setattr("dynamodb_counters._dev.cdk.find_cli", lambda _: ("cdk",))
    monkeypatch.setattr("dynamodb_counters._dev.emulator.find_spec", lambda _: None)
    (tmp_path / "cdk.json").write_text("{}")
    done = run("dev")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: the emulator is not installed: pip install 'cdk-dynamodb-counters[dev]'\n"
