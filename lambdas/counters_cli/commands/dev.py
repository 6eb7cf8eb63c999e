"""``counters dev``: run one's own CDK app in an emulator on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from counters_cli import emulator as cdk
from counters_cli.deployed import AGGREGATOR_HANDLER, ChangedCounts, Logs
from counters_cli.emulator import Emulator, EmulatorError
from counters_cli.output import group_text, number, span, stamp
from counters_cli.session import DONE, Session, shared
from dynamodb_counters._counters import Counters
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CountersError

_SECONDS_BETWEEN_LOOKS: Final = 1.0
_MOST_NAMES: Final = 3
_MOST_COUNTS: Final = 100
"""Counts of a table that one look shows."""


@click.command()
@click.argument("command", nargs=-1, metavar="[-- COMMAND…]")
@click.option("--port", type=click.IntRange(0, 65535), default=4566, help="0: any that is free.")
@shared
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
                session.sleep(_SECONDS_BETWEEN_LOOKS)
        except KeyboardInterrupt:
            session.tell("stopped")
    return DONE


class Workbench:
    """The app of this directory in an emulator: deploys it, and shows what it counts and logs."""

    def __init__(self, session: Session, emulator: Emulator) -> None:
        self.environment: dict[str, str] = {}
        """Variables that lead another terminal here."""
        self._session, self._emulator = session, emulator
        self._sources = cdk.source_files(Path.cwd())
        self._logs = Logs(emulator.client("logs"))
        self._functions: list[Any] = []
        self._counts: dict[str, ChangedCounts] = {}

    def deploy(self) -> None:
        """Deploy the app, and show what is there, and how another terminal reaches it."""
        session, emulator, known, began = self._session, self._emulator, self._counts, self._session.clock()
        session.tell(f"deploying to {emulator.endpoint_url}")
        try:
            outputs = cdk.deploy(emulator, Path.cwd())
        except EmulatorError as error:
            for line in error.lines:
                session.tell(line)
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
                self._counts[table] = known.get(table) or ChangedCounts(counters, emulator.client("dynamodbstreams"))
        counted = [*self._counts] or tables
        self.environment = emulator.address() | ({"COUNTERS_TABLE": counted[0]} if len(counted) == 1 else {})
        session.tell(f"deployed in {span(round(session.clock() - began))}")
        lines = [f"table  {name}" for name in tables] + [f"API    {url}" for url in apis]
        lines += [f"{stack}.{name}  {value}" for stack, named in outputs.items() for name, value in named.items()]
        exports = [f"export {name}={value}" for name, value in self.environment.items()]
        document = {"tables": tables, "apis": apis, "outputs": outputs, "environment": self.environment}
        session.emit(document, [*lines, "", "In another terminal:", "", *exports, ""])

    def look(self) -> None:
        """Deploy again if files have changed; show what was logged and counted since the last look."""
        session, before = self._session, self._sources
        self._sources = cdk.source_files(Path.cwd())
        if changed := sorted({name for name, _ in self._sources ^ before}):
            session.tell(f"{', '.join(changed[:_MOST_NAMES])} changed")
            try:
                self.deploy()
            except CountersError as error:
                session.tell(f"error: {error}; the app deployed before still runs")
        for function in self._functions:
            for line in self._logs.new(function):
                session.tell(line)
        for table, counts in self._counts.items():
            documents = counts.new()
            for document in islice(documents, _MOST_COUNTS):
                session.emit({"at": stamp(session.clock()), "table": table, **document}, _line(document))
            if left := sum(1 for _ in documents):
                session.tell(f"{number(left)} more counts have changed: `counters get` reads them")


def _line(document: dict[str, Any]) -> str:
    """The count of a group as one reads it; of several at once, their numbers."""
    name, values, *_ = document.values()
    numbers = document.get("measures", document)
    plain = {name: number(each) for name, each in numbers.items() if not isinstance(each, str | bool | dict | list)}
    return f"{f'{name} {group_text(values)}'.rstrip()}: {group_text(plain)}"
