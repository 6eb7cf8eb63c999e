from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from demo.cost import Costs
from demo.example import Finding, Numbers, Reading
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.examples.packed.example import Packed
from demo.examples.pages.example import Pages
from demo.examples.pages.traffic import Page, Visit
from demo.report import Result, report, summary
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account
from tests.unit.demo.fakes import NOW, finding

BLOG = Blog([View("/a", NOW.isoformat(), "c")] * 2, NOW)
SITE = finding(
    BLOG,
    {"all views": {"the site": 1}, "views": {"/a": 1}, "requests": {"c": 1}, "views in 24 h": {"/a": 1}},
    costs=Costs(1.0, 2.0, 0.5, {}),
)
PAGES = Pages(
    Deliveries([Page("/a"), Page("/a")]), Deliveries([Visit("/a", "ann"), Visit("/b", "ann")], [Visit("/b", "ann")])
)
EXACT = finding(PAGES, {"totals": {"pages": 1, "page views": 1, "users": 1}, "views": {"/a": 1, "/b": 0}})


def test_what_is_exact_has_no_differences() -> None:
    assert EXACT.differences() == []
    assert EXACT.checked == 5


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
def test_whatever_is_wrong_is_told(changed: Finding, difference: str) -> None:
    assert changed.differences() == [f"pages: {difference}"]


PACKED = replace(
    SITE,
    example=Packed(BLOG.views, NOW),
    reading=replace(SITE.reading, counts={**SITE.found, "events": {"/a": 1}}),
    costs=Costs(0.0123, 0.25, 0.5, {}, 0.002),
)


def _result(pages: Finding = EXACT, stalled: str | None = None) -> Result:
    return Result([SITE, pages], 12.34, stalled)


def test_the_report_has_the_agreed_shape() -> None:
    written = json.loads(json.dumps(report(_result())))

    assert written.keys() == {*BLOG.section(SITE), "pages", "exact", "differences", "seconds"}
    assert (written["exact"], written["differences"], written["seconds"]) == (True, [], 12.3)
    assert written["pages"] == {
        "events_sent": 4,
        "accepted": 3,
        "duplicates_rejected": 1,
        "withdrawn": 1,
        **EXACT.found,
    }


def test_the_prices_of_both_doors_stand_beside_each_other() -> None:
    result = Result([SITE, EXACT, PACKED], 1.0)
    document = report(result)

    assert document["write_units_per_event"] == {"accept": 1.0, "aggregate": 2.0}
    assert document["write_units_per_event_packed"] == {"accept": 0.0123, "aggregate": 0.25}
    assert document["packed"]["read_units_per_event"] == 0.002
    assert document["packed"]["views"] == document["views"]
    assert document["packed"]["events_read_back"] == 1
    assert PACKED.differences() == []
    assert (
        "write units            1.00 to accept a view sent, 2.00 to aggregate a distinct one\n"
        "    packed             0.0123 to accept a view sent, 0.2500 to aggregate a distinct one; 0.0020 read units"
    ) in summary(result)


def test_the_summary_has_each_examples_lines_and_the_verdict() -> None:
    text = summary(_result())

    for found in _result().findings:
        assert "\n".join(found.example.lines(found)) in text
    assert "events sent            blog: 2, pages: 4\n" in text
    assert "duplicates rejected    blog: 1, pages: 1\n" in text
    assert f"EXACT: all {SITE.checked + EXACT.checked} counts are right (12 s)" in text


def test_whatever_is_wrong_is_reported() -> None:
    line = "pages: views of /a: 2, must be 1"
    result = _result(_counting({**EXACT.found, "views": {"/a": 2}}))

    assert report(result)["differences"] == result.differences() == [line]
    assert report(result)["exact"] is False
    assert f"\n{line}\nNOT EXACT: 1 differences (12 s)" in summary(result)


def test_the_last_lines_name_every_difference_and_every_limit() -> None:
    many = {f"player-{number:02}": 1 for number in range(30)}
    limits = ["CountersBlog: 2 invocations timed out after 60.00 seconds"]
    text = summary(replace(_result(_counting({**EXACT.found, "more": many}), "the counts stalled"), limits=limits))

    named = [f"pages: more of player-{number:02}: 1, must be 0" for number in range(30)]
    assert text.endswith("\n".join([*named, "the counts stalled", *limits, "NOT EXACT: 30 differences (12 s)"]))


def test_limits_that_cost_no_count_are_no_news() -> None:
    text = summary(replace(_result(), limits=["CountersBlog: 2 invocations timed out after 60.00 seconds"]))

    assert "timed out" not in text
    assert "\nEXACT: all" in text
