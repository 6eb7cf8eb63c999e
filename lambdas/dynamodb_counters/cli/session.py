"""Shared parts of all commands: options, the clients and the table, what it prints, whom it asks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
from botocore.config import Config
from botocore.session import Session as AwsSession
from click.core import ParameterSource
from rich.console import Group as Lines
from rich.console import RenderableType

from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Window
from dynamodb_counters._declarations.codec import COMPRESSED, decode
from dynamodb_counters._declarations.composites import TIMED, read_by
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.cli.show.console import SafeConsole, make_console, visible
from dynamodb_counters.cli.show.progress import progress_on
from dynamodb_counters.errors import CountersError

Command = TypeVar("Command", bound=Callable[..., Any])
Declared = TypeVar("Declared", Aggregate, Window, Event, Items)


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
        made._table = self.table  # noqa: SLF001 - with the session's clock and pauses
        return made

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """The declarations: as given, or else as the table's last deployment has it."""
        if self.declared is not None:
            is_text = self.declared.startswith(("[", COMPRESSED))
            return decode(self.declared if is_text else Path(self.declared).read_text(encoding="utf-8").strip())
        return last_declarations(self.table, UnknownDeclarationsError)

    @cached_property
    def folded(self) -> tuple[Declaration, ...]:
        """The counted declarations, in all their generations; or those given."""
        if self.declared is not None:
            return self.declarations
        return last_declarations(self.table, UnknownDeclarationsError, folded=True)

    def find(self, kind: type[Declared], name: str) -> Declared:
        """The declaration of a kind with a name, or that kind's sources; otherwise a usage error that lists them."""
        return cast("Declared", self._found(name, kind.__name__.lower(), lambda one: isinstance(one, kind)))

    def find_counted(self, name: str) -> Aggregate | Window:
        """The aggregate or window with a name."""
        found = self._found(name, "aggregate or window", lambda one: isinstance(one, Aggregate | Window))
        return cast("Aggregate | Window", found)

    def find_timed(self, name: str) -> Window | Aggregate:
        """The declaration with a name that is read over spans of time: a window, or an aggregate with a read for it."""

        def is_timed(one: object) -> bool:
            return isinstance(one, Window) or (isinstance(one, Aggregate) and read_by(one) in TIMED)

        return cast("Window | Aggregate", self._found(name, "window", is_timed))

    def _found(self, name: str, what: str, fits: Callable[[object], bool]) -> Any:
        declared = list(with_sources(self.declarations))
        known = {one.name: one for one in declared if fits(one)}
        if name in known:
            return known[name]
        kinds = {one.name: type(one).__name__.lower() for one in declared}
        other = f", but it is of the kind {kinds[name]}" if name in kinds else ""
        there = ", ".join(sorted(known)) or f"no {what}"
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
            raise click.UsageError("no terminal to ask at: pass --yes, or --dry-run to look first")
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


def with_sources(declarations: Iterable[Declaration]) -> Iterator[Declaration | Event | Items]:
    for declaration in declarations:
        one: Any = declaration
        while one is not None:
            yield one
            one = getattr(one, "source", None)


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
