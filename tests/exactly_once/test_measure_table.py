"""The table of docs/measures.md: a cell that schedules do not prove is derived by doing it.

Results are compared with those of a table that has only ever seen the events that are left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Average,
    Count,
    Counters,
    Distinct,
    Event,
    Extremes,
    Histogram,
    Percentiles,
    Ranking,
    Sum,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import flatten
from dynamodb_counters._reads.question import ORDERS
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import counters_in_memory

DAY: Final = timedelta(days=1)
START: Final = datetime(2026, 11, 15, tzinfo=UTC)
END: Final = START + 5 * DAY
SALE: Final = Event("sale", key=("buyer", "id"), version="revision", retention=20 * DAY)


def _sale(number: int, day: int, amount: int, buyer: str = "ann", revision: int = 1) -> dict[str, Any]:
    at = (START + day * DAY).isoformat()
    return {"id": f"{number}", "buyer": buyer, "shop": "a", "at": at, "amount": amount, "revision": revision}


SALES: Final = [_sale(1, 0, 3), _sale(2, 1, 90), _sale(3, 2, 7, "bob"), _sale(4, 4, 3), _sale(5, 4, 40, "cem")]


class Measured(NamedTuple):
    """A measure: how it is declared, and how it is read."""

    declare: Callable[..., Any]
    read: Callable[[Counters, Any], Any]

    def of(self, events: list[dict[str, Any]], **options: Any) -> Any:
        """The result of a table that has seen these events alone."""
        declared = self.declare(**options)
        with counters_in_memory([declared], now=END) as counters:
            counters.accept_many(SALE, events)
            return self.read(counters, declared)


def _of(kind: Any, read: Callable[[Counters, Any], Any], **arguments: Any) -> Measured:
    return Measured(partial(kind, "sales", SALE, **{"by": "shop", **arguments}), read)


def _window(measure: Any, read: Callable[[Any], Any]) -> Measured:
    arguments: dict[str, Any] = {"time": "at", "measure": measure, "longest": 5 * DAY}
    return _of(Window, lambda counters, declared: read(counters.window(declared, shop="a")), **arguments)


def _measures(counters: Counters, declared: Aggregate) -> Any:
    return dict(counters.get(declared, shop="a").measures)


def _ranked(counters: Counters, declared: Aggregate) -> Any:
    return _measures(counters, declared), [(each.values, each["n"]) for each in counters.top(declared) if each["n"]]


def _extremes(counters: Counters, declared: Extremes) -> Any:
    largest, smallest = (counters.extremes(declared, shop="a", count=9, order=order) for order in ORDERS)
    return [[(each.value, each.items, each.shown) for each in found] for found in (largest, smallest)]


def _active(counters: Counters, declared: ActiveMembers) -> Any:
    users = counters.window(declared, shop="a")
    return [[each.count for each in users.rolling(START, END, length * DAY)] for length in (1, 2, 3)]


def _level(window: Any) -> Any:
    found = window.integral(START, END)
    return found.value, found.closing


MEASURES: Final = {
    "Count": _of(Aggregate, _measures, n=Count()),
    "Sum": _of(Aggregate, _measures, paid=Sum("amount")),
    "Average": _of(Aggregate, _measures, paid=Average("amount")),
    "Histogram": _of(Aggregate, _measures, paid=Histogram("amount", bounds=[0, 10, 50])),
    "Ranking": _of(Aggregate, _ranked, n=Count(), ranking=Ranking("n", leaderboard="SHOPS")),
    "Distinct": _of(Distinct, lambda counters, one: counters.get(one.total, shop="a")["distinct"], member="buyer"),
    "Window": _window(Sum("amount"), lambda window: [each.count for each in window.series(START, END, step=DAY)]),
    "TimeWeighted": _window(TimeWeighted("amount"), _level),
    "Percentiles": _of(Percentiles, lambda counters, one: dict(counters.get(one, shop="a").bins), attribute="amount"),
    "ActiveMembers": _of(ActiveMembers, _active, member="buyer", time="at", longest=3 * DAY),
    "Extremes": _of(Extremes, _extremes, attribute="amount", show="id"),
}


def correction(measured: Measured) -> str:
    declared, changed = measured.declare(), _sale(2, 3, 5, "ann", 2)
    with counters_in_memory([declared], now=END) as counters:
        counters.accept_many(SALE, SALES)
        counters.accept(SALE, changed)
        counters.retract(SALE, SALES[4])
        found = measured.read(counters, declared)
    wanted = measured.of([SALES[0], SALES[2], SALES[3], changed])
    assert wanted != measured.of(SALES), "the operation changes nothing that is read"
    return "exact" if found == wanted else "wrong"


def in_pages(measured: Measured) -> str:
    try:
        found = measured.of(SALES, pages=True)
    except InvalidArgumentError:
        return "refused"
    except TypeError:
        paged = {isinstance(part, Aggregate) and part.pages for part in flatten([measured.declare()])}
        return "always" if paged == {True} else "refused"
    return "exact" if found == measured.of(SALES) else "wrong"


def recorded_once(measured: Measured) -> str:
    declared = measured.declare()
    with counters_in_memory([declared], now=END) as counters:
        try:
            for sale in SALES:
                assert counters.record_once(SALE, sale, [declared]).status == "accepted"
        except InvalidArgumentError:
            return "refused"
        return "exact" if measured.read(counters, declared) == measured.of(SALES) else "wrong"


COLUMNS: Final[Mapping[str, Callable[[Measured], str]]] = {
    "correction": correction,
    "pages": in_pages,
    "`record_once`": recorded_once,
}


def _table() -> dict[tuple[str, str], str]:
    """The cells of the page by measure and column."""
    text = (Path(__file__).parents[2] / "docs" / "measures.md").read_text(encoding="utf-8")
    found = re.search(r"^\| measure \|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    [head, _, *rows] = [[cell.strip() for cell in line.strip("| ").split("|")] for line in found[0].splitlines()]
    return {(row[0].strip("`"), name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", MEASURES)
def test_a_cell_says_what_the_measure_does(name: str, column: str) -> None:
    assert COLUMNS[column](MEASURES[name]) == _table()[name, column]
