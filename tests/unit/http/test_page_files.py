"""The live page's files: served with a policy that they obey; no other file is served."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dynamodb_counters.handlers import api as page
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http.handlers import call_api, environment, request
from tests.unit.infra.support import PROJECT

SOURCES = PROJECT / "infra" / "cdk_dynamodb_counters" / "page"
HTML = (SOURCES / "index.html").read_text()


@pytest.fixture(autouse=True)
def _page(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setenv("PAGE", json.dumps({"title": "</script>"}))
    monkeypatch.setattr(page, "DIRECTORY", SOURCES)


def serve(path: str) -> dict[str, Any]:
    response: dict[str, Any] = page.handler(request("GET", path), LAMBDA_CONTEXT)
    return response


def loaded(file: Path) -> Iterator[str]:
    """Find the files that the browser loads because of this one."""
    text = file.read_text()
    yield from re.findall(r"""(?:src|href)="page/([^"]+)\"""", text)
    yield from re.findall(r"""^import .* from "\./([^"]+)";$""", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted({*page.FILES, "settings.json"}))
def test_a_file_comes_with_a_policy_that_lets_nothing_else_in(name: str) -> None:
    response = serve(f"/page/{name}")
    headers = response["headers"]
    content_types = {"css": "text/css", "html": "text/html", "js": "text/javascript", "json": "application/json"}
    assert response["statusCode"] == 200
    assert headers["Content-Type"].startswith(content_types[name.rpartition(".")[2]])
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/settings.json"])
def test_a_file_is_loaded_each_time(path: str) -> None:
    assert serve(path)["headers"]["Cache-Control"] == "no-cache"


def test_the_root_is_the_page() -> None:
    assert serve("/")["body"] == HTML


def test_nothing_stands_in_the_page_that_its_policy_forbids() -> None:
    assert re.findall(r"""\s(?:style|on\w+)=""", HTML) == []
    assert "<style" not in HTML
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", HTML))


def test_every_file_is_loaded_and_every_loaded_file_is_served() -> None:
    found = {name for file in page.FILES for name in loaded(SOURCES / file)}
    assert found == page.FILES - {"index.html"}


@pytest.mark.parametrize("name", ["uplot.LICENSE", "../api.py", "..%2fpage.css", "/etc/passwd", "", "."])
def test_no_other_file_is_served(name: str) -> None:
    assert call_api(request("GET", f"/page/{quote(name, safe='')}"))[0] == 404


def test_without_a_page_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGE")
    assert call_api(request("GET", "/"))[0] == 404
