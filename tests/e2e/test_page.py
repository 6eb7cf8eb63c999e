"""The live page in a real browser: right, alive, quiet, alone, and accessible.

With ``SCREENSHOTS=docs/figures`` its pictures are written there; look at them before committing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import IN_CI
from tests.e2e.conftest import Blog, eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e

PROJECT = Path(__file__).resolve().parents[2]
AXE = PROJECT / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1100, "height": 760}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}, "is_mobile": True},
}
PAGES = ["/blog/exactly-once", "/blog/hot-partitions", "/blog/ttl", "/about", "/blog/<script>alert(1)</script>"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    missing = [what for what, there in (("chromium", shutil.which("chromium")), (str(AXE), AXE.exists())) if not there]
    if missing:
        message = f"the page is tested with {' and '.join(missing)}: apt install chromium; npm ci"
        pytest.fail(message, pytrace=False) if IN_CI else pytest.skip(message)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only here is it needed

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def visited(blog: Blog) -> Blog:
    now = datetime.now(UTC).replace(microsecond=0)
    views = [
        {"url": url, "time": (now - timedelta(minutes=place * 37 % 1400)).isoformat(), "clientId": f"p{place}"}
        for rank, url in enumerate(PAGES)
        for place in range(120 // (rank + 1))
    ]
    assert blog.post(views)[0] == 202
    assert eventually(lambda: blog.views(PAGES[0]) >= 120 and blog.views(PAGES[-1]) >= 24)
    return blog


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(browser: Browser, look: str) -> Iterator[Page]:
    context = browser.new_context(**LOOKS[look])
    yield context.new_page()
    context.close()


def number(page: Page, selector: str) -> int:
    return int(page.locator(selector).inner_text().replace(",", ""))


def wait_for(page: Page, selector: str, text: str) -> None:
    # Not by a function in the page, which its policy forbids to be made of text.
    assert eventually(lambda: text in page.locator(selector).inner_text(), 40), page.locator(selector).inner_text()


def total(blog: Blog) -> int:
    return int(blog.ask("v1/aggregates/site")[1]["measures"]["site_views"])


def test_the_page_is_right_alive_quiet_and_accessible(visited: Blog, page: Page, look: str) -> None:
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    before = total(visited)
    page.goto(visited.url)
    wait_for(page, "#state", "Live")

    assert number(page, "#total") == before
    ranked = visited.ask("v1/aggregates/views/top", count="10")[1]["ranked"]
    shown = [line.split("\t") for line in page.locator("#top").inner_text().splitlines() if line.strip()]
    assert [row[-1] for row in shown] == [f"{one['score']:,}" for one in ranked]
    assert page.locator("#top button").all_inner_texts() == [one["values"]["url"] for one in ranked]
    counted = visited.ask("v1/windows/views_24h", url=ranked[0]["values"]["url"], last="24h")[1]["count"]
    assert number(page, "#count") == counted
    steps = [int(text.replace(",", "")) for text in page.locator("#steps td:last-child").all_text_contents()]
    assert (len(steps), sum(steps)) == (24, counted)
    assert page.locator("#plot canvas").count() == 1

    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=PROJECT / directory / f"live-page-{look}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    # The beacon of this very visit, and somebody else's view, appear without a reload.
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    assert visited.post({"url": "/blog/ttl", "time": now, "clientId": f"late-{look}"})[0] == 202
    wait_for(page, "#total", f"{before + 2:,}")
    assert number(page, "#total") == total(visited) == before + 2
    page.locator("#top button", has_text="/blog/ttl").click()
    wait_for(page, "#group", "/blog/ttl")
    assert page.locator("#top button[aria-pressed=true]").inner_text() == "/blog/ttl"
    page.locator("summary").click()

    # By the browser's own means: the page's policy lets no script in, not even this one.
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE.read_text()})
    found = page.evaluate("axe.run()")
    serious = [one["id"] for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert serious == [], found["violations"]
    assert len(found["passes"]) > 10

    assert said == []
    assert [url for url in asked if not url.startswith((visited.url, "data:"))] == []


def test_the_page_says_when_it_cannot_reach_the_api(visited: Blog, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(visited.url)
    wait_for(page, "#state", "Live")
    page.route("**/v1/**", lambda route: route.abort())
    wait_for(page, "#state", "Not reachable")
    page.unroute("**/v1/**")
    wait_for(page, "#state", "Live")
    context.close()


def test_the_policy_lets_nothing_in_from_elsewhere(visited: Blog, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(visited.url)
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    refused = page.evaluate(
        "fetch('https://example.com/').then(() => 'let through', (error) => `refused: ${error.message}`)"
    )
    assert refused.startswith("refused")
    context.close()
