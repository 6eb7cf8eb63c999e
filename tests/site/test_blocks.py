"""Every Python block of the documentation runs and gives what its comments promise; the site builds, links lead on."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import boto3
import pytest
from aws_cdk import Stack, aws_lambda
from moto import mock_aws

import dynamodb_counters
from dynamodb_counters import ActiveMembers, Aggregate, Counters, Distinct, Extremes, Percentiles, Ranks, Window
from dynamodb_counters._declarations import flatten
from simulation.counters_in_memory import CountersInMemory, Faults
from tests.integration.waiting import execute
from tests.site.blocks import DOCS, PROJECT, Block, blocks, pages, run
from tests.unit.infra.support import new_stack, synthesized

README = "../README.md"
PRELUDES = {
    "monitoring.md": """
from dynamodb_counters import Aggregate, Count, Event
VIEW = Event("view", key=("url", "time", "clientId"))
VIEWS = Aggregate("views", VIEW, by="url", measures={"views": Count()})
""",
    "erasure.md": """
import boto3
from dynamodb_counters import Counters, Event
from simulation.engines.tables import create_table
VIEW = Event("view", key=("url", "time", "clientId"))
client = boto3.Session().client("dynamodb")
create_table(client, "mine")
counters = Counters("mine", client=client)
""",
    "existing-tables.md": """
import os
from datetime import timedelta
from typing import Final
from aws_cdk import aws_dynamodb as dynamodb
from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from dynamodb_counters import Aggregate, Attr, Count, Counters, Distinct, Items, Sum, TableKeys
from examples.orders import BY_STATUS, LAST_DAY
import boto3
for number, cents in ("1001", 1990), ("1002", 3000):
    texts = {"PK": "CUSTOMER#ann", "SK": f"ORDER#{number}", "status": "paid", "placedAt": "2026-11-20T10:00:00Z"}
    item = {**{name: {"S": text} for name, text in texts.items()}, "cents": {"N": str(cents)}}
    boto3.client("dynamodb").put_item(TableName=os.environ["ORDERS_TABLE"], Item=item)
""",
    "pages.md": """
from dynamodb_counters import Aggregate, Distinct, Event, Packed
""",
    "windows.md": """
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo
from dynamodb_counters import Counters, Event, Window
JOB = Event("job", key=("customer", "id"))
counters = Counters(table_name)
then = end = datetime(2026, 11, 20, 12, tzinfo=UTC)
start = end - timedelta(days=7)
""",
}
"""Code that runs before the first block of a reference page."""
READMES = (README, "../infra/README.md", "../lambdas/README.md")
PAGES = {
    **{name: blocks(DOCS / name) for name in READMES},
    **{str(page.relative_to(DOCS)): blocks(page) for page in pages()},
}
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""The time on all pages."""

_COUNTED = (ActiveMembers, Aggregate, Distinct, Extremes, Percentiles, Ranks, Window)
_DECLARATIONS = {*(kind.__name__ for kind in _COUNTED), "Counter", "Event", "Items", "TableKeys"}


class World:
    """Names that a page's blocks share, tables in memory on which writes are counted, a stack for their constructs."""

    def __init__(self, blocks: list[Block], folder: Path) -> None:
        self._folder = folder
        self._stack: Stack | None = None
        self.names: dict[str, Any] = {"__name__": "page", "table_name": "counters"}
        self._declared = declarations(blocks)

    @cached_property
    def _counters(self) -> CountersInMemory:
        return CountersInMemory(flatten(self._declared), NOW, 0, Faults())

    def client(self) -> Any:
        """Return a client of the page's tables."""
        return self._counters.client

    def before(self, block: Block) -> None:
        """Offer a stack: a new one to a block that imports constructs, as it stands for an app of its own."""
        if block.file:
            self.names["__file__"] = str(self._folder / block.file)
            (self._folder / block.file).write_text(block.code, encoding="utf-8")
        elif ("(self" in block.code or "    self,\n" in block.code) and (
            "self" not in self.names or "from cdk_dynamodb_counters" in block.code
        ):
            self.synthesize()
            self._stack = stack = new_stack()
            code, runtime = aws_lambda.Code.from_inline("pass"), aws_lambda.Runtime.PYTHON_3_14
            function = aws_lambda.Function(stack, "Function", code=code, handler="index.handler", runtime=runtime)
            self.names |= {"self": stack, "function": function}

    def synthesize(self) -> None:
        """Synthesize the stack of the blocks so far."""
        if self._stack is not None:
            synthesized(self._stack)
            self._stack = None

    def _boto3_client(self, service: str, **more: Any) -> Any:
        return self.client() if service == "dynamodb" else boto3.Session().client(service, **more)  # type: ignore[call-overload]

    @contextmanager
    def running(self) -> Iterator[None]:
        defaults = {**(Counters.__init__.__kwdefaults__ or {}), "clock": NOW.timestamp}
        tables = {"TABLE_NAME": "counters", "COUNTERS_TABLE": "counters", "ORDERS_TABLE": "source"}
        with (
            mock_aws(),
            patch("dynamodb_counters._counters.make_client", self.client),
            patch("boto3.client", self._boto3_client),
            patch.object(Counters.__init__, "__kwdefaults__", defaults),
            patch.dict("os.environ", tables),
        ):
            yield
            self.synthesize()


