"""``counters dev``: run one's own CDK app in an emulator on this machine, and show what it logs and counts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
from botocore.exceptions import ClientError

from counters_cli import emulator as cdk
from counters_cli.describe import AGGREGATOR_HANDLER
from counters_cli.emulator import Emulator, EmulatorError
from counters_cli.output import group_text, number, span, stamp
from counters_cli.session import Exit, Session, command
from counters_lambda.http_api.resources import answer
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations.composites import MEMBERS, digit_of, group_fields
from dynamodb_counters._fold.layouts import ItemLayout, group_of_item
from dynamodb_counters._items.schema import TYPE
from dynamodb_counters._reads.question import Question
from dynamodb_counters._registry import read_registry
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CountersError

# How lines begin that every invocation logs:
FRAME: Final = ("INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
_MOST_COUNTS: Final = 100  # Of a table, that one look shows


@command("port", command="[-- COMMAND…]")
def dev(session: Session, command: Sequence[str], *, port: int) -> int:
    """Run the CDK app of this directory in an AWS emulator on this machine, without an account or Docker.

    Deploys it with the CDK CLI, prints its counts and logs as they come, deploys it again when its files change, and
    leaves nothing when Ctrl-C ends it. With a COMMAND, such as `-- pytest`: runs that against the deployed app, stops,
    and exits with its code.

    Needs the extra `dev`: pip install 'dynamodb-counters[dev]'.
    """
    if not Path("cdk.json").is_file():
        raise click.UsageError("there is no cdk.json here: go to the app's directory")
    with Emulator.start(max_seconds=DAY, port=port, is_alone=True) as emulator:
        cdk.bootstrap(emulator)
        work = Workbench(session, emulator)
        work.deploy()
        if command:
            return subprocess.run(command, env=emulator.environment() | work.environment, check=False).returncode
        session.tell("watching; Ctrl-C ends")
        try:
            while True:
                work.look()
                session.sleep(1.0)
        except KeyboardInterrupt:
            session.tell("stopped")
    return Exit.SUCCESS


class Workbench:
    """The app of this directory in an emulator: deploys it, and shows what it counts and logs."""

    def __init__(self, session: Session, emulator: Emulator) -> None:
        self.environment: dict[str, str] = {}  # Variables that lead another terminal here
        self._session, self._emulator = session, emulator
        self._sources = cdk.source_files(Path.cwd())
        self._logs = Logs(emulator.client("logs"))
        self._functions: list[Any] = []
        self._counts: dict[str, ChangedCounts] = {}

    def deploy(self) -> None:
        session, emulator, counts, began = self._session, self._emulator, self._counts, self._session.clock()
        session.tell(f"deploying to {emulator.endpoint_url}")
        try:
            outputs = cdk.deploy(emulator, Path.cwd())
        except EmulatorError as error:
            session.tell(*error.lines)
            raise
        tables = emulator.listed("dynamodb", "list_tables", "TableNames")
        ids = [api["ApiId"] for api in emulator.listed("apigatewayv2", "get_apis", "Items")]
        apis = [f"{emulator.endpoint_url}/_aws/execute-api/{api}/$default/" for api in ids]
        self._functions, self._counts = emulator.listed("lambda", "list_functions", "Functions"), {}
        for function in self._functions:
            if function.get("Handler") == AGGREGATOR_HANDLER:
                # Its first invocation registers what it declares.
                emulator.client("lambda").invoke(FunctionName=function["FunctionName"], Payload=b"{}")
                table = function["Environment"]["Variables"]["TABLE_NAME"]
                counters = Counters(table, client=emulator.client("dynamodb"))
                self._counts[table] = counts.get(table) or ChangedCounts(counters, emulator.client("dynamodbstreams"))
        names = [*self._counts] or tables
        self.environment = emulator.address() | ({"COUNTERS_TABLE": names[0]} if len(names) == 1 else {})
        session.tell(f"deployed in {span(round(session.clock() - began))}")
        lines = [f"table  {name}" for name in tables] + [f"API    {url}" for url in apis]
        lines += [f"{stack}.{name}  {value}" for stack, values in outputs.items() for name, value in values.items()]
        exports = [f"export {name}={value}" for name, value in self.environment.items()]
        document = {"tables": tables, "apis": apis, "outputs": outputs, "environment": self.environment}
        session.emit(document, *lines, "", "In another terminal:", "", *exports, "")

    def look(self) -> None:
        """Deploy again if files have changed; show what was logged and counted since the last look."""
        session, before = self._session, self._sources
        self._sources = cdk.source_files(Path.cwd())
        if changed := sorted({name for name, _ in self._sources ^ before}):
            session.tell(f"{', '.join(changed[:3])} changed")
            try:
                self.deploy()
            except CountersError as error:
                session.tell(f"error: {error}; the app deployed before still runs")
        for function in self._functions:
            session.tell(*self._logs.new(function))
        for table, counts in self._counts.items():
            documents = counts.new()
            for document in islice(documents, _MOST_COUNTS):
                session.emit({"at": stamp(session.clock()), "table": table, **document}, _line(document))
            if rest := sum(1 for _ in documents):
                session.tell(f"{number(rest)} more counts have changed: `counters get` reads them")


def _line(document: dict[str, Any]) -> str:
    name, values, *_ = document.values()
    numbers = document.get("measures", document).items()
    plain = {name: number(value) for name, value in numbers if not isinstance(value, str | bool | dict | list)}
    return f"{f'{name} {group_text(values)}'.rstrip()}: {group_text(plain)}"


class Logs:
    """Lines of functions that have come since the last look, but for metrics and those of every invocation."""

    def __init__(self, client: Any) -> None:
        self._client, self._counts = client, Counter[str]()

    def new(self, function: Mapping[str, Any]) -> list[str]:
        name = function["FunctionName"]
        group = function.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{name}")
        try:
            pages = list(self._client.get_paginator("filter_log_events").paginate(logGroupName=group))
        except ClientError:  # Nothing has been logged there.
            return []
        messages = [event["message"] for page in pages for event in page["events"]]
        first, self._counts[group] = self._counts[group], len(messages)
        return [f"{name}  {line}" for message in messages[first:] for line in log_text(message).splitlines()]


def log_text(message: str) -> str:
    """Return a message as one reads it; empty if it is none for people."""
    text = message.rstrip()
    with suppress(ValueError, AttributeError):  # A text that is no JSON object is shown as it is.
        document = json.loads(text)
        level, line = document.get("level", ""), document.get("message", document.get("errorMessage", text))
        text = "" if "_aws" in document else f"{level} {line}".strip()
    return "" if text.startswith(FRAME) else text


class ChangedCounts:
    """Reads the counts of a table that have changed since the last look, as the records of its stream say."""

    def __init__(self, counters: Counters, streams: Any) -> None:
        self._counters, table = counters, counters._table
        arn = table.client.describe_table(TableName=table.name)["Table"]["LatestStreamArn"]
        # The emulator has one shard per stream.
        [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        request = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        self._streams, self._next = streams, streams.get_shard_iterator(**request)["ShardIterator"]

    def new(self) -> Iterator[dict[str, Any]]:
        """Answer as `counters get` does: what counts by time, over the last 24 hours; of ranks, the first one."""
        table, questions = self._counters._table, dict[Any, Question]()
        items, records = list[Any](), None
        while records != []:
            page = self._streams.get_records(ShardIterator=self._next)
            records, self._next = page["Records"], page["NextShardIterator"]
            items += [record["dynamodb"].get("NewImage", {}) for record in records]
        registered = read_registry(table).declarations if items else ()
        declared = {declaration.name: declaration for declaration in registered}
        for item in items:
            name = item.get(TYPE, {}).get("S", "")
            if name.endswith(MEMBERS) or (declaration := declared.get(name)) is None or digit_of(declaration):
                continue
            for image in ItemLayout(declaration).images(item):
                if (group := group_of_item(declaration, image)) is not None:
                    texts = dict(zip(declaration.fields, group, strict=False))
                    values = {field: texts[field] for field in group_fields(declaration)}
                    question = Question(now=table.clock(), declared=declaration, values=values, rank=1, consistent=True)
                    questions[name, *values.values()] = question
        return (answer(self._counters, question) for question in questions.values())
