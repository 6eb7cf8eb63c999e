"""Explanations while events come, change and are counted: what the reads missed is a difference that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from dynamodb_counters._explain.explainer import CHANGED, INCOMPLETE, UNEXPLAINED, make_explainer
from dynamodb_counters._explain.reach import Reach
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.explain.test_explanations import NOW, SALE, SHOPS, sale


@contextmanager
def meanwhile(counters: CountersInMemory, change: Callable[[], Any], *, ahead: bool = True) -> Iterator[None]:
    """Have something happen once, before or after the Query of the events."""
    asked, acts = counters._memory.query, [change]

    def query(**request: Any) -> Any:
        if "sale" not in repr(request) or not acts:
            return asked(**request)
        act = acts.pop()
        if ahead:
            act()
        answer = asked(**request)
        if not ahead:
            act()
        return answer

    counters._memory.query = query  # type: ignore[method-assign]
    yield
    counters._memory.query = asked  # type: ignore[method-assign]
    assert not acts


@pytest.mark.parametrize(
    "change",
    [
        lambda counters: counters.accept(SALE, sale(3, 9)),
        lambda counters: counters.accept(SALE, sale(2, 9, revision=2)),
        lambda counters: counters.retract(SALE, sale(1)),
        lambda counters: counters.record_once(SALE, sale(3), [SHOPS]),
    ],
    ids=["accepted", "replaced", "retracted", "counted at once"],
)
def test_a_change_between_the_reads_is_a_difference_that_says_so(change: Callable[[Any], Any]) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        with meanwhile(counters, lambda: change(counters), ahead=False):
            found = counters.explain(SHOPS, shop="a")
        assert found.count == 2
        [rest] = found.differences
        assert (rest.adds, rest.reason) == (found.difference, CHANGED)
        assert counters.explain(SHOPS, shop="a").differences == []


def test_a_change_that_both_the_lines_and_the_last_read_show_is_no_difference() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        with meanwhile(counters, lambda: counters.accept(SALE, sale(2))):
            found = counters.explain(SHOPS, shop="a")
        assert (found.numbers, found.count, found.differences) == ({"sales": 2, "taken": 10}, 2, [])


def test_an_event_whose_record_is_on_its_way_is_a_difference_that_asks_for_patience() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        [item] = [one for one in counters._tables[0].items() if one.get("_type") == {"S": "sale"}]
        found = make_explainer(counters._table, SHOPS, {"shop": "a"})
        rows = [*found.reach.rows(SHOPS)]
        late = (item | {"price": {"N": "7"}}, *rows[0][1:])
        with patch.object(Reach, "rows", lambda *_: iter((*rows, late))):
            [rest] = found.explain().differences
        assert (dict(rest.adds), rest.reason) == ({"sales": -1, "taken": -7}, UNEXPLAINED)


def test_a_name_that_is_not_filled_says_so() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        key = {"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "DECLARED#shops"}}
        [entry] = [one for one in counters._tables[0].items() if one["sk"] == key["sk"]]
        counters.client.put_item(TableName="counters", Item=entry | {"state": {"S": "waiting"}})
        [group] = [one for one in counters._tables[0].items() if one.get("_type") == {"S": "shops"}]
        counters.client.delete_item(TableName="counters", Key={name: group[name] for name in ("pk", "sk")})
        [rest] = counters.explain(SHOPS, shop="a").differences
        assert rest.reason == INCOMPLETE
