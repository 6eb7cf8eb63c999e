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

pytestmark = [pytest.mark.e2e, pytest.mark.night]

_PAGE = PROJECT / "docs" / "survive.html"
_LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 800}, "reduced_motion": "reduce"},
    "dark phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}, "reduced_motion": "reduce"},
    "moving phone": {"viewport": {"width": 390, "height": 844}},
}
_STILL = ["light", "dark phone"]
_REASON = re.compile(r"Refused: watermark ([A-Z])(\d+) is not before \1(\d+)")


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
    page.clock.install()
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


@pytest.mark.parametrize("look", _STILL)
def test_every_run_ends_exact_and_its_plain_increment_wrong(page: Page, data: dict[str, Any]) -> None:
    for number, story in enumerate(data["stories"]):
        page.get_by_label("Run").select_option(story["name"])
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
    page.clock.run_for(20_000)
    assert page.locator("#forward").is_disabled()
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


@pytest.mark.parametrize("look", ["moving phone"])
def test_the_first_run_starts_by_itself_and_holds_where_an_update_is_refused(page: Page) -> None:
    assert page.locator("#play").inner_text() == "Pause"
    captions = []
    for _ in range(60):
        captions.append(page.locator("#kind").inner_text())
        page.clock.run_for(1000)
    refused = [caption for caption in captions if _REASON.fullmatch(caption)]
    assert [refused.count(one) for one in dict.fromkeys(refused)] == pytest.approx([4, 4], abs=1)
    assert page.locator("#kind").inner_text() == "The end"
    assert page.locator("#play").inner_text() == "Play"


@pytest.mark.parametrize("look", _STILL)
def test_a_reader_who_wants_no_motion_starts_the_run(page: Page) -> None:
    page.clock.run_for(30_000)
    assert position(page)[0] == 0
    assert page.locator("#play").inner_text() == "Play"


@pytest.mark.parametrize(("look", "animation"), [("light", "none"), ("moving phone", "flash")])
def test_a_refused_update_flashes_with_its_reason(page: Page, data: dict[str, Any], animation: str) -> None:
    seen = 0
    for number, story in enumerate(data["stories"]):
        page.get_by_label("Run").select_option(story["name"])
        for step, frame in enumerate(resolved(story["frames"], data["texts"])):
            if any("Refused" in text for text in frame["x"]):
                go_to(page, step)
                reason = _REASON.fullmatch(page.locator("#kind").inner_text())
                assert reason is not None, (number, step)
                shard, watermark, first = reason.groups()
                assert int(watermark) >= int(first)
                assert f"{shard}{watermark}" in page.locator("#items tr.refused small").first.inner_text().split()
                for marked in ("#happened", "#items tr.refused", "#path li.refused"):
                    shown = page.locator(marked).evaluate("it => getComputedStyle(it).animationName")
                    assert shown == animation, marked
                seen += 1
    assert seen > len(data["stories"])


@pytest.mark.parametrize("look", ["moving phone"])
def test_a_phone_shows_the_counts_under_play_and_the_caption_everywhere(page: Page) -> None:
    play, counts = page.locator("#play").bounding_box(), page.locator("#counts").bounding_box()
    assert play is not None
    assert counts is not None
    assert 0 <= counts["y"] - (play["y"] + play["height"]) <= 16
    for share in (0, 0.5, 1):
        page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", share)
        caption = page.locator("#happened").bounding_box()
        assert caption is not None
        assert caption["y"] >= 0
        assert caption["y"] + caption["height"] <= 844
        # A reader sees the caption and the counts together.
        assert share or counts["y"] + counts["height"] <= caption["y"]


def test_a_watermark_is_explained_where_it_first_appears(page: Page) -> None:
    words = page.locator("body").inner_text()
    assert page.locator("dfn").inner_text() == "watermark"
    assert words.lower().index("watermark") == words.index("watermark per stream shard: the last record that is in it.")


def test_the_way_of_a_view_is_marked_where_a_step_happens(page: Page, data: dict[str, Any]) -> None:
    for step, frame in enumerate(data["stories"][0]["frames"]):
        go_to(page, step)
        kind = data["kinds"][frame["k"]]
        place = {"write": "Writer", "batch": "Stream", "kill": "Function", "end of batch": "Function"}
        expected = [] if kind in {"begin", "end"} else [place.get(kind, "Items")]
        assert page.locator("#path li[class]:not([class='']) b").all_text_contents() == expected, step
