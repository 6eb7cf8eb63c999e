"""Runs the commands of a page and puts what they print below them.

A block of the language ``console`` is a terminal: lines that begin with ``$ counters`` are run, in the order of the
page, on one table; ``$ echo $?`` tells the last exit code, ``$ cat`` a file; other lines that begin with ``$`` stay.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.cli_examples.beside import put_beside, write_files
from demo.cli_examples.blog import Blog
from demo.cli_examples.synthesized import synthesized
from dynamodb_counters._counters import Counters
from dynamodb_counters.cli.main import main
from dynamodb_counters.cli.session import Session

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
PAGES: Final = (PAGE.with_name("cost.md"), PAGE.with_name("runbook.md"), PAGE)
"""In this order, on one table: the last one lets time pass."""

WIDTH: Final = 100

_BLOCK: Final = re.compile(r"(?ms)^```console\n(.*?)^```$")


def filled(text: str, blog: Blog) -> str:
    """The page with what its commands print now."""
    last = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal last
        lines = []
        for line in found[1].splitlines():
            if not line.startswith("$ "):
                continue
            lines.append(line)
            if line == "$ echo $?":
                lines.append(str(last))
            elif line.startswith("$ cat "):
                lines += Path(line.removeprefix("$ cat ")).read_text(encoding="utf-8").splitlines()
            elif line.startswith("$ counters"):
                last, printed = run(shlex.split(line)[2:], blog)
                lines += printed.splitlines()
        return "```console\n" + "".join(f"{line}\n" for line in lines) + "```"

    with synthesized():
        put_beside(blog)
        write_files(blog, Path.cwd())
        return _BLOCK.sub(fill, text)


def run(arguments: list[str], blog: Blog) -> tuple[int, str]:
    """Run a command on the table; its exit code and what a terminal without colors would show."""
    screen = io.StringIO()
    code = main(arguments, session(blog, lambda: plain_console(screen)))
    return code, "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


def session(blog: Blog, console: Callable[[], Console]) -> Session:
    """A session at the table's time; a person there says yes."""
    shown = console()
    made = Session(
        table_name="blog",
        make_client=blog.clients.__getitem__,
        clock=blog.clock,
        sleep=blog.live,
        out=shown,
        err=shown,
        answer=lambda _: True,
        has_person=lambda: True,
    )
    # moto knows no parameters of PartiQL statements.
    made.counters = Counters("blog", client=blog.clients["dynamodb"], bulk="put", clock=blog.clock)
    return made


def plain_console(stream: io.StringIO, width: int = WIDTH) -> Console:
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, color_system=None, _environ={})
