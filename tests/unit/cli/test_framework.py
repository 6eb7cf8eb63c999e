"""Options, exit codes, formats, and errors of one line."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import click
import pytest
from botocore import exceptions as aws

import dynamodb_counters
from dynamodb_counters.cli import main as cli
from dynamodb_counters.cli.output import number, progress_on, span
from dynamodb_counters.cli.session import Session, ending, shared
from dynamodb_counters.errors import CommitError, InvalidArgumentError
from tests.unit.cli.in_process import run


def test_help_lists_the_exit_codes_and_every_command_has_the_shared_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--help").code == 0
    assert "2 wrong input; 3 AWS refused" in " ".join(capsys.readouterr().out.split())
    for command in cli.counters.commands.values():
        leaves = command.commands.values() if isinstance(command, click.Group) else [command]
        for leaf in leaves:
            names = {name for parameter in leaf.params for name in parameter.opts}
            assert {"--table", "--json", "--profile", "--region", "--endpoint-url"} <= names
            assert leaf.help


_CLIENT_ERROR = aws.ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not you\nat all"}}, "GetItem")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (_CLIENT_ERROR, 3, "AWS refused GetItem: AccessDeniedException: not you at all"),
        (aws.NoCredentialsError(), 3, "Unable to locate credentials"),
        (aws.EndpointConnectionError(endpoint_url="http://x"), 3, 'Could not connect to the endpoint URL: "http://x"'),
        (aws.NoRegionError(), 2, "You must specify a region"),
        (aws.ProfileNotFound(profile="p"), 2, "The config profile (p) could not be found"),
        (CommitError([ValueError("x")]), 3, "1 item(s) not committed"),
        (InvalidArgumentError("x", 1, "2"), 2, "invalid x=1: expected 2"),
        (TimeoutError("throttled"), 3, "throttled"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (KeyError("x"), 70, "a fault of this program, KeyError: 'x'"),
    ],
)
def test_each_error_has_its_exit_code_and_one_line(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ending(error)[0] == code
    assert said in ending(error)[1]

    @click.command("fails")
    @shared
    def fails(session: Session) -> None:
        raise error

    monkeypatch.setitem(cli.counters.commands, "fails", fails)
    done = run("fails")
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)


def test_a_command_returns_the_exit_code_and_asks_before_destruction(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("destroy")
    @click.option("--yes", is_flag=True)
    @shared
    def destroy(session: Session, *, yes: bool) -> int:
        return 0 if session.confirm("destroy it?", yes=yes) else 1

    monkeypatch.setitem(cli.counters.commands, "destroy", destroy)
    assert run("destroy", "--yes").code == 0
    assert run("destroy", answer=lambda _: True).code == 0
    assert run("destroy", answer=lambda _: False).code == 1
    alone = run("destroy")
    assert (alone.code, "pass --yes" in alone.err) == (2, True)


def test_progress_is_lines_on_standard_error_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    @click.command("work")
    @shared
    def work(session: Session) -> None:
        nonlocal now
        with progress_on(session.err, session.clock, is_brief=True) as show:
            for done in range(0, 101, 20):
                show("counting", done, 100)
                now += 6

    monkeypatch.setitem(cli.counters.commands, "work", work)
    done = run("work", clock=lambda: now)
    assert (done.out, done.err) == ("", "counting: 40 of 100, 18 s left\ncounting: 80 of 100, 6 s left\n")
    seen = run("work", clock=lambda: now, terminal=True)
    assert seen.out == ""
    assert "counting" in seen.err


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    source = Path(dynamodb_counters.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "dynamodb_counters.cli.main", *arguments],
        env=os.environ | {"PYTHONPATH": str(source)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_as_a_process() -> None:
    helped = command("get", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "--endpoint-url URL" in helped.stdout
    nothing = command()
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "Commands:" in nothing.stderr
    away = command(
        *("get", "shops", "--table", "sales", "--endpoint-url", "http://127.0.0.1:9"), AWS_DEFAULT_REGION="us-east-1"
    )
    assert (away.returncode, away.stdout, away.stderr.count("\n")) == (3, "", 1)
    assert 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"' in away.stderr


@pytest.mark.parametrize(
    ("region", "said"),
    [("nowhere!", "a supported format"), pytest.param("", "Invalid endpoint", marks=pytest.mark.night)],
)
def test_a_region_that_is_none_is_one_line(region: str, said: str) -> None:
    refused = command("get", "shops", "--table", "sales", AWS_DEFAULT_REGION=region)
    assert (refused.returncode, refused.stderr.count("\n"), said in refused.stderr) == (2, 1, True), refused.stderr


def test_a_number_has_separators_and_few_decimals() -> None:
    shown = [number(value) for value in (12345, Decimal("0.10"), Decimal(10) / 3, None)]
    assert shown == ["12,345", "0.1", "3.3333", "-"]


def test_a_span_has_its_two_greatest_units() -> None:
    shown = [span(length) for length in (0.4, 59, 3600, 90_061, 86_460, 604_800)]
    assert shown == ["0 s", "59 s", "1 h", "1 d 1 h", "1 d", "7 d"]
