"""The live page in a real browser: right, live, quiet, self-contained, and accessible.

With ``SCREENSHOTS=docs/figures`` its pictures are written there; look at them before committing. Run only this file
then: views of other tests would be in the pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from simulation.night import NIGHT
from tests.e2e.conftest import ANSWER_SECONDS, Blog, eventually, violations
from tests.e2e.demonstration import PROJECT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e

MOST = 4 if NIGHT or os.environ.get("SCREENSHOTS") else 1  # Pictures show so many times as many views.
DESKTOP = {"width": 1100, "height": 600}
LOOKS: dict[str, dict[str, Any]] = {
    **{scheme: {"color_scheme": scheme, "viewport": DESKTOP} for scheme in ("light", "dark")},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True},
}
EVERY_LOOK = ["light", *(pytest.param(look, marks=pytest.mark.night) for look in ("dark", "phone"))]
PAGES = ["exactly-once", "hot-partitions", "rolling-windows", "time-to-live", "retractions", "leaderboards", "costs"]


def views(now: datetime) -> list[dict[str, str]]:
    """Return views of the last day: few at night, most of them of the first page."""
    hours = [4, 3, 2, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 12, 12, 13, 14, 15, 15, 14, 12, 10, 8, 6]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        {"url": f"/blog/{page}", "time": moment.isoformat(), "clientId": f"{page}-{number}"}
        for rank, page in enumerate(PAGES)
        for hour, weight in enumerate(hours)
        for number in range((weight * MOST + hour * 5 % 3) // (rank + 1))
        for moment in [today + timedelta(hours=hour, seconds=number * 53)]
        for moment in [moment if moment < now else moment - timedelta(days=1)]
    ]


@pytest.fixture(scope="module")
def visited(blog: Blog) -> Blog:
    events = views(datetime.now(UTC))
    for start in range(0, len(events), 500):
        assert blog.post(events[start : start + 500])[0] == 202
    expected = [sum(view["url"] == f"/blog/{page}" for view in events) for page in PAGES]
    assert eventually(lambda: [blog.views(f"/blog/{page}") for page in PAGES] == expected)
    return blog


@pytest.fixture
def look() -> str:
    return "light"


@pytest.fixture
def page(browser: Browser, look: str) -> Iterator[Page]:
    context = browser.new_context(**LOOKS[look], timezone_id="UTC")
    context.set_default_timeout(ANSWER_SECONDS * 1000)
    yield context.new_page()
    context.close()


def number(page: Page, selector: str) -> int:
    return int(page.locator(selector).inner_text().replace(",", ""))


def wait_for(page: Page, selector: str, text: str) -> None:
    # Not by a function in the page: its policy forbids evaluating text.
    assert eventually(lambda: text in page.locator(selector).inner_text()), page.locator(selector).inner_text()


def total(blog: Blog) -> int:
    return int(blog.ask("v1/site")[1]["measures"]["site_views"])


def last_day(blog: Blog, url: str) -> int:
    return int(blog.ask("v1/views_24h", url=url, last="24h")[1]["count"])


def active(blog: Blog) -> int:
    return int(blog.ask("v1/active", last="30d")[1]["count"])


def steps(page: Page) -> list[int]:
    return [int(text.replace(",", "")) for text in page.locator("#steps td:last-child").all_text_contents()]


def hurried(page: Page) -> Page:
    """Speed up the page's timers, its patience with a busy machine included: refreshes every second, not every four."""
    for name in ("setInterval", "setTimeout"):
        page.add_init_script(f"const {name}s = {name}; {name} = (call, ms, ...rest) => {name}s(call, ms / 4, ...rest)")
    return page


def without_beacon(page: Page) -> Page:
    """Keep the page from counting its own visit, so that what it shows does not change."""
    page.add_init_script("navigator.sendBeacon = () => true")
    return hurried(page)


def open_live(page: Page, blog: Blog) -> None:
    without_beacon(page).goto(blog.url)
    wait_for(page, "#state", "Live")


def top(blog: Blog) -> list[tuple[str, str]]:
    ranked = blog.ask("v1/views/top", limit="10")[1]["groups"]
    return [(group["values"]["url"], f"{group['measures']['views']:,}") for group in ranked]


