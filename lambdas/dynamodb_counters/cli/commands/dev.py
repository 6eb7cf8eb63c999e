"""``counters dev``: run one's own CDK app in an emulator on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from dynamodb_counters._dev import cdk
from dynamodb_counters._dev.deployed import MOST_ITEMS, Deployed, FunctionLogs, TableCounts, deployed, register
from dynamodb_counters._dev.emulator import Emulator
from dynamodb_counters._http.resources import plain_measures
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.cli.output import group_text, number, span, stamp
from dynamodb_counters.cli.session import DONE, Session, shared
from dynamodb_counters.errors import CountersError

_SECONDS_BETWEEN_LOOKS: Final = 1.0


@click.command()
@click.argument("command", nargs=-1, metavar="[-- COMMAND…]")
@click.option("--stack", "stacks", multiple=True, metavar="NAME", help="Deploy this stack; repeatable. Default: all.")
@click.option("--port", type=click.IntRange(0, 65535), default=4566, help="0: any that is free.")
@shared
def dev(session: Session, command: Sequence[str], *, stacks: Sequence[str], port: int) -> int:
    """Run the CDK app of this directory in an AWS emulator on this machine, without an account or Docker.

    Deploys it with the CDK CLI, prints its counts and logs as they come, deploys it again when its files change, and
    leaves nothing when Ctrl-C ends it. With a COMMAND, such as `-- pytest`: runs that against the deployed app, stops,
    and exits with its code.

    Needs the extra `dev`: pip install 'cdk-dynamodb-counters[dev]'.
    """
    directory = Path.cwd()
    if not (directory / "cdk.json").is_file():
        raise click.UsageError("there is no cdk.json here: go to the app's directory")
    app = cdk.App(directory, cdk.find_cli(directory))
    files = cdk.SourceFiles(directory)
    with Emulator.start(max_seconds=DAY, port=port, is_alone=True) as emulator:
        cdk.bootstrap(emulator)
        logs = FunctionLogs(emulator.client("logs"))
        work = Workbench(session, emulator, app, logs, stacks)
        work.deploy()
        if command:
            return subprocess.run(command, env=emulator.environment() | work.table(), check=False).returncode
        session.tell("watching; Ctrl-C ends")
        try:
            while True:
                work.look(files)
                session.sleep(_SECONDS_BETWEEN_LOOKS)
        except KeyboardInterrupt:
            session.tell("stopped")
    return DONE


@dataclass
class Workbench:
    """An app in an emulator: deploys it, and shows what it counts and logs."""

    session: Session
    emulator: Emulator
    app: cdk.App
    logs: FunctionLogs
    stacks: Sequence[str]
    _found: Deployed = field(default_factory=Deployed)
    _counts: dict[str, TableCounts] = field(default_factory=dict)

    def deploy(self) -> None:
        """Deploy the app, and show what is there if that is new."""
        began = self.session.clock()
        self.session.tell(f"deploying to {self.emulator.endpoint_url}")
        try:
            cdk.deploy(self.emulator, self.app, self.stacks)
        except cdk.CdkError as error:
            for line in error.lines:
                self.session.tell(line)
            raise
        before, self._found = self._found, deployed(self.emulator)
        for function in self._found.aggregators:
            client = self.emulator.client("dynamodb")
            register(function, client)
            counts = TableCounts(function.table, client, function.declarations)
            self._counts.setdefault(function.table, counts).declared(function.declarations)
        self.session.tell(f"deployed in {span(round(self.session.clock() - began))}")
        if (before.tables, before.apis) != (self._found.tables, self._found.apis):
            self._show()

    def look(self, files: cdk.SourceFiles) -> None:
        """Deploy again if files have changed; show what was logged and counted since the last look."""
        if changed := files.changed():
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            self.session.tell(f"{changed[0]}{more} changed")
            try:
                self.deploy()
            except CountersError as error:
                self.session.tell(f"error: {error}; the app deployed before still runs")
        for line in self.logs.new(self._found.functions):
            self.session.tell(line)
        for counts in self._counts.values():
            at, was_too_large = stamp(self.session.clock()), counts.is_too_large
            for (name, group), measures in counts.changed().items():
                values, plain = dict(group), plain_measures(measures)
                document = {"at": at, "table": counts.table, "name": name, "values": values, "measures": plain}
                said = {one: number(value) for one, value in plain.items() if not isinstance(value, dict)}
                self.session.emit(document, f"{f'{name} {group_text(values)}'.rstrip()}: {group_text(said)}")
            if counts.is_too_large > was_too_large:
                self.session.tell(f"{counts.table} has over {number(MOST_ITEMS)} items: `counters get` reads counts")

    def table(self) -> dict[str, str]:
        """The table, if there is one that all commands can be about."""
        tables = [one.table for one in self._found.aggregators] or self._found.tables
        return {"COUNTERS_TABLE": tables[0]} if len(tables) == 1 else {}

    def _show(self) -> None:
        """Show what is there, and how another terminal reaches it."""
        tables, apis, environment = self._found.tables, self._found.apis, self.emulator.exports() | self.table()
        lines = [f"table  {name}" for name in tables] + [f"API    {url}" for url in apis]
        exports = [f"export {name}={value}" for name, value in environment.items()]
        document = {"tables": tables, "apis": apis, "environment": environment}
        self.session.emit(document, [*lines, "", "In another terminal:", "", *exports, ""])
