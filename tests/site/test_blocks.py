"""Every Python block of the documentation runs and gives what its comments promise; the site builds, links lead on."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.integration.waiting import execute
from tests.site.blocks import DOCS, PROJECT, Block, blocks, pages, run
from tests.site.world import World

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
