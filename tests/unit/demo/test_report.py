from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from demo.example import Finding, Numbers, Reading
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.examples.pages.example import Pages
from demo.examples.pages.traffic import Page, Visit
from demo.report import Result, summary
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account
from tests.unit.demo.fakes import NOW, finding

BLOG = Blog([View("/a", NOW.isoformat(), "c")] * 2, NOW)
SITE = finding(
    BLOG,
    {
        "all views": {"the site": 1},
        "views": {"/a": 1},
        "requests": {"c": 1},
        "views in 24 h": {"/a": 1},
        **BLOG.declared.measures.expected(BLOG.truth, {}),
    },
)
PAGES = Pages(
    Deliveries([Page("/a"), Page("/a")]), Deliveries([Visit("/a", "ann"), Visit("/b", "ann")], [Visit("/b", "ann")])
)
EXACT = finding(PAGES, {"totals": {"pages": 1, "page views": 1, "users": 1}, "views": {"/a": 1, "/b": 0}})


def _counting(counts: Numbers) -> Finding:
    return replace(EXACT, reading=Reading(counts))


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (_counting({**EXACT.found, "views": {"/a": 1, "/b": 1}}), "views of /b: 1, must be 0"),
        (_counting({"totals": EXACT.found["totals"]}), "views of /a: 0, must be 1"),
        (_counting({**EXACT.found, "more": {"/b": 1}}), "more of /b: 1, must be 0"),
        (replace(EXACT, account=Account(Counter(accepted=3), withdrawn=1)), "responses of duplicate: 0, must be 1"),
        (replace(EXACT, account=replace(EXACT.account, withdrawn=0)), "responses of withdrawn: 0, must be 1"),
        (replace(EXACT, account=replace(EXACT.account, reasons=Counter(throttled=2))), "2 events throttled"),
    ],
)
def test_differences_are_reported(changed: Finding, difference: str) -> None:
    assert changed.differences() == [f"pages: {difference}"]


def _result(pages: Finding = EXACT, stalled: str | None = None) -> Result:
    return Result([SITE, pages], 12.34, stalled)


def test_the_last_lines_name_every_difference_and_every_limit() -> None:
    many = {f"player-{number:02}": 1 for number in range(30)}
    limits = ["CountersBlog: 2 invocations timed out after 60.00 seconds"]
    text = summary(replace(_result(_counting({**EXACT.found, "more": many}), "the counts stalled"), limits=limits))

    named = [f"pages: more of player-{number:02}: 1, must be 0" for number in range(30)]
    assert text.endswith("\n".join([*named, "the counts stalled", *limits, "NOT EXACT: 30 differences (12 s)"]))
