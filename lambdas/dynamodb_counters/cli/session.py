"""Shared parts of all commands: options and arguments, the clients and the table, whom it asks, and how it ends."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
from botocore import exceptions as aws
from botocore.config import Config
from botocore.session import Session as AwsSession
from click.core import ParameterSource
from rich.console import Group as Lines
from rich.console import RenderableType

from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import Registry, read_registry
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import COMPRESSED, decode, same_definition
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.requests import write_json
from dynamodb_counters._reads.question import OPTIONS, Question, resources_of
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.cli.output import SafeConsole, make_console, progress_on, visible
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
PIPE_CLOSED: Final = 141

_AWS_SETTINGS: Final = (aws.ProfileNotFound, aws.ConfigParseError, aws.ConfigNotFound, aws.NoRegionError)
_CODES: Final[dict[tuple[type[BaseException], ...], int]] = {
    (click.Abort,): FOUND,
    (KeyboardInterrupt,): INTERRUPTED,
    (CommitError,): AWS_REFUSED,
    (click.ClickException, CountersError, aws.ParamValidationError, *_AWS_SETTINGS): WRONG_INPUT,
    (aws.ClientError, aws.BotoCoreError, TimeoutError): AWS_REFUSED,
    (OSError,): WRONG_INPUT,
    (BaseException,): FAULT,
}
"""By kind of error; the first that fits holds."""

NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?")


def told(error: BaseException) -> tuple[int, str]:
    """The exit code and the line of an error."""
    if isinstance(error, click.Abort) and isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    code = next(code for kinds, code in _CODES.items() if isinstance(error, kinds))
    line = str(error).rstrip(".")
    if isinstance(error, aws.ClientError):
        said = error.response.get("Error", {})
        line = f"AWS refused {error.operation_name}: {said.get('Code', 'unknown')}"
        if said.get("Code") == "ResourceNotFoundException":
            # A table, or its stream, was named wrong.
            code, line = WRONG_INPUT, f"{error.operation_name} found nothing of that name in this region"
        line += f": {said.get('Message') or 'no reason given'}"
    elif code == FAULT:
        line = f"a fault of this program, {type(error).__name__}: {error}; COUNTERS_DEBUG=1 shows where"
    elif isinstance(error, click.ClickException):
        line = error.format_message()
    elif isinstance(error, click.Abort | KeyboardInterrupt):
        line = "interrupted" if code == INTERRUPTED else "no answer"
    return code, " ".join(line.split())


Command = TypeVar("Command", bound=Callable[..., Any])


class UnknownDeclarationsError(CountersError):
    """The table does not show what is declared."""


@dataclass
class Session:
    """One run of a command; what touches the outside world is injected by tests."""

    table_name: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    region: str | None = None
    declared: str | None = None
    as_json: bool = False
    make_client: Callable[[str], Any] | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    service_time: Callable[[], float] | None = None
    """DynamoDB's; None: as its answers show it."""
    out: SafeConsole = field(default_factory=make_console)
    err: SafeConsole = field(default_factory=lambda: make_console(stderr=True))
    answer: Callable[[str], bool] = lambda question: click.confirm(question, err=True)
    has_person: Callable[[], bool] = sys.stdin.isatty
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = (self.make_client or self._new_client)(service)
        return self._clients[service]

    @cached_property
    def table(self) -> Table:
        if not self.table_name:
            raise click.UsageError("no table: name it with --table, or in COUNTERS_TABLE")
        return Table(self.table_name, self.client("dynamodb"), clock=self.clock, sleep=self.sleep)

    @cached_property
    def counters(self) -> Counters:
        """The library's view of the table: all reads go through it."""
        made = Counters(self.table.name, client=self.table.client)
        made._table = self.table  # With the session's clock and pauses
        return made

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """The declarations: as given, or else what the table counts, with what the code last asked of events."""
        if self.declared is not None:
            is_text = self.declared.startswith(("[", COMPRESSED))
            return decode(self.declared if is_text else Path(self.declared).read_text(encoding="utf-8").strip())
        current = {declaration.name: declaration for declaration in self.registry.declarations}
        for declaration in self.registry.declared:
            name = declaration.name
            if name in current and same_definition(current[name], declaration):
                current[name] = declaration
        return tuple(current.values())

    @cached_property
    def registry(self) -> Registry:
        found = read_registry(self.table)
        if not found.is_founded:
            raise UnknownDeclarationsError("nothing counts the table yet: pass the declarations that it has")
        return found

    @cached_property
    def plan(self) -> Plan:
        """What folds the table's records: the declarations given, or else those that count."""
        return plan_of(self.registry) if self.declared is None else Plan(self.declarations)

    def find_event(self, name: str) -> Event:
        return cast("Event", self._find(name, "events"))

    def ask(self, resource: str, name: str, values: Sequence[str], options: Mapping[str, Any]) -> Question:
        """A question about the declaration with a name; options that are left out are None."""
        declared = self._find(name, resource)
        given = ((name, value) for name, value in options.items() if value is not None)
        texts = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given}
        return Question.parse(declared, resource, texts, fields_of(values), self.clock())

    def _find(self, name: str, resource: str) -> Any:
        """The declaration with a name of which there is something to ask; otherwise a usage error that lists them."""
        declared: dict[str, Any] = {}
        for declaration in self.declarations:
            each: Any = declaration
            while each is not None:
                declared[each.name] = each
                each = getattr(each, "source", None)
        candidates = {name: each for name, each in declared.items() if resource in resources_of(each)}
        if name in candidates:
            return candidates[name]
        what = {"get": "aggregate or window", "top": "ranking", "events": "event"}.get(resource, resource)
        other = f", but it is of the kind {type(declared[name]).__name__.lower()}" if name in declared else ""
        there = ", ".join(sorted(candidates)) or f"no {what}"
        raise click.UsageError(f"no {what} {name!r} is declared{other}; there is: {there}")

    def emit(self, document: Any, shown: RenderableType | list[str]) -> None:
        if self.as_json:
            self.out.file.write(write_json(document) + "\n")
            self.out.file.flush()
        else:
            # Lines of text stay whole, whatever the terminal's width.
            is_text = isinstance(shown, str | list)
            self.out.print(Lines(*shown) if isinstance(shown, list) else shown, soft_wrap=is_text)

    def tell(self, line: str) -> None:
        self.err.print(line, soft_wrap=True)

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Ask before something is destroyed; without anybody to ask, ``--yes`` must say so."""
        if yes:
            return True
        if not self.has_person():
            raise click.UsageError("no terminal to ask at: pass --yes")
        return self.answer(visible(question))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show how far something is on standard error; call what it yields with what is done. Total 0 is unknown."""
        with progress_on(self.err, self.clock, is_brief=True) as show:
            show(what, 0, total)
            yield lambda done: show(what, done, total)

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


