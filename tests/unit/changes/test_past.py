"""Where a declaration begins that is new to a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Ranking, Sum, Window
from dynamodb_counters._changes.effective import Past, merged
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.groups import generation

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
RECENT = Window("recent", SALE, pk="SHOP#{shop}", time="at", retention=timedelta(days=2))
RANKED = replace(SHOPS, ranking=Ranking(measure="n", leaderboard="SHOPS"))
TOTAL = Aggregate("total", SHOPS, pk="TOTAL", sk="ALL", measures={"n": Sum("n")})
BIG = Attr("price").gt(100)


def _begins(declared: Declaration, *deployments: tuple[Declaration, ...] | None, numbered: int = 0) -> int:
    return Past(deployments, numbered).number(declared, "", keeps=declared.on_change == "keep")


@pytest.mark.parametrize(
    ("declared", "past"),
    [
        (SHOPS, []),
        (SHOPS, [(RECENT,)]),
        (SHOPS, [(SHOPS,)]),
        (replace(SHOPS, max_groups=5), [(SHOPS,)]),
        (replace(SHOPS, where=BIG, on_change="keep"), [(SHOPS,)]),
        (RECENT, [(replace(RECENT, name="other"),)]),
    ],
    ids=["nothing", "other keys", "as it was", "other limits", "keep", "another window"],
)
def test_a_declaration_begins_in_items_as_declared_where_no_other_has_written(
    declared: Declaration, past: list[Any]
) -> None:
    assert _begins(declared, *past, numbered=4) == 0


@pytest.mark.parametrize(
    ("declared", "before"),
    [
        (SHOPS, replace(SHOPS, name="stores")),
        (SHOPS, replace(SHOPS, name="stores", pk="SHOP#{customer}", where=BIG)),
        (SHOPS, replace(SHOPS, where=BIG)),
        (SHOPS, replace(SHOPS, sk="ELSEWHERE")),
        (RECENT, replace(RECENT, where=BIG)),
        (RANKED, replace(RANKED, name="stores", pk="STORE#{shop}")),
        (SHOPS, replace(SHOPS, name="stores", pk="X", source=replace(SALE, name="shops"))),
        (SHOPS, replace(SHOPS, name="stores", pk="X", source=replace(SALE, pk="SHOP#{id}", sk="ALL"))),
        (SHOPS, None),
    ],
    ids=["keys", "alike", "filter", "other keys", "window", "leaderboard", "event name", "event keys", "unreadable"],
)
def test_a_declaration_begins_in_a_new_generation_where_another_may_have_written(
    declared: Declaration, before: Declaration | None
) -> None:
    past = None if before is None else (before,)
    assert _begins(declared, past) == 1
    assert _begins(declared, past, (generation(replace(RECENT, name="days"), 6),), numbered=4) == 7
    assert _begins(declared, past, numbered=8) == 9


def test_a_declaration_goes_on_in_the_last_generation_that_was_counted_alone() -> None:
    filled, left = (SHOPS, generation(SHOPS, 1)), (generation(SHOPS, 1),)
    given_up = (generation(SHOPS, 1), generation(SHOPS, 2))

    assert _begins(SHOPS, (SHOPS,), filled) == 0
    assert _begins(SHOPS, (SHOPS,), filled, left) == 1
    assert _begins(SHOPS, (SHOPS,), filled, left, given_up) == 1
    assert _begins(SHOPS, (replace(SHOPS, where=BIG),), filled, left) == 1
    assert _begins(replace(SHOPS, where=BIG), (replace(SHOPS, where=BIG),), filled, left) == 2


def test_counts_over_an_aggregate_go_on_over_the_same_groups_only() -> None:
    held, redefined = (SHOPS, TOTAL), generation(SHOPS, 3)
    past = Past((held,))

    assert past.number(TOTAL, "shops", keeps=False) == 0
    assert past.number(TOTAL, "shops~3", keeps=False) == 1
    found = merged((SHOPS, TOTAL), (redefined,), {"shops": 3}, past)
    assert [each.name for each in found.effective] == ["shops~3", "total~4"]
    assert found.reads == {"shops": 3, "total": 4}


def test_changes_in_place_take_no_keys_of_another() -> None:
    moved = replace(SHOPS, sk="MOVED", on_change="keep")
    other = replace(SHOPS, name="other", sk="MOVED")

    assert merged((moved,), (SHOPS,)).changes["shops"].kind == "keep"
    assert merged((moved,), (SHOPS,), {}, Past(((other,),))).changes["shops"].kind == "waits"
