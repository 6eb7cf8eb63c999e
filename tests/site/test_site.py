"""The site builds strictly, without a network, and its links lead somewhere on the repository's host, too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.site.blocks import DOCS, PROJECT

_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")


@pytest.mark.night
def test_the_site_builds_strictly_without_a_network(tmp_path: Path) -> None:
    """Sphinx refuses links, anchors and pictures that lead nowhere, and pages that no other leads to."""
    closed = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "HTTP", "HTTPS")}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=600, env=os.environ | closed,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_links_lead_to_files_on_the_repositorys_host(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    links = [found["target"] or found["picture"] for found in _LINK.finditer(text)]
    local = [link for link in links if not urlsplit(link).scheme and link[0] != "#"]
    assert [link for link in local if not (page.parent / unquote(urlsplit(link).path)).exists()] == []
