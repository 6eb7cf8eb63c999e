"""Commands, against the library and wrong input; their options, exit codes and formats; errors of one line."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import click
import pytest
from botocore import exceptions as aws

import dynamodb_counters
from counters_cli import main as cli
from counters_cli.output import number, progress_on, span
from counters_cli.session import Session, command, ending
from counters_lambda.counting.commit import checkpoint_key
from dynamodb_counters.errors import CommitError, InvalidArgumentError
from dynamodb_counters.exactly_once import shard_digest
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import failing
from simulation.memory_table import MemoryTable
from tests.unit.cli.blog import URLS, VIEW, Blog, mappings, seeded
from tests.unit.cli.in_process import Done, mistake, run


@pytest.fixture(scope="module")
def blog() -> Blog:
    return seeded()


def counters(blog: Blog, *arguments: str, **outside: Any) -> Done:
    outside = {"client": blog.clients["dynamodb"], "clients": blog.clients, "clock": blog.clock} | outside
    return run("--table", "blog", *arguments, **outside)


def test_the_table_is_named_before_the_command_or_after_it_or_in_the_environment(
    blog: Blog, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, outside = ("get", "pages", "url=/about"), {"client": blog.clients["dynamodb"], "clock": blog.clock}
    expected = counters(blog, *arguments).out
    assert mistake(run(*arguments, **outside)) == "error: no table: name it with --table, or in COUNTERS_TABLE\n"
    monkeypatch.setenv("COUNTERS_TABLE", "other")
    assert counters(blog, *arguments).out == run(*arguments, "--table", "blog", **outside).out == expected
    monkeypatch.setenv("COUNTERS_TABLE", "blog")
    assert run(*arguments, **outside).out == expected


def test_a_table_that_nothing_counts_is_refused() -> None:
    done = run("get", "pages", "--table", "empty", client=MemoryTable(VirtualClock(), name="empty"))
    assert mistake(done) == "error: nothing counts the table yet: deploy its aggregator\n"


@pytest.mark.parametrize(
    ("listed", "arguments"),
    [
        ("groups", ("get", "phones", "time:day=2026-11-20")),
        ("groups", ("get", "pages", "--scan")),
        ("events", ("events", "view", "url=/about", "device=phone")),
    ],
)
def test_pages_add_up_to_all_there_is(blog: Blog, listed: str, arguments: tuple[str, ...]) -> None:
    every = counters(blog, *arguments, "--all", "--json").document
    assert every["next"] is None
    assert counters(blog, *arguments, "--all", "--limit", "5", "--json").document == every
    pages, follow = [], tuple[str, ...]()
    while True:
        page = counters(blog, *arguments, "--limit", "5", *follow, "--json")
        pages += page.document[listed]
        if page.document["next"] is None:
            break
        assert f"there are more: --next {page.document['next']}, or --all" in page.err
        follow = ("--next", page.document["next"])
    assert pages == every[listed]
    if listed == "groups":
        assert {group["values"]["url"] for group in pages} == {*URLS}
    else:
        events = blog.counters.events(VIEW, {"url": "/about"})
        assert pages == [event for event in events if event["device"] == "phone"]


REFUSED = aws.ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not you\nat all"}}, "Operation")


@pytest.mark.parametrize(
    ("service", "call"),
    [("dynamodb", "describe_table"), ("dynamodb", "describe_time_to_live"), ("dynamodbstreams", "describe_stream")],
)
def test_describe_says_what_it_may_not_read(blog: Blog, service: str, call: str) -> None:
    refusing = failing(blog.clients[service], call, error=REFUSED)
    done = counters(blog, "describe", clients=blog.clients | {service: refusing})
    assert (done.code, done.out) == (3, "")
    assert done.err == "error: AWS refused Operation: AccessDeniedException: not you at all\n"


def test_describe_says_that_it_may_not_read_functions(blog: Blog) -> None:
    refusing = Mock(**{"get_paginator.side_effect": REFUSED})
    lines = problems(blog, clients=blog.clients | {"lambda": refusing})
    assert "AWS refused Operation: AccessDeniedException: not you at all" in lines


@pytest.mark.parametrize("starts", [[], ["LATEST"], ["TRIM_HORIZON"] * 2, ["TRIM_HORIZON"]])
def test_describe_warns_of_mappings_that_lose_records(blog: Blog, starts: list[str]) -> None:
    lines = problems(blog, clients=blog.clients | {"lambda": mappings(*starts, "of another function")})
    expected = [] if starts == ["TRIM_HORIZON"] else [f"to aggregators, {starts}: expected one, from TRIM_HORIZON"]
    assert [line[line.index("to aggr") :] for line in lines if "mappings" in line] == expected


def test_describe_names_what_would_expire(blog: Blog) -> None:
    disabled = {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    with patch.object(blog.clients["dynamodb"], "describe_time_to_live", lambda **_: disabled):
        [problem] = [line for line in problems(blog) if "TTL" in line]
    assert problem == "TTL is disabled: pace, site, view would expire, but stay"
    assert not [line for line in problems(blog) if "TTL" in line]


def problems(blog: Blog, **outside: Any) -> list[str]:
    return list(counters(blog, "describe", "--json", **outside).document["problems"])


def checkpoints(blog: Blog) -> dict[str, str | None]:
    shards = counters(blog, "describe", "--json").document["shards"]
    return {shard["shard"]: shard["checkpoint moved"] for shard in shards}


@pytest.mark.parametrize("spoiled", [{"applied_through": {"S": "x"}}, {"shard": {"S": "other"}}])
def test_describe_warns_of_a_malformed_checkpoint(blog: Blog, spoiled: dict[str, Any]) -> None:
    client, shard = blog.clients["dynamodb"], blog.shards[1]
    key = checkpoint_key(shard_digest(shard))
    item = client.get_item(TableName="blog", Key=key)["Item"]
    try:
        client.put_item(TableName="blog", Item=item | spoiled)
        [malformed, *_] = problems(blog)
        assert malformed.startswith(f"the item {key['pk']['S']!r}, 'CHECKPOINT' is malformed: delete it, then run")
        assert [shard] == [name for name, moved in checkpoints(blog).items() if moved is None]
        client.delete_item(TableName="blog", Key=key)
        assert [shard] == [name for name, moved in checkpoints(blog).items() if moved is None]
    finally:
        client.put_item(TableName="blog", Item=item)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "pages"), "expected True, for a Scan that takes"),
        (("get", "pages", "a"), "'a' is no field=value"),
        (("get", "pages", "url=a", "url=b"), "the field 'url' is given twice"),
        (("get",), "Missing argument 'NAME'."),
        (("repair",), "No such command 'repair'."),
        (("get", "pages", "--tabel", "x"), "No such option '--tabel'. (Did you mean one of: "),
        (("get", "pages", "--table", "nothing"), "Query found nothing of that name in this region"),
        (("get", "site", "--last", "1"), "invalid last='1': expected a number and a unit such as 30s"),
        (("get", "site", "--since", "yesterday"), "'yesterday': expected ISO 8601"),
        (("get", "speed", "--top"), "no ranking 'speed' is declared; there is: pages"),
        (("get", "pages", "--step", "1h"), "no series 'pages' is declared; there is: pace, site"),
        (("events", "views"), "no event 'views' is declared; there is: view"),
        (("events", "view", "url=/", "--since", "2026-11-20"), "expected a field of 'view': url"),
    ],
)
def test_wrong_input_is_one_line(blog: Blog, arguments: tuple[str, ...], message: str) -> None:
    assert message in mistake(counters(blog, *arguments))


def test_help_lists_the_exit_codes_and_every_command_has_the_shared_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help").code == 0
    assert "2 wrong input; 3 AWS refused" in " ".join(capsys.readouterr().out.split())
    for entry in cli.counters.commands.values():
        leaves = entry.commands.values() if isinstance(entry, click.Group) else [entry]
        for leaf in leaves:
            names = {name for parameter in leaf.params for name in parameter.opts}
            assert {"--table", "--json", "--profile", "--region", "--endpoint-url"} <= names
            assert leaf.help


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (REFUSED, 3, "AWS refused Operation: AccessDeniedException: not you at all"),
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
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ending(error)[0] == code
    assert message in ending(error)[1]

    @command()
    def fails(session: Session) -> None:
        raise error

    monkeypatch.setitem(cli.counters.commands, "fails", fails)
    done = run("fails")
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)


def test_a_command_returns_the_exit_code_and_asks_before_destruction(monkeypatch: pytest.MonkeyPatch) -> None:
    @command("yes")
    def destroy(session: Session, *, yes: bool) -> int:
        return 0 if session.confirm("destroy it?", yes=yes) else 1

    monkeypatch.setitem(cli.counters.commands, "destroy", destroy)
    assert run("destroy", "--yes").code == 0
    assert run("destroy", answer=lambda _: True).code == 0
    assert run("destroy", answer=lambda _: False).code == 1
    assert "pass --yes" in mistake(run("destroy"))


def test_progress_is_lines_on_standard_error_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    @command()
    def work(session: Session) -> None:
        nonlocal now
        with progress_on(session.err, session.clock, is_brief=True) as show:
            for done in range(0, 101, 20):
                show("counting", done, 100)
                now += 6

    monkeypatch.setitem(cli.counters.commands, "work", work)
    done = run("work", clock=lambda: now)
    assert (done.out, done.err) == ("", "counting: 40 of 100, 18 s left\ncounting: 80 of 100, 6 s left\n")
    result = run("work", clock=lambda: now, terminal=True)
    assert result.out == ""
    assert "counting" in result.err


def execute(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"PYTHONPATH": str(Path(dynamodb_counters.__file__).parents[1])} | environment
    line = [sys.executable, "-m", "counters_cli.main", *arguments]
    return subprocess.run(line, env=variables, capture_output=True, text=True, timeout=60, check=False)


def test_as_a_process() -> None:
    helped = execute("get", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "--endpoint-url URL" in helped.stdout
    nothing = execute()
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "Commands:" in nothing.stderr
    arguments = "get", "shops", "--table", "sales", "--endpoint-url", "http://127.0.0.1:9"
    away = execute(*arguments, AWS_DEFAULT_REGION="us-east-1")
    assert (away.returncode, away.stdout, away.stderr.count("\n")) == (3, "", 1)
    assert 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"' in away.stderr


@pytest.mark.parametrize(
    ("region", "message"),
    [("nowhere!", "a supported format"), pytest.param("", "Invalid endpoint", marks=pytest.mark.night)],
)
def test_a_region_that_is_none_is_one_line(region: str, message: str) -> None:
    refused = execute("get", "shops", "--table", "sales", AWS_DEFAULT_REGION=region)
    assert (refused.returncode, refused.stderr.count("\n"), message in refused.stderr) == (2, 1, True), refused.stderr


def test_a_number_has_separators_and_few_decimals_and_a_span_its_two_greatest_units() -> None:
    numbers = [number(value) for value in (12345, Decimal("0.10"), Decimal(10) / 3, None)]
    assert numbers == ["12,345", "0.1", "3.3333", "-"]
    spans = [span(length) for length in (0.4, 59, 3600, 90_061, 86_460, 604_800)]
    assert spans == ["0 s", "59 s", "1 h", "1 d 1 h", "1 d", "7 d"]
