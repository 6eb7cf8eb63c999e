"""The drawn pictures in a real browser: no text is cut off or covered, and their colors follow light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.e2e.conftest import PROJECT
from tests.unit.test_figures import DRAWN

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.night]

_FIGURES = PROJECT / "docs" / "figures"
_COLUMN = 358
"""Width of the text on the site, on a phone that is 390 pixels wide."""
_TEXTS = """() => [...document.querySelectorAll("text")].map((it) => {
  const { x, y, width, height } = it.getBBox();
  return { words: it.textContent, left: x, top: y, right: x + width, bottom: y + height };
})"""


@pytest.mark.parametrize("name", DRAWN)
def test_texts_of_a_picture_are_whole_and_apart(browser: Browser, name: str) -> None:
    page = browser.new_page()
    page.goto((_FIGURES / f"{name}.svg").as_uri())
    texts: list[dict[str, Any]] = page.evaluate(_TEXTS)
    _, _, width, height = map(float, (page.locator("svg").get_attribute("viewBox") or "").split())
    size = float(page.locator("svg").get_attribute("font-size") or 0)
    page.close()

    assert size * _COLUMN / width >= 11
    assert [it["words"] for it in texts if it["left"] < 0 or it["right"] > width or it["bottom"] > height] == []
    pairs = [(one, other) for at, one in enumerate(texts) for other in texts[at + 1 :]]
    assert [(one["words"], other["words"]) for one, other in pairs if _meet(one, other)] == []


def _meet(one: dict[str, Any], other: dict[str, Any]) -> bool:
    beside = one["right"] <= other["left"] or other["right"] <= one["left"]
    return not beside and one["top"] + 4 < other["bottom"] and other["top"] + 4 < one["bottom"]


def test_a_picture_is_light_or_dark_as_its_page_is(browser: Browser, tmp_path: Path) -> None:
    style = (PROJECT / "docs" / "_static" / "site.css").read_text()

    def seen(system: Literal["light", "dark"], theme: str) -> bytes:
        body = f"<body data-theme='{theme}'><article><img src='{(_FIGURES / 'change.svg').as_uri()}'></article>"
        (shown := tmp_path / "page.html").write_text(f"<!doctype html><style>{style}</style>{body}")
        page = browser.new_page(color_scheme=system)
        page.goto(shown.as_uri())
        picture = page.locator("img").screenshot()
        page.close()
        return picture

    light, dark = seen("light", "auto"), seen("dark", "auto")
    assert light != dark
    assert (seen("dark", "light"), seen("light", "dark")) == (light, dark)
