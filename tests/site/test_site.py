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

from tests.site.blocks import DOCS, PROJECT

_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")
_NOT_PAGES = {"genindex.html", "py-modindex.html", "search.html"}
_LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}


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