def rank(page: Page, views: dict[str, int]) -> None:
    """Have the page ranked as if its groups had so many views."""
    ranked = [{"values": {"url": url}, "measures": {"views": number}} for url, number in views.items()]
    page.route("**/top?*", lambda route: route.fulfill(json={"aggregate": "views", "groups": ranked}))


def shown_top(page: Page) -> list[tuple[str, str]]:
    lines = [line.split("\t") for line in page.locator("#top").inner_text().splitlines() if line.strip()]
    return list(zip(page.locator("#top button").all_inner_texts(), [line[-1] for line in lines], strict=True))


@pytest.mark.parametrize("look", EVERY_LOOK)
def test_the_page_fits_and_is_accessible(visited: Blog, page: Page, look: str) -> None:
    open_live(page, visited)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box: Any = page.locator("#plot canvas").bounding_box()
    assert (box["width"] > 250, 200 < box["height"] < 500) == (True, True)
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=PROJECT / directory / f"live-page-{look}.png", full_page=True)
    page.locator("summary").click()
    assert violations(page) == []


@pytest.mark.parametrize("look", EVERY_LOOK)
def test_the_page_is_right_alive_and_quiet(visited: Blog, page: Page, look: str) -> None:
    messages, urls = list[str](), list[str]()
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"error: {error}"))
    page.on("request", lambda request: urls.append(request.url))
    before = total(visited)
    # Once at the page's own pace.
    (page if look == "light" else hurried(page)).goto(visited.url)
    wait_for(page, "#state", "Live")
    assert page.locator("#updated-at").inner_text()

    # On a busy machine the page's own visit is counted before the first look at it.
    assert number(page, "#total") in (before, before + 1)
    assert eventually(lambda: shown_top(page) == top(visited))
    # Each minute some view becomes too old: page and API agree as soon as both asked in the same one.
    first, last = top(visited)[0][0], top(visited)[-1][0]
    assert eventually(lambda: number(page, "#count") == last_day(visited, first) == sum(steps(page)))
    assert len(steps(page)) == 24

    # The beacon of this very visit, and the view of another client, appear without a reload.
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    assert visited.post({"url": last, "time": now, "clientId": f"late-{look}"})[0] == 202
    wait_for(page, "#total", f"{before + 2:,}")
    assert number(page, "#total") == total(visited) == before + 2
    page.get_by_role("button", name=last, exact=True).click()
    # One page's name may begin another's: the pressed row says which one is shown.
    assert eventually(lambda: page.locator("#top button[aria-pressed=true]").inner_text() == last)
    wait_for(page, "#group", last)
    assert messages == []
    assert [url for url in urls if not url.startswith((visited.url, "data:"))] == []


def test_a_keyboard_is_enough(visited: Blog, page: Page) -> None:
    # At the page's own pace: a refresh between key and look would rebuild the focused row.
    page.add_init_script("navigator.sendBeacon = () => true")
    page.goto(visited.url)
    wait_for(page, "#state", "Live")
    second = page.locator("#top button").nth(1)
    for _ in range(10):
        page.keyboard.press("Tab")
        if second.evaluate("element => element === document.activeElement"):
            break
    assert second.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    name = second.inner_text()
    page.keyboard.press("Enter")
    wait_for(page, "#group", name)
    # Each refresh rebuilds the rows; the focus stays where it was.
    stamp = page.locator("#updated-at").inner_text()
    assert eventually(lambda: page.locator("#updated-at").inner_text() != stamp)
    assert page.evaluate("document.activeElement.textContent") == name
    assert page.locator("#top button[aria-pressed=true]").inner_text() == name


def test_the_page_says_when_it_cannot_reach_the_api(visited: Blog, page: Page) -> None:
    open_live(page, visited)
    counted = number(page, "#total")
    page.route("**/v1/**", lambda route: route.abort())
    wait_for(page, "#state", "Not reachable")
    # The last known count stays, with its time.
    assert number(page, "#total") == counted
    assert page.locator("#updated-at").is_visible()
    assert violations(page) == []
    page.unroute("**/v1/**")
    wait_for(page, "#state", "Live")
    # It starts when the API is back, too.
    page.route("**/settings.json", lambda route: route.abort())
    page.reload()
    wait_for(page, "#state", "Not reachable")
    page.unroute("**/settings.json")
    wait_for(page, "#state", "Live")
    assert number(page, "#total") == total(visited)


