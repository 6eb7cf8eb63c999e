"""Runs commands in this process, on a table in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamodb_counters.cli.main import main
from dynamodb_counters.cli.output import SafeConsole
from dynamodb_counters.cli.session import Session


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The printed JSON, with nothing around it."""
        return json.loads(self.out)


def console(stream: io.StringIO, *, width: int = 100, terminal: bool = False) -> SafeConsole:
    return SafeConsole(
        file=stream,
        width=width,
        height=40,
        force_terminal=terminal,
        color_system="truecolor" if terminal else None,
        _environ={},
    )


def run(
    *arguments: str,
    client: Any = None,
    clients: dict[str, Any] | None = None,
    width: int = 100,
    terminal: bool = False,
    answer: Callable[[str], bool] | None = None,
    **outside: Any,
) -> Done:
    """Run a command with clients by service; `answer` is a person at the terminal."""
    out, err = io.StringIO(), io.StringIO()
    known = {"dynamodb": client} | (clients or {})
    if answer is not None:
        outside |= {"answer": answer}
    session = Session(
        make_client=None if client is None else known.__getitem__,
        out=console(out, width=width, terminal=terminal),
        err=console(err, width=width, terminal=terminal),
        has_person=lambda: answer is not None,
        **outside,
    )
    return Done(main(arguments, session), out.getvalue(), err.getvalue())