with_dry_run: Final = options(
    click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing."),
    click.option("--yes", is_flag=True, help="Do not ask."),
)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep a shared option in the session; one on the command line stands before the environment's."""
    session, name = context.find_object(Session), str(parameter.name)
    is_environment = context.get_parameter_source(name) is ParameterSource.ENVIRONMENT
    if value not in (None, False) and not (is_environment and getattr(session, name)):
        setattr(session, name, value)


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise click.BadParameter(f"{text!r} is no URL: expected http://… or https://…")
    return text


_option: Final = partial(click.option, expose_value=False, callback=_keep)

with_shared_options: Final = options(
    _option("--table", "table_name", envvar="COUNTERS_TABLE", help="Name or ARN; or COUNTERS_TABLE."),
    _option("--declarations", "declared", metavar="FILE|TEXT", help="Default: the table's last deployment."),
    _option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
    _option("--profile", help="AWS profile."),
    _option("--region", help="AWS region."),
    _option("--endpoint-url", type=_url, metavar="URL", help="Such as DynamoDB Local's."),
)
"""The options that all commands have; they may stand before the command's name, too."""


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function, nearest to it: it gets the session first, and its exit code is what it returns."""
    return with_shared_options(click.make_pass_decorator(Session)(function))


class Within(click.FloatRange):
    """A number of a range; click itself takes `nan`, which is in any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number", param, ctx)
        return found


ABOVE_0: Final = Within(0, min_open=True)


def moment(text: str) -> datetime:
    """A moment; without an offset, UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected ISO 8601, such as 2026-11-20 or 2026-11-20T10:30Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def fields_of(given: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is no field=value")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        values[name] = value
    return values


_FLAGS: Final = {"start": "--since", "end": "--until"}


def asking(*names: str) -> Callable[[Command], Command]:
    """Options of a question: all are texts, as HTTP has them, but that a moment without an offset is UTC."""
    decorators = []
    for name in names:
        option, flag = OPTIONS[name], _FLAGS.get(name, f"--{name.replace('_', '-')}")
        kind: dict[str, Any] = {"type": moment} if option.schema.get("format") else {}
        if option.schema.get("enum") == ["true", "false"]:
            kind = {"is_flag": True, "flag_value": "true", "default": None}
        decorators.append(click.option(flag, name, help=f"{option.description}.", **kind))
    return options(*decorators)


def typed(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values; texts are numbers or truth values where these are declared. Others are left to be refused."""
    result, attributes = dict(values), event._declared_attributes or {}
    kinds = {name: attribute.type for name, attribute in attributes.items()}
    for name, value in ((name, value) for name, value in values.items() if isinstance(value, str)):
        if kinds.get(name) in (int, Decimal) and NUMBER.fullmatch(value):
            result[name] = Decimal(value)
        elif kinds.get(name) is bool and value in ("true", "false"):
            result[name] = value == "true"
    return result
