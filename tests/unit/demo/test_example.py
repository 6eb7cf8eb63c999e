from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from demo.example import Finding, Numbers, Reading
from demo.examples.pages.example import Pages
from demo.examples.pages.traffic import Page, Visit
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account
from tests.unit.demo.fakes import finding

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
