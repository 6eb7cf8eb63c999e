"""The session of a command: its options, clients and table, its questions to a person, and its exit codes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TextIO

import click
from botocore import exceptions as aws
from botocore.config import Config
from botocore.session import Session as AwsSession

from counters_cli.output import print_line, visible
from counters_lambda.http_api.requests import write_json
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import same_definition
from dynamodb_counters._quarantine import STATES
from dynamodb_counters._reads.question import OPTIONS, Question, resources_of
from dynamodb_counters._registry import Registry, read_registry
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.errors import CommitError, CountersError


class Exit(IntEnum):
    SUCCESS = 0
    FINDINGS = 1  # Or the person said no.
    WRONG_INPUT = 2
    AWS_REFUSED = 3
    UNKNOWN = 4
    FAULT = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130


_AWS_SETTINGS: Final = (aws.ProfileNotFound, aws.ConfigParseError, aws.ConfigNotFound, aws.NoRegionError)
_CODES: Final[dict[tuple[type[BaseException], ...], Exit]] = {
    (click.Abort, KeyboardInterrupt): Exit.INTERRUPTED,
    (CommitError,): Exit.AWS_REFUSED,
    (click.ClickException, CountersError, aws.ParamValidationError, *_AWS_SETTINGS): Exit.WRONG_INPUT,
    (aws.ClientError, aws.BotoCoreError, TimeoutError): Exit.AWS_REFUSED,
    (OSError,): Exit.WRONG_INPUT,
    (BaseException,): Exit.FAULT,
}
"""By kind of error; the first that fits holds."""

_KINDS: Final = {"get": "aggregate or window", "top": "ranking", "events": "event"}


def ending(error: BaseException) -> tuple[int, str]:
    code = next(code for kinds, code in _CODES.items() if isinstance(error, kinds))
    line = str(error).rstrip(".")
    if isinstance(error, aws.ClientError):
        answer = error.response.get("Error", {})
        line = f"AWS refused {error.operation_name}: {answer.get('Code', 'unknown')}"
        if answer.get("Code") == "ResourceNotFoundException":
            # A table, or its stream, was named wrong.
            code, line = Exit.WRONG_INPUT, f"{error.operation_name} found nothing of that name in this region"
        line += f": {answer.get('Message') or 'no reason given'}"
    elif code == Exit.FAULT:
        line = f"a fault of this program, {type(error).__name__}: {error}; COUNTERS_DEBUG=1 shows where"
    elif isinstance(error, click.ClickException):
        line = error.format_message()
    elif code == Exit.INTERRUPTED:
        line = "interrupted"
    return code, " ".join(line.split())


def fields_of(texts: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.removesuffix(":"):
            raise click.UsageError(f"{text!r} is no field=value")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        values[name] = value
    return values


@dataclass
class Session:
    """One run of a command; what touches the outside world is injected by tests."""

    table_name: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    region: str | None = None
    as_json: bool = False
    make_client: Callable[[str], Any] | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    service_time: Callable[[], float] | None = None
    """DynamoDB's; None: as its answers show it."""
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    answer: Callable[[str], bool] = lambda question: click.confirm(question, err=True)
    has_person: Callable[[], bool] = sys.stdin.isatty
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = (self.make_client or self._new_client)(service)
        return self._clients[service]

    def _new_client(self, service: str) -> Any:
        # A shard of a stream takes five requests per second, and is read as fast as it goes.
        tries: Any = {"mode": "standard", "total_max_attempts": 10 if service == "dynamodbstreams" else 4}
        config = Config(max_pool_connections=CONCURRENCY, connect_timeout=3, read_timeout=20, retries=tries)
        target: Any = {"region_name": self.region, "endpoint_url": self.endpoint_url}
        session = AwsSession(profile=self.profile)
        try:
            return session.create_client(service, config=config, **target)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    @cached_property
    def table(self) -> Table:
        name = self.table_name or os.environ.get("COUNTERS_TABLE")
        if not name:
            raise click.UsageError("no table: name it with --table, or in COUNTERS_TABLE")
        return Table(name, self.client("dynamodb"), clock=self.clock, sleep=self.sleep)

    @cached_property
    def counters(self) -> Counters:
        """The library's view of the table: all reads go through it."""
        counters = Counters(self.table.name, client=self.table.client)
        counters._table = self.table  # With the session's clock and pauses
        return counters

    @cached_property
    def registry(self) -> Registry:
        registry = read_registry(self.table)
        if not registry.is_founded:
            raise click.UsageError("nothing counts the table yet: deploy its aggregator")
        return registry

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """Declarations that the table counts, as the code declared them last where it counts the same."""
        latest = {declaration.name: declaration for declaration in self.registry.declared}
        pairs = ((old, latest.get(old.name, old)) for old in self.registry.declarations)
        return tuple(new if same_definition(old, new) else old for old, new in pairs)

    def ask(self, resource: str, name: str, values: Sequence[str], options: Mapping[str, Any]) -> Question:
        """Make a question about the declaration with a name; options that are left out are None."""
        declared = self.find(name, resource)
        texts = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in options.items()
            if value is not None
        }
        return Question.parse(declared, resource, texts, fields_of(values), self.clock())

    def find(self, name: str, resource: str) -> Any:
        """Return the declaration with a name of which a resource can be asked, or refuse with those that there are."""
        readable: dict[str, Any] = {}
        for declaration in self.declarations:
            level: Any = declaration
            while level is not None:
                readable |= {level.name: level} if resource in resources_of(level) else {}
                level = getattr(level, "source", None)
        if name in readable:
            return readable[name]
        kind = _KINDS.get(resource, resource)
        there = ", ".join(sorted(readable)) or f"no {kind}"
        raise click.UsageError(f"no {kind} {name!r} is declared; there is: {there}")

    def emit(self, document: Any, *lines: str) -> None:
        for line in [write_json(document)] if self.as_json else lines:
            print_line(self.out, line)

    def tell(self, *lines: str) -> None:
        for line in lines:
            print_line(self.err, line)

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Ask before something is destroyed; without anybody to ask, ``--yes`` must say so."""
        if yes:
            return True
        if not self.has_person():
            raise click.UsageError("no terminal to ask at: pass --yes")
        return self.answer(visible(question))


def moment(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected ISO 8601, such as 2026-11-20 or 2026-11-20T10:30Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


_FLAGS: Final = {
    "all_entries": "--all",
    "all_pages": "--all",
    "as_json": "--json",
    "end": "--until",
    "lines": "--limit",
    "start": "--since",
    "table_name": "--table",
}
"""Options by the argument of a function, where their names differ."""

_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "aggregator": {"metavar": "ID", "help": "Logical ID of the aggregator's function, if templates have several."},
    "all_entries": {"is_flag": True, "help": "All entries."},
    "all_pages": {"is_flag": True, "help": "All pages."},
    "counts": {"type": click.Choice(["keep", "take_back"]), "required": True, "help": "As expired, or as retracted."},
    "dry_run": {"is_flag": True, "help": "Show what would be done, and write nothing."},
    "file": {"type": click.Path(exists=True, dir_okay=False, path_type=Path), "help": "Accept its JSON lines."},
    "lines": {"default": 20, "type": click.IntRange(0), "help": "Lines to show."},
    "port": {"type": click.IntRange(0, 65535), "default": 4566, "help": "0: any that is free."},
    "reason": {"metavar": "TEXT", "default": "", "show_default": False, "help": "Entries whose reason has this."},
    "repair": {"is_flag": True, "help": "Show the differences, and add to each group what it lacks, once."},
    "retract": {"is_flag": True, "help": "Take an event back, by the attributes of its key."},
    "run": {"metavar": "ID", "default": "", "show_default": False, "help": "Go on with an interrupted run."},
    "sample": {"default": 1.0, "help": "Share of the groups to compare."},
    "segments": {"type": click.IntRange(1, 100), "default": 4, "help": "Scanned at once."},
    "state": {"type": click.Choice([*STATES.values()]), "default": "waiting", "help": "The outcome."},
    "template": {"default": "cdk.out", "type": Path, "metavar": "FILE|DIR", "help": "A template, or a folder of them."},
    "timeout": {"type": click.IntRange(1), "default": 60, "help": "Seconds."},
    "top": {"is_flag": True, "help": "The first groups of its ranking, the greatest first."},
    "units_per_second": {"type": click.IntRange(1), "help": "Most units. Default: all."},
    "yes": {"is_flag": True, "help": "Do not ask."},
    # Of all commands:
    "table_name": {"help": "Name or ARN. Default: the variable COUNTERS_TABLE."},
    "as_json": {"is_flag": True, "help": "One JSON document on standard output."},
    "profile": {"help": "AWS profile."},
    "region": {"help": "AWS region."},
    "endpoint_url": {"metavar": "URL", "help": "Such as DynamoDB Local's."},
}


def _option(name: str, **extra: Any) -> click.Option:
    """Make an option; one of a question takes texts as HTTP has them, but a moment without an offset is UTC."""
    if (settings := _SETTINGS.get(name)) is None:
        description, _, schema = OPTIONS[name]
        settings = {"help": f"{description}.", "type": moment if schema.get("format") else None}
        if schema.get("enum") == ["true", "false"]:
            settings |= {"is_flag": True, "flag_value": "true", "default": None}
    return click.Option([_FLAGS.get(name, f"--{name.replace('_', '-')}"), name], **settings, **extra)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(context.find_object(Session), str(parameter.name), value)


_SHARED: Final = ("table_name", "as_json", "profile", "region", "endpoint_url")
SHARED: Final = [_option(name, expose_value=False, callback=_keep) for name in _SHARED]
"""The options that all commands have; they may stand before the command's name, too."""


def command(*options: str, **arguments: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function that takes options, and arguments by their usage, such as ``names="[NAME]…"``.

    It gets the session first, and its exit code is what it returns.
    """
    parameters: list[click.Parameter] = [
        click.Argument([name], metavar=usage, nargs=-1 if "…" in usage else 1, required=not usage.startswith("["))
        for name, usage in arguments.items()
    ]
    parameters += [_option(name) for name in options]
    return lambda function: click.command(params=[*parameters, *SHARED])(click.make_pass_decorator(Session)(function))
