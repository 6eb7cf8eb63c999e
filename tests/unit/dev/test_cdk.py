"""The CDK CLI is found, and its failure comes with what it printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from dynamodb_counters._dev import cdk
from dynamodb_counters._dev.emulator import Emulator


def test_the_apps_own_cli_comes_first_then_the_one_on_the_path(tmp_path: Path) -> None:
    inner = tmp_path / "infra"
    inner.mkdir()
    found = {"cdk": "/bin/cdk"}

    assert cdk.find_cli(inner, found.get) == ("/bin/cdk",)

    own = tmp_path / "node_modules" / ".bin" / "cdk"
    own.parent.mkdir(parents=True)
    own.touch()
    assert cdk.find_cli(inner, found.get) == (str(own),)


def test_an_error_without_any_cli_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(cdk.CdkError, match="npm install aws-cdk@2"):
        cdk.find_cli(tmp_path, lambda _: None)


def test_a_failure_has_what_the_cli_printed_last(tmp_path: Path) -> None:
    printed = "\\n".join(map(str, range(100)))
    cli = (sys.executable, "-c", f"print('{printed}'); raise SystemExit(1)")
    emulator = Emulator(1, tmp_path, "KEY")

    with pytest.raises(cdk.CdkError) as failed:
        cdk.deploy(emulator, cdk.App(tmp_path, cli))

    assert str(failed.value) == "`cdk deploy` ended with status 1"
    assert failed.value.lines == [str(number) for number in range(40, 100)]


def test_the_emulated_cli_never_sees_the_users_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    show = "import os, sys; print(*(f'{k}={v}' for k, v in os.environ.items() if k[:4] == 'AWS_')); print(sys.argv)"
    emulator = Emulator(1, tmp_path, "KEY")

    seen = cdk.run(emulator, cdk.App(tmp_path, (sys.executable, "-c", show)), ["deploy", "Shop"])

    assert "AWS_ENDPOINT_URL=http://127.0.0.1:1" in seen[0]
    assert f"AWS_ACCESS_KEY_ID={emulator.key}" in seen[0]
    assert "production" not in seen[0]
    assert "'deploy', 'Shop'" in seen[1]
    assert "'--context', 'single_shard_stream=true'" in seen[1]


class Account:
    """An emulator that notes what is created."""

    account, region = "000000000000", "us-east-1"

    def __init__(self) -> None:
        self.created: list[str] = []

    def client(self, _: str) -> Any:
        return self

    def create_bucket(self, *, Bucket: str) -> None:  # noqa: N803
        self.created.append(Bucket)

    def put_parameter(self, *, Name: str, **_: Any) -> None:  # noqa: N803
        self.created.append(Name)


def test_it_is_bootstrapped_as_the_app_is_told(tmp_path: Path) -> None:
    account = Account()
    cdk.bootstrap(cast("Emulator", account))
    show = (sys.executable, "-c", "import sys; print(sys.argv)")
    [arguments] = cdk.run(Emulator(1, tmp_path, "KEY"), cdk.App(tmp_path, show), ["deploy"])

    assert account.created == ["cdk-hnb659fds-assets-000000000000-us-east-1", "/cdk-bootstrap/hnb659fds/version"]
    assert "'--context', '@aws-cdk/core:bootstrapQualifier=hnb659fds'" in arguments


def test_files_that_are_written_added_or_removed_are_reported_once(tmp_path: Path) -> None:
    app, page = tmp_path / "app.py", tmp_path / "site" / "index.html"
    page.parent.mkdir()
    app.write_text("1")
    page.write_text("a")
    files = cdk.SourceFiles(tmp_path)
    assert files.changed() == []

    app.write_text("2")
    os.utime(app, ns=(0, 1))
    page.unlink()
    (tmp_path / "more.py").touch()

    assert files.changed() == ["app.py", "more.py", "site/index.html"]
    assert files.changed() == []


def test_files_that_are_no_source_are_left_out(tmp_path: Path) -> None:
    files = cdk.SourceFiles(tmp_path)
    for name in (
        "cdk.out/a.json",
        "node_modules/b.js",
        ".git/c.py",
        "env/pyvenv.cfg",
        "env/d.py",
        "__pycache__/e.py",
        "tests/f.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for name in ("orders.jsonl", "test_app.py", "cdk.context.json"):
        (tmp_path / name).touch()

    assert files.changed() == []
