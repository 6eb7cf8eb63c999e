"""`counters dev`: the CDK CLI that it runs, the counts and logs that it shows, who may ask its emulator for what."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from counters_cli import emulator as cdk
from counters_cli.dev import ChangedCounts, Logs, log_text
from counters_cli.dev_server import refusal
from counters_cli.emulator import Emulator, EmulatorError
from dynamodb_counters import Aggregate, Count, Event, Ranks, Sum, Window
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.cli.in_process import mistake, run


@pytest.fixture
def emulator(tmp_path: Path) -> Emulator:
    return Emulator(1, tmp_path, "KEY")


def write_cli(directory: Path, script: str) -> None:
    directory.mkdir(parents=True)
    cli = directory / "cdk"
    cli.write_text(f"#!/bin/sh\n{script}\n")
    cli.chmod(0o755)


def test_the_apps_own_cli_comes_first_then_the_one_on_the_path(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tmp_path / "project" / "infra"
    app.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(EmulatorError, match="npm install aws-cdk@2"):
        cdk.run(emulator, app, ["deploy"])
    write_cli(tmp_path / "bin", "echo path")
    assert cdk.run(emulator, app, ["deploy"]) == ["path"]
    write_cli(tmp_path / "project" / "node_modules" / ".bin", "echo own")
    assert cdk.run(emulator, app, ["deploy"]) == ["own"]


def test_a_failure_has_what_the_cli_printed_last(emulator: Emulator, tmp_path: Path) -> None:
    write_cli(tmp_path / "node_modules" / ".bin", "seq 0 99; exit 1")

    with pytest.raises(EmulatorError) as failed:
        cdk.deploy(emulator, tmp_path)

    assert str(failed.value) == "`cdk deploy` ended with status 1"
    assert failed.value.lines == [str(number) for number in range(40, 100)]


def test_the_cli_sees_the_emulator_never_the_users_account(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "mine")
    write_cli(tmp_path / "node_modules" / ".bin", 'env; echo "$@"')

    *environment, arguments = cdk.run(emulator, tmp_path, ["deploy", "Shop"], app="python app.py")

    assert {"AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ACCESS_KEY_ID=KEY"} <= {*environment}
    assert "NO_PROXY=127.0.0.1,localhost" in environment
    assert [line for line in environment if line.endswith("=mine")] == []
    assert arguments.startswith("deploy Shop --app python app.py --context single_shard_stream=true ")
    # As it is bootstrapped.
    assert " --context @aws-cdk/core:bootstrapQualifier=hnb659fds " in arguments


def test_sources_are_known_by_when_they_were_written(tmp_path: Path) -> None:
    app, page = tmp_path / "app.py", tmp_path / "site" / "index.html"
    page.parent.mkdir()
    app.touch()
    page.touch()
    before = cdk.source_files(tmp_path)
    assert {name for name, _ in before} == {"app.py", "site/index.html"}

    os.utime(app, ns=(0, 1))
    for name in (
        *("cdk.out/a.json", "node_modules/b.js", ".git/c.py", "env/pyvenv.cfg", "env/d.py", "__pycache__/e.py"),
        *("tests/f.py", "orders.jsonl", "test_app.py", "cdk.context.json"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert cdk.source_files(tmp_path) ^ before == {entry for entry in before if entry[0] == "app.py"} | {("app.py", 1)}


ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}")
SHOPS = Aggregate(
    "shops", ORDER, pk="SHOP#{shop}", sk="TOTAL", measures={"orders": Count(), "taken": Sum("price")}, write_shards=2
)
BOARD = Ranks("board", ORDER, score="price", least=0, most=9999)
HOURS = Window("hours", ORDER, pk="SHOP#{shop}", time="at", retention=timedelta(hours=48))


def test_only_groups_that_changed_are_shown_as_readers_see_them(moto_engine: Engine) -> None:
    create_table(moto_engine.client, "shop", expires=False)
    store = Store(moto_engine, "shop")
    counts = ChangedCounts(store.counters, moto_engine.streams)
    at = datetime.fromtimestamp(store.clock(), UTC).isoformat()
    for number in range(4):
        store.counters.accept(ORDER, {"shop": "a", "id": number, "price": 5, "at": at})
    store.deliver(store.inserts(), SHOPS, HOURS, *BOARD._parts)

    shops, hours, board = sorted(counts.new(), key=lambda answer: ("aggregate" not in answer, "window" not in answer))
    measures = {"orders": 4, "taken": 20}
    assert shops == {"aggregate": "shops", "values": {"shop": "a"}, "measures": measures, "complete": True}
    assert (hours["window"], hours["values"], hours["count"]) == ("hours", {"shop": "a"}, 4)
    assert (board["ranks"], board["rank"], board["of"], board["score"], board["ties"]) == ("board", 1, 4, 5, 4)
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
    assert log_text(message) == line


def test_without_app_or_emulator_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mistake(run("dev")) == "error: there is no cdk.json here: go to the app's directory\n"
    (tmp_path / "cdk.json").write_text("{}")
    monkeypatch.setattr("counters_cli.emulator.find_spec", lambda _: None)
    message = "error: the emulator is not installed: pip install 'dynamodb-counters[dev]'\n"
    assert mistake(run("dev")) == message


Headers = tuple[tuple[str, str], ...]
KEY = "LOCAL0123456789"
HOST = ("Host", "127.0.0.1:4566")
SCOPE = f"AWS4-HMAC-SHA256 Credential={KEY}/20261120/us-east-1/lambda/aws4_request"
SIGNED = ("Authorization", f"{SCOPE}, SignedHeaders=host")
API = "/_aws/execute-api/abc/$default/v1"
INVOKE = "/2015-03-31/functions/f/invocations"


def refused(path: str, *headers: tuple[str, str], query: str = "") -> str:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers]
    return refusal({"path": path, "query_string": query.encode(), "headers": pairs}, KEY)


@pytest.mark.parametrize(
    ("path", "headers", "query"),
    [
        *((INVOKE, (host, SIGNED), "") for host in (HOST, ("Host", "localhost"))),
        (INVOKE, (HOST, ("X-Amz-Security-Token", KEY)), ""),
        ("/bucket/key", (HOST,), f"X-Amz-Credential={KEY}%2F20261120%2Fus-east-1%2Fs3%2Faws4_request"),
        ("/bucket/key", (HOST,), f"X-Amz-Credential=000000000000%2F20261120&X-Amz-Security-Token={KEY}"),
        *((API, (HOST, ("Origin", f"http://{place}")), "") for place in ("127.0.0.1:4566", "localhost:3000")),
        *((path, (HOST,), "") for path in (API, "/_ministack/ready", "/_ministack/cfn-response/5f0c")),
    ],
)
def test_who_has_the_key_and_who_calls_an_api_of_the_app_gets_in(path: str, headers: Headers, query: str) -> None:
    assert refused(path, *headers, query=query) == ""


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        *(((("Host", f"{name}:4566"),), "Host") for name in ("rebound.example", "127.0.0.1.example", "a@127.0.0.1")),
        *((headers, "Host") for headers in ((), (HOST, ("Host", "rebound.example")))),
        *(((HOST, ("Origin", origin)), "Origin") for origin in ("https://a.com", "http://localhost.a.com", "null")),
        ((HOST, ("Origin", "http://127.0.0.1:4566"), ("Origin", "https://example.com")), "Origin"),
    ],
)
def test_a_foreign_host_or_origin_is_refused_everywhere_and_with_the_key(headers: Headers, message: str) -> None:
    for path in (INVOKE, API, "/_ministack/ready"):
        assert message in refused(path, *headers, SIGNED)


NO_API = [f"/_aws/execute-api{rest}" for rest in ("", "/abc", "//abc/x")] + ["/x/_aws/execute-api/abc/$default/"]
OTHERS = ["/", "/bucket/key", "/_ministack/reset", "/_ministack/health", "/restapis/abc/s/_user_request_/"]


@pytest.mark.parametrize("path", [INVOKE, *NO_API, *OTHERS])
@pytest.mark.parametrize("key", ["test", "000000000000", "", KEY[:-1], f"{KEY}x"])
def test_all_else_takes_the_key(path: str, key: str) -> None:
    other = ("Authorization", SIGNED[1].replace(KEY, key))
    assert "access key" in refused(path, HOST)
    assert "access key" in refused(path, HOST, other, ("X-Amz-Security-Token", key))
    assert "access key" in refused(path, HOST, query=f"X-Amz-Credential={key}%2F2026&X-Amz-Security-Token={key}")
