"""The site builds strictly, its links lead somewhere, every page is reached, and nothing comes from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import cdk_dynamodb_counters.testing
import dynamodb_counters.testing
from tests.site.blocks import DOCS, PROJECT

_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")
_NOT_PAGES = {"genindex.html", "py-modindex.html", "search.html"}
_LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
_FETCHED_BY_STYLES = re.compile(r"""(?:@import\s+["']?|url\(\s*["']?)(?:https?:)?//""")


class Html(HTMLParser):
    """Links of a page, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if "id" in named:
            self.anchors.add(named["id"])
        if tag == "a" and "href" in named:
            self.links.add(named["href"])
        if (attribute := _LOADED.get(tag)) in named and named.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.add(named[str(attribute)])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; whatever asks for a network meets a closed door."""
    output = tmp_path_factory.mktemp("site")
    closed = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "HTTP", "HTTPS")}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(output)],
        capture_output=True, text=True, check=False, timeout=600, env=os.environ | closed,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return output


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Html]:
    return {str(path.relative_to(site)): Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.night
def test_every_page_is_built_and_reached_from_the_index(pages: dict[str, Html]) -> None:
    sources = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    assert sources - {"adr/000-template.html"} <= set(pages)

    reached, new = set(), {"index.html"}
    while new:
        name = new.pop()
        reached.add(name)
        new |= {target for target, _ in internal(name, pages[name].links) if target in pages} - reached
    assert set(pages) - _NOT_PAGES <= reached


@pytest.mark.night
def test_links_lead_somewhere(site: Path, pages: dict[str, Html]) -> None:
    dead = [
        f"{name}: {target}#{anchor}"
        for name, page in pages.items()
        for target, anchor in internal(name, page.links | page.loaded)
        if not (site / target).exists() or (anchor and target in pages and anchor not in pages[target].anchors)
    ]
    assert dead == []


@pytest.mark.night
def test_pages_load_nothing_from_a_network(site: Path, pages: dict[str, Html]) -> None:
    fetched = [f"{name}: {it}" for name, page in pages.items() for it in page.loaded if urlsplit(it).netloc]
    styles = [path for path in site.rglob("*.css") if _FETCHED_BY_STYLES.search(path.read_text(encoding="utf-8"))]
    assert (fetched, styles) == ([], [])


@pytest.mark.night
def test_the_reference_has_all_that_is_public(pages: dict[str, Html]) -> None:
    documented = {anchor.rpartition(".")[2] for name, page in pages.items() if "api" in name for anchor in page.anchors}
    public = (dynamodb_counters, dynamodb_counters.testing, cdk_dynamodb_counters, cdk_dynamodb_counters.testing)
    assert {name for module in public for name in module.__all__} - documented == set()


@pytest.mark.night
def test_the_site_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "tutorials/first-hour" in index
    assert "watermark" in index


@pytest.mark.night
def test_every_page_has_a_markdown_copy_with_links_that_lead_somewhere(site: Path, pages: dict[str, Html]) -> None:
    copies = {path: _without_blocks(path) for path in site.rglob("*.md") if "_sources" not in path.parts}
    named = {name for name, page in pages.items() if f"{Path(name).stem}.md" in page.loaded}
    assert {str(path.relative_to(site).with_suffix(".html")) for path in copies} == named
    assert {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")} - named == {
        "adr/000-template.html"
    }
    assert dead_links(copies) == []
    assert [path.name for path in copies if "```{" in path.read_text(encoding="utf-8")] == []


@pytest.mark.night
def test_markdown_copies_of_the_reference_hold_the_docstrings(site: Path) -> None:
    text = (site / "api" / "declarations.md").read_text(encoding="utf-8")
    assert "class dynamodb_counters.Event(name, *, key=None" in text
    assert "The first\n        one is the partition key" in text
    assert "eval-rst" not in text


@pytest.mark.night
def test_llms_txt_lists_each_page_once_with_a_sentence(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    title, _, rest = text.partition("\n\n")
    assert title == "# DynamoDB counters"
    assert re.match(r"> [^\n]+\n\n[^\n]+\n\n## Start\n\n- ", rest)
    listed = re.findall(r"(?m)^- \[[^]]+\]\(([^)]+)\)(: .+)?$", text)
    pages = {str(path.relative_to(site)) for path in site.rglob("*.md") if "_sources" not in path.parts}
    assert sorted(page for page, _ in listed) == sorted(pages - {"index.md"})
    assert [page for page, sentence in listed if not sentence and not page.startswith("adr/0")] == []
    optional = text[text.index("## Optional") :]
    assert "\n## " not in optional
    assert "(exactly-once.md)" in optional


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_links_lead_to_files_on_the_repositorys_host(page: Path) -> None:
    assert dead_links({page: _without_blocks(page)}) == []


def _without_blocks(page: Path) -> str:
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


def dead_links(pages: dict[Path, str]) -> list[str]:
    links = [
        (page, found["target"] or found["picture"]) for page, text in pages.items() for found in _LINK.finditer(text)
    ]
    return [
        f"{page}: {it}"
        for page, it in links
        if not urlsplit(it).scheme and it[0] != "#" and not beside(page, it).exists()
    ]


def beside(page: Path, target: str) -> Path:
    return page.parent / unquote(urlsplit(target).path)


def internal(name: str, links: set[str]) -> Iterator[tuple[str, str]]:
    """Path in the site and anchor of the links that stay in it."""
    for link in links:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc:
            path = os.path.normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
            yield path, unquote(parts.fragment)
