"""Text that anybody may post acts on no terminal, whichever command prints it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from counters_cli import backfill, describe, dev, main
from counters_cli import emulator as cdk
from counters_cli.emulator import Emulator
from counters_cli.session import Exit, Session, command
from counters_lambda.counting.verification import Difference
from dynamodb_counters import Aggregate, Attr, Count
from dynamodb_counters._tiers import HOUR
from tests.unit.cli.blog import DECLARED, VIEW, Blog
from tests.unit.cli.in_process import Done, commands, run, write_template

# It clears the screen, fills the clipboard, blinks, hides what stands before it, turns the rest around, forges a line.
TEXT = "/\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b5m\x7f\r\x08\u202e\u2066\u2028\t\nerror: forged"
SHOWN = r"/\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b5m\x7f\r\x08\u202e\u2066\u2028\t\nerror: forged"
FOREIGN = re.compile(
    "\x1b\\[2J|\x1b\\]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)
"""Characters that no text of ours holds, on a terminal with colors and a live display."""

ODD = Aggregate("odd", VIEW, pk="SITE", sk="ODD", measures={"n": Count()}, where=Attr("device").eq(TEXT))
GROUP = f"url={TEXT}"


ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("describe", "wait", "quarantine list", "quarantine list ID"), ()),
    **dict.fromkeys(("quarantine redrive", "quarantine discard"), ("--all", "--yes")),
    "get": ("phones", "time:day=2026-11-19"),
    "events": ("view", GROUP, "--limit", "1"),
    "explain": ("pages", GROUP),
    "dev": ("--port", "0"),
    "diff": ("--template", "Blog.template.json"),
    "backfill": ("--dry-run",),
    "verify": ("pages", "--repair", "--yes"),
    "drop": ("--yes",),
    "accept": ("view", f"url:={json.dumps([TEXT])}", f"time={TEXT}", "client=c"),
    "erase": ("view", "\u202e=1", "--counts", "keep"),
}
SILENT = {"describe", "drop", "quarantine redrive", "quarantine discard", "wait"}
"""Commands that do not print the text."""


def test_every_command_is_run() -> None:
    assert {name.removesuffix(" ID") for name in ARGUMENTS} == {*commands()}


def test_nothing_prints_but_the_console() -> None:
    other = re.compile(r"\bprint\(|\becho\(|sys\.stdout\.write")
    folder = Path(main.__file__).parent
    names = [path.name for path in folder.rglob("*.py") if other.search(path.read_text().replace(">>> print(", ""))]
    assert names == []


@pytest.fixture(scope="module")
def blog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Blog]:
    """Yield a table that counts what hostile clients have posted, with its services."""
    with chdir(tmp_path_factory.mktemp("hostile")):
        blog = Blog(declared=(*DECLARED, ODD))
        blog.live(HOUR)
        for more in ({}, {"client": TEXT, "device": "phone"}, {"device": TEXT}, {"ms": TEXT}, {TEXT: TEXT}):
            blog.view(TEXT, **more)
        blog.deliver()
        blog.view(TEXT)
        Path("cdk.json").write_text("{}")
        write_template(Path("Blog.template.json"), Function=(*DECLARED, replace(ODD, where=Attr("device").ne(TEXT))))
        yield blog


@pytest.fixture(autouse=True)
def _emulator(blog: Blog, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `counters dev`: an emulator that holds the table, where nothing takes time."""
    variables = {"Variables": {"TABLE_NAME": "blog"}}
    function = {"FunctionName": "odd", "Handler": describe.AGGREGATOR_HANDLER, "Environment": variables}
    listed = {"TableNames": ["blog"], "Functions": [function], "Items": []}
    attributes: dict[str, Any] = {"endpoint_url": "http://x", "environment": dict, "address": dict}
    client = SimpleNamespace(invoke=lambda **_: None)
    emulator = SimpleNamespace(client=lambda _: client, listed=lambda *names: listed[names[-1]], **attributes)
    changed = {"aggregate": "odd", "values": {"url": TEXT}, "measures": {"n": 1}}
    monkeypatch.setattr(Emulator, "start", lambda **_: nullcontext(emulator))
    monkeypatch.setattr(cdk, "deploy", lambda *_: {"Stack": {"Text": TEXT}})
    monkeypatch.setattr(cdk, "bootstrap", lambda *_: None)
    monkeypatch.setattr(dev.Logs, "new", lambda *_: [TEXT])
    monkeypatch.setattr(dev, "ChangedCounts", lambda *_: SimpleNamespace(new=lambda: iter([changed])))


@pytest.fixture(autouse=True)
def _verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """For `counters verify`: one that is over, and has found the group drifted."""
    drift = Difference("pages", {"url": TEXT}, {"views": 1}, "drifted", TEXT)
    methods = {"groups": lambda _: Counter([TEXT]), "repair": lambda **_: (1, 0), "preview": lambda: ([TEXT], 1, 1)}
    over = SimpleNamespace(differences=[drift], compared=1, **methods)
    monkeypatch.setattr(backfill, "runner_of", lambda *_, **__: over)
    monkeypatch.setattr(backfill, "work_off", lambda *_: {"run": TEXT, "seconds": 1, "units": 1, "items": 1})


def perform(blog: Blog, name: str, *options: str, terminal: bool = False) -> Done:
    def end(_: float) -> None:
        raise KeyboardInterrupt

    outside: dict[str, Any] = {"client": blog.clients["dynamodb"], "clients": blog.clients, "clock": blog.clock}
    outside |= {"service_time": blog.clock, "sleep": end}
    words = name.split()
    if "ID" in words:
        listed = run("quarantine", "list", "--json", "--table", "blog", **outside).document["entries"]
        words[-1] = listed[0]["id"]
    return run("--table", "blog", *words, *ARGUMENTS[name], *options, terminal=terminal, **outside)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_command_prints_what_acts_on_a_terminal(blog: Blog, name: str) -> None:
    plain = perform(blog, name)
    printed = plain.out + plain.err
    assert plain.code != Exit.FAULT, printed
    assert [char for char in printed if char != "\n" and not char.isprintable()] == []
    # In a narrow column, a text may be cut anywhere: after its escaped line feed, too.
    below = pairwise(["", *map(str.rstrip, printed.splitlines())])
    assert not any(line.startswith("error: forged") and not above.endswith(r"\n") for above, line in below)
    assert (r"\u202e" in "".join(printed.split())) is (name not in SILENT), printed
    as_json = perform(blog, name, "--json")
    assert [char for char in as_json.out + as_json.err if char != "\n" and not char.isprintable()] == []
    live = perform(blog, name, terminal=True)
    assert FOREIGN.findall(live.out + live.err) == []


def test_a_question_shows_what_it_is_about() -> None:
    answer = Mock(return_value=True)
    assert Session(answer=answer, has_person=lambda: True).confirm(TEXT, yes=False)
    answer.assert_called_once_with(SHOWN)


def test_a_fault_shows_where_without_what_the_text_does(monkeypatch: pytest.MonkeyPatch) -> None:
    @command()
    def fails(session: Session) -> None:
        raise KeyError(session, TEXT)

    monkeypatch.setitem(main.counters.commands, "fails", fails)
    monkeypatch.setenv("COUNTERS_DEBUG", "1")
    done = run("fails")
    assert (done.code, "in fails" in done.err) == (Exit.FAULT, True)
    assert FOREIGN.findall(done.err) == []
