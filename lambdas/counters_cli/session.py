"""Shared parts of all commands: options and arguments, the clients and the table, whom it asks, and how it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial, reduce
from typing import Any, Final, TextIO, TypeVar

import click
from botocore import exceptions as aws
from botocore.config import Config
from botocore.session import Session as AwsSession

from counters_cli.output import print_line, visible
from counters_lambda.http_api.requests import write_json
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import same_definition
from dynamodb_counters._reads.question import OPTIONS, Question, resources_of
from dynamodb_counters._registry import Registry, read_registry
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.errors import CommitError, CountersError

DONE: Final = 0
FOUND: Final = 1
"""It was done, and something was found, or the person said no."""
WRONG_INPUT: Final = 2
AWS_REFUSED: Final = 3
UNKNOWN: Final = 4
"""It was done, and what was found is certain, but of something nothing is known."""
FAULT: Final = 70
"""A fault of this program: EX_SOFTWARE of sysexits.h."""
INTERRUPTED: Final = 130

_AWS_SETTINGS: Final = (aws.ProfileNotFound, aws.ConfigParseError, aws.ConfigNotFound, aws.NoRegionError)
_CODES: Final[dict[tuple[type[BaseException], ...], int]] = {
    (click.Abort, KeyboardInterrupt): INTERRUPTED,
    (CommitError,): AWS_REFUSED,
    (click.ClickException, CountersError, aws.ParamValidationError, *_AWS_SETTINGS): WRONG_INPUT,
    (aws.ClientError, aws.BotoCoreError, TimeoutError): AWS_REFUSED,
    (OSError,): WRONG_INPUT,
    (BaseException,): FAULT,
}
"""By kind of error; the first that fits holds."""

_KINDS: Final = {"get": "aggregate or window", "top": "ranking", "events": "event"}
_FLAGS: Final = {"start": "--since", "end": "--until"}


def ending(error: BaseException) -> tuple[int, str]:
    """The exit code and the line of an error."""
    code = next(code for kinds, code in _CODES.items() if isinstance(error, kinds))
    line = str(error).rstrip(".")
    if isinstance(error, aws.ClientError):
        answer = error.response.get("Error", {})
        line = f"AWS refused {error.operation_name}: {answer.get('Code', 'unknown')}"
        if answer.get("Code") == "ResourceNotFoundException":
            # A table, or its stream, was named wrong.
            code, line = WRONG_INPUT, f"{error.operation_name} found nothing of that name in this region"
        line += f": {answer.get('Message') or 'no reason given'}"
    elif code == FAULT:
        line = f"a fault of this program, {type(error).__name__}: {error}; COUNTERS_DEBUG=1 shows where"
    elif isinstance(error, click.ClickException):
        line = error.format_message()
    elif code == INTERRUPTED:
        line = "interrupted"
    return code, " ".join(line.split())


Command = TypeVar("Command", bound=Callable[..., Any])


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
        """What the table counts, with what the code last asked of events."""
        latest = {each.name: each for each in self.registry.declared}
        pairs = ((each, latest.get(each.name, each)) for each in self.registry.declarations)
        return tuple(new if same_definition(each, new) else each for each, new in pairs)

    def ask(self, resource: str, name: str, values: Sequence[str], options: Mapping[str, Any]) -> Question:
        """A question about the declaration with a name; options that are left out are None."""
        declared = self.find(name, resource)
        given = ((name, value) for name, value in options.items() if value is not None)
        texts = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given}
        return Question.parse(declared, resource, texts, fields_of(values), self.clock())

    def find(self, name: str, resource: str) -> Any:
        """The declaration with a name of which there is something to ask; otherwise a usage error that lists them."""
        known: dict[str, Any] = {}
        for declaration in self.declarations:
            each: Any = declaration
            while each is not None:
                known |= {each.name: each} if resource in resources_of(each) else {}
                each = getattr(each, "source", None)
        if name in known:
            return known[name]
        kind = _KINDS.get(resource, resource)
        there = ", ".join(sorted(known)) or f"no {kind}"
        raise click.UsageError(f"no {kind} {name!r} is declared; there is: {there}")

    def emit(self, document: Any, lines: str | list[str]) -> None:
        if self.as_json:
            lines = write_json(document)
        for line in [lines] if isinstance(lines, str) else lines:
            print_line(self.out, line)

    def tell(self, line: str) -> None:
        print_line(self.err, line)

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Ask before something is destroyed; without anybody to ask, ``--yes`` must say so."""
        if yes:
            return True
        if not self.has_person():
            raise click.UsageError("no terminal to ask at: pass --yes")
        return self.answer(visible(question))

    def _new_client(self, name: str) -> Any:
        config = Config(
            max_pool_connections=CONCURRENCY,
            connect_timeout=3,
            read_timeout=20,
            # A shard of a stream takes five requests per second, and is read as fast as it goes.
            retries={"mode": "standard", "total_max_attempts": 10 if name == "dynamodbstreams" else 4},
        )
        session = AwsSession(profile=self.profile)
        try:
            return session.create_client(name, region_name=self.region, endpoint_url=self.endpoint_url, config=config)
        except ValueError as error:
            raise click.UsageError(str(error)) from error


def options(*added: Callable[[Command], Command]) -> Callable[[Command], Command]:
    return lambda function: reduce(lambda made, add: add(made), reversed(added), function)


with_yes: Final = click.option("--yes", is_flag=True, help="Do not ask.")
with_dry_run: Final = options(
    click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing."), with_yes
)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(context.find_object(Session), str(parameter.name), value)


_option: Final = partial(click.option, expose_value=False, callback=_keep)

with_shared_options: Final = options(
    _option("--table", "table_name", help="Name or ARN. Default: the variable COUNTERS_TABLE."),
    _option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
    _option("--profile", help="AWS profile."),
    _option("--region", help="AWS region."),
    _option("--endpoint-url", metavar="URL", help="Such as DynamoDB Local's."),
)
"""The options that all commands have; they may stand before the command's name, too."""


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function, nearest to it: it gets the session first, and its exit code is what it returns."""
    return with_shared_options(click.make_pass_decorator(Session)(function))


def moment(text: str) -> datetime:
    """A moment; without an offset, UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected ISO 8601, such as 2026-11-20 or 2026-11-20T10:30Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def fields_of(given: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.removesuffix(":"):
            raise click.UsageError(f"{text!r} is no field=value")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        values[name] = value
    return values


def asking(*names: str) -> Callable[[Command], Command]:
    """A name and a group to ask about, and options: texts as HTTP has them, but a moment without an offset is UTC."""
    decorators: list[Any] = [click.argument("name"), click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")]
    for name in names:
        option, flag = OPTIONS[name], _FLAGS.get(name, f"--{name.replace('_', '-')}")
        kind: dict[str, Any] = {"type": moment} if option.schema.get("format") else {}
        if option.schema.get("enum") == ["true", "false"]:
            kind = {"is_flag": True, "flag_value": "true", "default": None}
        decorators.append(click.option(flag, name, help=f"{option.description}.", **kind))
    return options(*decorators)
