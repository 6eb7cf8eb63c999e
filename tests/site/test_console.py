"""Every console block of docs/cli.md runs, in the order of the page, and prints what the page shows.

`$ counters …` is run on the blog's table, or with `--table counters` on a service's; `$ cat` of a file that is not
there yet writes what the page shows of it. UPDATE_SNAPSHOTS=1 writes the page again.
"""

from __future__ import annotations

import io
import os
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import pytest

from counters_cli.main import main
from counters_cli.session import Session
from dynamodb_counters import ActiveMembers, Attr, Counters, Event, Percentiles, TimeWeighted, Window
from simulation.counters_in_memory import counters_in_memory
from tests.site.blocks import DOCS
from tests.unit.cli.blog import DECLARED, NOW, PHONES, seeded
from tests.unit.cli.in_process import commands, write_template

PAGE: Final = DOCS / "cli.md"
_BLOCK: Final = re.compile(r"(?ms)^```console\n(.*?)^```$")

REQUEST = Event("request", key=("route", "at", "user"))
CHANGE = Event("change", key=("team", "id"))
REQUESTS = (
    ActiveMembers("users", REQUEST, member="user", time="at"),
    Percentiles("latency", REQUEST, by="route", attribute="ms", time="at"),
    Window("seats", CHANGE, by="team", time="at", measure=TimeWeighted("seats"), retention=None),
)
NEXT = (*(entry for entry in DECLARED if entry.name != "phones"), replace(PHONES, where=Attr("device").ne("laptop")))
"""What `cdk synth` writes: another filter."""


@contextmanager
def service() -> Iterator[Any]:
    """Return a service's table with a week of requests."""
    rng, now = random.Random(34), datetime.fromtimestamp(NOW, UTC)
    with counters_in_memory(REQUESTS, now=now - timedelta(days=7)) as counters:
        for number in range(420):
            at = now - timedelta(days=7) * (1 - number / 420)
            counters.clock.advance(at - counters.clock.now)
            user, route = f"u{int(rng.expovariate(0.1))}", rng.choice(("/", "/search"))
            event: dict[str, Any] = {"route": route, "at": at.isoformat(timespec="seconds"), "user": user}
            numbers = {"ms": int(rng.lognormvariate(4.6, 0.7)), "bytes": rng.randrange(2_000, 60_000)}
            counters.accept(REQUEST, event | numbers)
        counters.clock.advance(now - counters.clock.now)
        for number, (days, seats) in enumerate(((40, 12), (3, 5), (1, -2))):
            since = (now - timedelta(days=days)).isoformat(timespec="seconds")
            counters.accept(CHANGE, {"team": "a", "id": number, "at": since, "seats": seats})
        clients = {"dynamodb": counters.client}
        yield SimpleNamespace(name=counters.table_name, clients=clients, clock=lambda: NOW, live=float)


class Terminal:
    """Takes the lines of a page, one after the other."""

    def __init__(self, blog: Any, requests: Any) -> None:
        self._blog, self._requests = blog, requests
        self._ids = random.Random(16)

    def answer(self, line: str, output: list[str]) -> list[str]:
        """Return what a line prints; of what is not run, what the page shows."""
        words = shlex.split(line.removeprefix("$ ").partition(" | ")[0])
        if words[0] == "cat":
            file = Path(words[1])
            if not file.exists():
                file.write_text("".join(f"{row}\n" for row in output), encoding="utf-8")
            return file.read_text(encoding="utf-8").splitlines()
        if words[:2] == ["cdk", "synth"]:
            Path("cdk.out").mkdir()
            write_template(Path("cdk.out", "Blog.template.json"), Function=NEXT)
        if words[0] != "counters":
            return output
        table = self._requests if "--table counters" in line else self._blog
        printed = self._run([table.name if word == "counters" else word for word in words[1:]], table)
        return printed[: int(line.rpartition(" | head -")[2])] if " | head -" in line else printed

    def _run(self, words: list[str], table: Any) -> list[str]:
        screen = io.StringIO()
        times: Any = {"clock": table.clock, "service_time": table.clock, "sleep": table.live}
        person: Any = {"answer": lambda _: True, "has_person": lambda: True}
        clients = table.clients.__getitem__
        session = Session(table_name=table.name, make_client=clients, out=screen, err=screen, **times, **person)
        session.counters = Counters(table.name, client=table.clients["dynamodb"], clock=table.clock)
        # Ids of runs are random otherwise, and segments race.
        token = patch("secrets.token_hex", lambda size: f"{self._ids.getrandbits(8 * size):0{2 * size}x}")
        with token, patch("dynamodb_counters._table.CONCURRENCY", 1):
            main(words, session)
        return [line.rstrip() for line in screen.getvalue().splitlines()]


def printed(page: str, terminal: Terminal) -> str:
    """Return the page with what its commands print now."""

    def fill(block: re.Match[str]) -> str:
        lines: list[str] = []
        for command in re.split(r"(?m)^(?=\$ )", block[1])[1:]:
            line, *output = command.splitlines()
            lines += [line, *terminal.answer(line, output)]
        return "```console\n" + "".join(f"{line}\n" for line in lines) + "```"

    return _BLOCK.sub(fill, page)


@pytest.mark.snapshot
def test_the_page_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    with service() as requests:
        now = printed(page, Terminal(seeded(), requests))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(now, encoding="utf-8")
    else:
        assert now.splitlines() == page.splitlines()


def test_every_command_has_an_example_and_a_place_in_the_index() -> None:
    page = PAGE.read_text(encoding="utf-8")
    text = page + (DOCS / "backfill.md").read_text(encoding="utf-8")
    for name in commands():
        assert re.search(rf"(?m)^\$ counters {name}\b", text), name
        assert f"| [`{name.split(maxsplit=1)[0]}`](#" in page