def declarations(blocks: list[Block]) -> list[Any]:
    """Return declarations of a page over events, found without running the rest of it."""
    names: dict[str, Any] = vars(dynamodb_counters) | {name: getattr(dynamodb_counters, name) for name in _DECLARATIONS}
    names = {name: value for name, value in names.items() if not name.startswith("_")}
    for statement in (statement for block in blocks for statement in block.statements()):
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        value = getattr(statement, "value", None)
        declares = isinstance(value, ast.Call) and getattr(value.func, "id", "") in _DECLARATIONS
        if is_import or declares or isinstance(value, ast.Constant | ast.Dict | ast.Tuple | ast.ListComp):
            try:
                exec(compile(ast.Module([statement], []), "page", "exec"), names)
            except (ImportError, NameError):
                continue  # a page's own file, or what its prelude gives
    values = (item for value in names.values() for item in (value if isinstance(value, list) else [value]))
    return [*{id(value): value for value in values if isinstance(value, _COUNTED)}.values()]


_PRINTED = re.compile(r"print\([a-z.]+\)  # (.*)")


@pytest.mark.parametrize(
    "name",
    [name if name in (*READMES, "examples.md") else pytest.param(name, marks=pytest.mark.night) for name in PAGES],
)
def test_blocks_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    to_run = PAGES[name]
    prelude = Block(DOCS / name, 1, PRELUDES.get(name, ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    world = World([prelude, *to_run], tmp_path)
    try:
        with world.running():
            run(prelude, world.names)
            for block in to_run:
                world.before(block)
                run(block, world.names)
    finally:
        for file in tmp_path.glob("*.py"):
            sys.modules.pop(file.stem, None)
    printed = [line for block in to_run for line in _PRINTED.findall(block.code)]
    assert not printed or capsys.readouterr().out.splitlines() == printed
    if any(tmp_path.glob("test_*.py")):
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        roots = os.pathsep.join(str(PROJECT / root) for root in ("infra", "lambdas"))
        plugins = ["-p", "no:cacheprovider", "-p", "dynamodb_counters._pytest_plugin"]
        environment = outside | {"PYTHONPATH": roots, "CDK_VALIDATION": "false"}
        done = execute([sys.executable, "-m", "pytest", "-q", *plugins, "."], cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_value_that_is_not_as_promised_fails(tmp_path: Path) -> None:
    page = DOCS / "index.md"
    assert run(Block(page, 5, "len('ab')  # 2\n"), {}) == 1
    assert run(Block(page, 5, "len('ab')  # two\n"), {}) == 0
    with pytest.raises(AssertionError, match=r"docs/index.md:6: promised 3, found 2"):
        run(Block(page, 5, "a = 'ab'\nlen(a)  # 3\n"), {})


def test_pages_promise_values() -> None:
    page_blocks = [block for entries in PAGES.values() for block in entries]
    assert sum(block.promised(statement) is not None for block in page_blocks for statement in block.statements()) > 5


def test_preludes_are_of_pages_with_blocks() -> None:
    assert set(PRELUDES) <= set(PAGES)


_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")


@pytest.mark.night
def test_the_site_builds_strictly_without_a_network(tmp_path: Path) -> None:
    """Sphinx refuses links, anchors and pictures that lead nowhere, and pages that no other leads to."""
    closed = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "HTTP", "HTTPS")}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", DOCS, tmp_path]
    done = execute(command, timeout=600, env=os.environ | closed)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_links_lead_to_files_on_the_repositorys_host(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    links = [match["target"] or match["picture"] for match in _LINK.finditer(text)]
    local = [link for link in links if not urlsplit(link).scheme and link[0] != "#"]
    assert [link for link in local if not (page.parent / unquote(urlsplit(link).path)).exists()] == []
