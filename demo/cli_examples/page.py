"""Runs the commands of a page and puts what they print below them.

A block of the language ``console`` is a terminal: lines that begin with ``$ counters`` are run, in the order of the
page, on one table; ``$ echo $?`` prints the last exit code, ``$ cat`` a file, ``$ sleep 3d`` takes no time; other lines
that begin with ``$`` stay.
"""

from __future__ import annotations

import io
import random
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from unittest.mock import patch

from demo.cli_examples import orders, requests
from demo.cli_examples.beside import put_beside, write_files
from demo.cli_examples.blog import Blog, seeded
from demo.cli_examples.synthesized import synthesized
from dynamodb_counters._counters import Counters
from dynamodb_counters._timeline.times import DAY
from dynamodb_counters.cli.main import main
from dynamodb_counters.cli.session import Session
from dynamodb_counters.cli.show.console import SafeConsole

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
PAGES: Final = (PAGE.with_name("backfill.md"), PAGE.with_name("cost.md"), PAGE.with_name("runbook.md"), PAGE)
"""In this order, on one table: the last one writes to it."""

WIDTH: Final = 100

_BLOCK: Final = re.compile(r"(?ms)^```console\n(.*?)^```$")


class World(Protocol):
    """A table with a past, and time that passes."""

    name: str
    clients: dict[str, Any]

    def clock(self) -> float:
        """Its time."""

    def live(self, seconds: float) -> None:
        """Let time pass."""


def filled(text: str, blog: Blog) -> str:
    """The page with what its commands print now; those with `--table NAME` look at another table."""
    shop = orders.Orders()
    with requests.requests() as service:
        others: tuple[World, ...] = (shop, service)
        return _filled(text, blog, shop, {f"--table {one.name}": one for one in others})


def _filled(text: str, blog: Blog, shop: orders.Orders, others: Mapping[str, World]) -> str:
    last = 0
    ids = random.Random(16)

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
            elif days := re.fullmatch(r"\$ sleep (\d+)d", line):
                shop.live(int(days[1]) * DAY)
            elif line.startswith("$ counters"):
                # Ids of runs are random otherwise, and segments race.
                token = patch("secrets.token_hex", lambda size: f"{ids.getrandbits(8 * size):0{2 * size}x}")
                with token, patch("dynamodb_counters._table.CONCURRENCY", 1):
                    last, printed = run(
                        shlex.split(line)[2:],
                        next((other for named, other in others.items() if named in line), blog),
                    )
                lines += printed.splitlines()
        return "```console\n" + "".join(f"{line}\n" for line in lines) + "```"

    return _BLOCK.sub(fill, text)


@contextmanager
def workplace() -> Iterator[Blog]:
    """The blog's table, the data outside it, and a folder with the files that the commands read."""
    with seeded() as blog, synthesized():
        put_beside(blog)
        write_files(Path.cwd())
        yield blog


def run(arguments: list[str], world: World) -> tuple[int, str]:
    """Run a command on the table; its exit code and what a terminal without colors would show."""
    screen = io.StringIO()
    code = main(arguments, session(world, lambda: plain_console(screen)))
    return code, "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


def session(world: World, console: Callable[[], SafeConsole]) -> Session:
    """A session at the table's time; a person there says yes."""
    shown = console()
    made = Session(
        table_name=world.name,
        make_client=world.clients.__getitem__,
        clock=world.clock,
        service_time=world.clock,
        sleep=world.live,
        out=shown,
        err=shown,
        answer=lambda _: True,
        has_person=lambda: True,
    )
    # moto knows no parameters of PartiQL statements.
    made.counters = Counters(world.name, client=world.clients["dynamodb"], bulk="put", clock=world.clock)
    return made


def plain_console(stream: io.StringIO, width: int = WIDTH) -> SafeConsole:
    return SafeConsole(file=stream, width=width, color_system=None, _environ={})