@pytest.mark.night
def test_the_members_of_the_last_days_are_shown_if_there_are_some(visited: Blog, page: Page) -> None:
    open_live(page, visited)
    clients = {view["clientId"] for view in views(datetime.now(UTC))}
    # The page counts no visit of its own here.
    assert eventually(lambda: number(page, "#members") == active(visited) >= len(clients))
    assert page.locator("#active-title").inner_text() == "Unique in the last 30 days"
    settings = {name: value for name, value in visited.ask("page/settings.json")[1].items() if name != "active"}
    page.route("**/settings.json", lambda route: route.fulfill(json=settings))
    page.reload()
    wait_for(page, "#state", "Live")
    assert not page.locator("#active").is_visible()
    assert violations(page) == []


@pytest.mark.night
def test_the_bars_have_a_line_at_each_level_that_is_reached(visited: Blog, page: Page) -> None:
    rank(page, {"/a": 50, "/b": 5})
    open_live(page, visited)
    assert page.locator("#lines").inner_text() == "popular: 10, 100"

    def has_lines(*levels: str) -> bool:
        image = page.locator("#top tr").first.evaluate("element => getComputedStyle(element).backgroundImage")
        return image.count("linear-gradient") == 1 + len(levels) and all(level in image for level in levels)

    assert eventually(lambda: has_lines("20%"))
    rank(page, {"/a": 400, "/b": 5})
    page.reload()
    assert eventually(lambda: "400" in page.locator("#top").inner_text() and has_lines("2.5%", "25%"))
    assert violations(page) == []


@pytest.mark.night
def test_a_page_without_counts_says_so(visited: Blog, page: Page) -> None:
    nothing = {"aggregate": "site", "values": {}, "measures": {"site_views": 0}, "groups": []}
    page.route("**/v1/**", lambda route: route.fulfill(json=nothing))
    open_live(page, visited)
    assert number(page, "#total") == 0
    assert page.locator("#empty").is_visible()
    assert not page.locator("#window").is_visible()
    assert violations(page) == []


@pytest.mark.parametrize("look", ["light", pytest.param("phone", marks=pytest.mark.night)])
def test_a_hostile_name_is_shown_as_text(visited: Blog, page: Page, look: str) -> None:
    name = f"/{look}/<img src=x onerror=alert(1)>{'w' * 300}"
    rank(page, {name: 10**15, "/": 1})
    open_live(page, visited)
    assert page.locator("#top button").first.inner_text() == name
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_policy_lets_nothing_in_from_elsewhere(visited: Blog, page: Page) -> None:
    answer = without_beacon(page).goto(visited.url)
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    fetch = "fetch('https://example.com/').then(() => 'let through', (error) => `refused: ${error.message}`)"
    assert page.evaluate(fetch).startswith("refused")


@pytest.mark.night
@pytest.mark.parametrize("status", [None, 431])
def test_a_group_whose_window_cannot_be_asked_for_is_shown_without_it(
    visited: Blog, page: Page, status: int | None
) -> None:
    # The text has 3,602 bytes, 10,806 in a query: more than API Gateway takes of a request's head.
    leader = "é" * 1801 if status is None else "/refused"
    first = f"/blog/{PAGES[0]}"
    rank(page, {leader: 2000, first: 7})
    page.route("**/v1/views_24h**refused**", lambda route: route.fulfill(status=status or 500))
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    open_live(page, visited)
    assert leader in page.locator("#top").inner_text()
    assert page.locator("#top button").all_inner_texts() == [first]
    assert (page.locator("#group").inner_text(), number(page, "#count")) == (first, last_day(visited, first))
    stamp = page.locator("#updated-at").inner_text()
    assert eventually(lambda: page.locator("#updated-at").inner_text() != stamp)
    assert page.locator("#state").inner_text() == "Live"
    # Each is asked for once at most.
    assert sum("refused" in url for url in urls) <= 2
    assert not any(len(url) > 10_000 for url in urls)
    assert violations(page) == []


def test_without_any_window_to_ask_for_the_rest_is_shown(visited: Blog, page: Page) -> None:
    rank(page, {"é" * 1801: 2000})
    open_live(page, visited)
    assert number(page, "#total") == total(visited)
    assert "é" * 1801 in page.locator("#top").inner_text()
    assert not page.locator("#window").is_visible()
