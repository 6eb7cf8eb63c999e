"""The emulator listens on loopback only, and nothing of it outlives the process that started it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from counters_cli.emulator import Emulator, EmulatorError
from counters_lambda.counting.feeds import SourceTable
from simulation.engines.tables import create_table
from tests.integration.waiting import eventually, runs

_PROJECT = Path(__file__).resolve().parents[2]

# Deploys one function and calls it, so that there is a worker process to be left behind.
_CALLER = """
import io, sys, time, zipfile
from counters_cli.emulator import Emulator

with Emulator.start(max_seconds=int(sys.argv[1])) as emulator:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "import os\\ndef handler(event, context):\\n    return os.getpid()\\n")
    functions = emulator.client("lambda")
    functions.create_function(
        FunctionName="echo", Runtime="python3.13", Handler="index.handler",
        Role=f"arn:aws:iam::{emulator.account}:role/any", Code={"ZipFile": code.getvalue()},
    )
    functions.get_waiter("function_active_v2").wait(FunctionName="echo")
    worker = functions.invoke(FunctionName="echo")["Payload"].read().decode()
    print(emulator.port, worker, emulator.directory, flush=True)
    time.sleep(600)
"""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start_caller(*limits: int) -> tuple[subprocess.Popen[str], int, int, Path]:
    """Start the caller with the first limit, in seconds, that is enough for its emulator to answer."""
    for limit in limits:
        options: Any = {"cwd": _PROJECT, "env": os.environ | {"PYTHONPATH": str(_PROJECT / "lambdas")}}
        command = [sys.executable, "-c", _CALLER, str(limit)]
        caller = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        assert caller.stdout is not None
        if parts := caller.stdout.readline().split():
            port, worker, directory = parts
            return caller, int(port), int(worker), Path(directory)
        caller.communicate()
    pytest.fail(f"the emulator did not answer within {limits[-1]} s")


def test_it_answers_on_loopback_only() -> None:
    with Emulator.start(max_seconds=600) as emulator:
        assert emulator.client("dynamodb").list_tables()["TableNames"] == []
        assert _listens(emulator.port)
        for address in _other_addresses():
            with socket.socket() as probe:
                probe.settimeout(1)
                assert probe.connect_ex((address, emulator.port)) != 0


def test_only_who_knows_the_key_of_the_run_creates_something() -> None:
    def ask(emulator: Emulator, key: str, **headers: str) -> tuple[int, str]:
        scope = f"AWS4-HMAC-SHA256 Credential={key}/20261120/us-east-1/sqs/aws4_request"
        target = {"Authorization": scope, "X-Amz-Target": "AmazonSQS.CreateQueue"}
        connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=30)
        with closing(connection):
            connection.request("POST", "/", '{"QueueName": "owned"}', target | headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Access-Control-Allow-Origin", "")

    with Emulator.start() as emulator, Emulator.start() as other:
        assert emulator.key != other.key
        for key in ("test", emulator.account, other.key):
            assert ask(emulator, key) == (403, "")
        for name, value in (("Origin", "https://example.com"), ("Origin", "null"), ("Host", "rebound.example")):
            assert ask(emulator, emulator.key, **{name: value}) == (403, "")
        assert emulator.client("sqs").list_queues().get("QueueUrls", []) == []
        assert ask(emulator, emulator.key)[0] == 200


def _other_addresses() -> set[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing: it only chooses the address it would send from.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return set()
        address: str = probe.getsockname()[0]
        return {address} - {"127.0.0.1"}


def test_a_table_is_asked_by_its_arn_as_by_its_name() -> None:
    """DynamoDB takes either as the TableName: verification and backfill ask a source table by its ARN."""
    with Emulator.start(max_seconds=600) as emulator:
        client, key = emulator.client("dynamodb"), {"PK": {"S": "a"}, "SK": {"S": "b"}}
        stream = create_table(client, "orders", expires=False, keys=("PK", "SK"))
        arn = stream.partition("/stream/")[0]
        client.put_item(TableName=arn, Item=key)
        assert client.get_item(TableName=arn, Key=key)["Item"] == key
        assert client.scan(TableName=arn)["Items"] == [key]
        source = SourceTable.described(client, emulator.client("dynamodbstreams"), arn)
        assert (source.key_names, source.stream.arn) == (("PK", "SK"), stream)
        for elsewhere in (arn.replace("us-east-1", "eu-west-1"), arn.replace(":table/orders", ":table/none")):
            with pytest.raises(client.exceptions.ResourceNotFoundException):
                client.describe_table(TableName=elsewhere)


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_nothing_is_left_after_the_block(error: type[Exception] | None) -> None:
    with pytest.raises(error) if error else nullcontext(), Emulator.start(max_seconds=600) as emulator:
        assert emulator.directory.is_dir()
        if error:
            raise error
    assert not _listens(emulator.port)
    assert not emulator.directory.exists()


@pytest.mark.parametrize(
    "ending", [signal.SIGKILL, *(pytest.param(end, marks=pytest.mark.night) for end in (signal.SIGTERM, signal.SIGINT))]
)
def test_nothing_is_left_when_the_caller_is_ended(ending: signal.Signals) -> None:
    caller, port, worker, directory = _start_caller(600)
    with caller:
        assert _listens(port)
        assert runs(worker)
        os.kill(caller.pid, ending)
        assert caller.wait(60) != 0
        assert eventually(lambda: not (_listens(port) or runs(worker) or directory.exists()))


@pytest.mark.night
def test_it_ends_when_its_time_is_up() -> None:
    caller, port, worker, directory = _start_caller(4, 16, 64)
    with caller:
        try:
            assert eventually(lambda: not (_listens(port) or runs(worker) or directory.exists()))
        finally:
            caller.kill()


def test_a_failed_start_says_what_was_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setattr("counters_cli.emulator._free_port", lambda _: listener.getsockname()[1])
        with pytest.raises(EmulatorError, match="already in use"), Emulator.start(max_seconds=600):
            pytest.fail("it must not start")
