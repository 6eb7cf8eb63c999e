"""Runs commands in this process, on a table in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from counters_cli.describe import AGGREGATOR_HANDLER
from counters_cli.main import counters, main
from counters_cli.session import Session
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode
from simulation.world import World


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The printed JSON, with nothing around it."""
        return json.loads(self.out)


def mistake(done: Done) -> str:
    """Return the one line by which a command refuses wrong input."""
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.err.startswith("error: ")
    return done.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(
    *arguments: str,
    client: Any = None,
    clients: dict[str, Any] | None = None,
    terminal: bool = False,
    answer: Callable[[str], bool] | None = None,
    **outside: Any,
) -> Done:
    """Run a command with clients by service; `answer` is a person at the terminal."""
    out, err = (Terminal() if terminal else io.StringIO() for _ in range(2))
    lookup = {"dynamodb": client} | (clients or {})
    if answer is not None:
        outside |= {"answer": answer}
    outside |= {"make_client": None if client is None else lookup.__getitem__, "has_person": lambda: answer is not None}
    return Done(main(arguments, Session(out=out, err=err, **outside)), out.getvalue(), err.getvalue())


def run_on(world: World, *arguments: str, **outside: Any) -> Done:
    """Run a command on the table of a world, at its time."""
    options: dict[str, Any] = {"client": world.table, "clock": world.clock, "sleep": world.clock.advance}
    return run(*arguments, "--table", world.name, **options | outside)


def write_template(file: Path, **aggregators: Sequence[Declaration]) -> Path:
    """Write what `cdk synth` writes of aggregators, as far as commands read it."""
    resources: dict[str, Any] = {"Table": {"Type": "AWS::DynamoDB::GlobalTable"}}
    for name, declared in aggregators.items():
        variables = {"DECLARATIONS": encode(tuple(declared)), "TABLE_NAME": {"Ref": "Table"}}
        properties = {"Handler": AGGREGATOR_HANDLER, "Environment": {"Variables": variables}}
        resources[name] = {"Type": "AWS::Lambda::Function", "Properties": properties}
    file.write_text(json.dumps({"Resources": resources}))
    return file


def commands(group: click.Group = counters, before: str = "") -> Iterator[str]:
    """Yield the names of all commands."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"
