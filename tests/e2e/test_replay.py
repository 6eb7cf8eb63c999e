"""docs/survive.html: what a fresh recording says, and in a real browser right, quiet, self-contained and accessible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from simulation.replay.page import assembled, recorded
from simulation.replay.run import FAULTS
from simulation.replay.stories import STORIES
from simulation.replay.tape import Texts
from tests.e2e.conftest import PROJECT, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e

_PAGE = PROJECT / "docs" / "survive.html"
_LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 800}},
    "dark phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}, "reduced_motion": "reduce"},
}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', _PAGE.read_text(), re.DOTALL)
    assert found is not None
    committed: dict[str, Any] = json.loads(found[1])
    return committed


@pytest.fixture
def look() -> str:
    return "light"


@pytest.fixture
def page(browser: Browser, look: str) -> Iterator[Page]:
    """The page; afterwards, that it has said nothing and asked for nothing."""
    context = browser.new_context(**_LOOKS[look])
    context.set_default_timeout(20_000)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(_PAGE.as_uri())
    yield page
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [_PAGE.as_uri()]
    context.close()


def numbers(page: Page, column: str) -> list[int]:
    return [int(text) for text in page.locator(f"#items .{column} strong").all_text_contents()]


def position(page: Page) -> tuple[int, int]:
    found = re.fullmatch(r"Step (\d+) of (\d+)", page.locator("#position").inner_text())
    assert found is not None
    return int(found[1]), int(found[2])


def go_to(page: Page, step: int) -> None:
    page.locator("#scrubber").evaluate("(it, step) => { it.value = step; it.dispatchEvent(new Event('input')) }", step)


def resolved(frames: list[dict[str, Any]], texts: list[str]) -> list[dict[str, Any]]:
    return [{**frame, "x": [texts[number] for number in frame["x"]]} for frame in frames]


@pytest.mark.parametrize("number", [0, len(STORIES) - 1])
def test_the_page_has_what_a_fresh_recording_has(data: dict[str, Any], number: int) -> None:
    texts = Texts()
    # Branches of one story stand for those of all.
    fresh = json.loads(json.dumps(recorded(STORIES[number], texts, branched=number == 0)))
    committed, known = data["stories"][number], list(texts.numbers)
    assert resolved(committed["frames"], data["texts"]) == resolved(fresh["frames"], known)
    for key, frames in fresh["branches"].items():
        assert resolved(committed["branches"][key], data["texts"]) == resolved(frames, known), key
    assert number or committed["branches"].keys() == fresh["branches"].keys()


def test_the_page_is_assembled_from_its_parts(data: dict[str, Any]) -> None:
    assert _PAGE.read_text() == assembled(data)
    assert _PAGE.stat().st_size < 600_000


@pytest.mark.parametrize("look", _LOOKS)
def test_every_run_ends_exact_and_its_plain_increment_wrong(page: Page, data: dict[str, Any]) -> None:
    for number, story in enumerate(data["stories"]):
        page.get_by_role("button", name=story["name"], exact=True).click()
        assert position(page) == (0, len(story["frames"]) - 1)
        go_to(page, position(page)[1])
        assert numbers(page, "exact") == numbers(page, "written"), number
        assert sum(numbers(page, "written")) == data["events"]
        assert sum(numbers(page, "plain")) > data["events"]
        assert page.locator("#items .wrong").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("table").evaluate("it => it.scrollWidth <= it.parentElement.clientWidth")
    assert violations(page) == []


def test_it_plays_to_the_end_and_steps_by_keys(page: Page) -> None:
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert position(page)[0] == 2
    page.keyboard.press("ArrowLeft")
    assert position(page)[0] == 1
    page.get_by_role("button", name="Step forward").click()
    page.get_by_role("button", name="Step back").click()
    assert position(page)[0] == 1
    page.locator("#speed").select_option("8")
    go_to(page, position(page)[1] - 3)
    page.locator("#play").focus()
    page.keyboard.press("Enter")
    assert page.locator("#play").inner_text() == "Pause"
    page.locator("#forward:disabled").wait_for()
    assert page.locator("#play").inner_text() == "Play"
    assert page.locator("#kind").inner_text() == "The end"
    page.locator("#play").evaluate("it => it.blur()")
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Pause"
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Play"


def test_each_fault_can_be_injected(page: Page) -> None:
    for fault in FAULTS:
        go_to(page, 8)
        assert page.locator(f"[data-fault={fault}]").is_enabled(), fault
        page.locator(f"[data-fault={fault}]").click()
        assert "injected" in page.locator("#injected").inner_text()
        assert page.locator("#happened.fault").count() == 1, fault
        go_to(page, position(page)[1])
        assert numbers(page, "exact") == numbers(page, "written"), fault
        page.locator("#original").click()
        assert not page.locator("#injected").is_visible()
