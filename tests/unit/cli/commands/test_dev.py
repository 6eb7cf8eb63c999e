"""`counters dev` refuses what it cannot run, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.in_process import run


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
