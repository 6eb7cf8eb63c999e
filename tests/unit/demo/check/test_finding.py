from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from demo.check.finding import Finding, Numbers, Reading
from demo.sending.send import Account

EXACT = Finding(
    "game",
    Account(Counter(accepted=4, duplicate=1), withdrawn=1),
    {"accepted": 4, "duplicate": 1, "withdrawn": 1},
    Reading({"totals": {"paths": 3}, "players": {"ann": 3, "bob": 0}}),
    {"totals": {"paths": 3}, "players": {"ann": 3, "bob": 0}},
)


def test_what_is_exact_has_no_differences() -> None:
    assert EXACT.differences() == []
    assert EXACT.checked == 3


def _counting(counts: Numbers) -> Finding:
    return replace(EXACT, reading=Reading(counts))


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (_counting({**EXACT.found, "players": {"ann": 3, "bob": 1}}), "players of bob: 1, must be 0"),
        (_counting({"players": EXACT.found["players"]}), "totals of paths: 0, must be 3"),
        (_counting({**EXACT.found, "more": {"bob": 1}}), "more of bob: 1, must be 0"),
        (replace(EXACT, account=Account(Counter(accepted=4), withdrawn=1)), "responses of duplicate: 0, must be 1"),
        (replace(EXACT, account=replace(EXACT.account, withdrawn=0)), "responses of withdrawn: 0, must be 1"),
        (replace(EXACT, account=replace(EXACT.account, reasons=Counter(throttled=2))), "2 events throttled"),
    ],
)
def test_whatever_is_wrong_is_told(changed: Finding, difference: str) -> None:
    assert changed.differences() == [f"game: {difference}"]
