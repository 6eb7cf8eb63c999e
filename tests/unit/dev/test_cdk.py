"""The CDK CLI is found, sees nothing of the user's account, and its failure comes with what it printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dynamodb_counters._dev import cdk
from dynamodb_counters._dev.emulator import Emulator


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
    with pytest.raises(cdk.CdkError, match="npm install aws-cdk@2"):
        cdk.run(emulator, app, ["deploy"])
    write_cli(tmp_path / "bin", "echo path")
    assert cdk.run(emulator, app, ["deploy"]) == ["path"]
    write_cli(tmp_path / "project" / "node_modules" / ".bin", "echo own")
    assert cdk.run(emulator, app, ["deploy"]) == ["own"]


def test_a_failure_has_what_the_cli_printed_last(emulator: Emulator, tmp_path: Path) -> None:
    write_cli(tmp_path / "node_modules" / ".bin", "seq 0 99; exit 1")

    with pytest.raises(cdk.CdkError) as failed:
        cdk.deploy(emulator, tmp_path)

    assert str(failed.value) == "`cdk deploy` ended with status 1"
    assert failed.value.lines == [str(number) for number in range(40, 100)]


def test_the_cli_sees_the_emulator_never_the_users_account(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    write_cli(tmp_path / "node_modules" / ".bin", 'env; echo "$@"')

    *environment, arguments = cdk.run(emulator, tmp_path, ["deploy", "Shop"], app="python app.py")

    assert {"AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ACCESS_KEY_ID=KEY"} <= {*environment}
    assert not any(line.startswith("AWS_PROFILE") for line in environment)
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
        "cdk.out/a.json",
        "node_modules/b.js",
        ".git/c.py",
        "env/pyvenv.cfg",
        "env/d.py",
        "__pycache__/e.py",
        "tests/f.py",
        "orders.jsonl",
        "test_app.py",
        "cdk.context.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert cdk.source_files(tmp_path) ^ before == {entry for entry in before if entry[0] == "app.py"} | {("app.py", 1)}
