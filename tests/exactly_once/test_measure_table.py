"""The table of docs/measures.md: a cell that schedules do not prove is derived by doing it.

Results are compared with those of a table that has only ever seen the events that are left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

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
from dynamodb_counters._declarations import Declaration, flatten
from dynamodb_counters._reads.question import ORDERS
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import counters_in_memory

DAY: Final = timedelta(days=1)
START: Final = datetime(2026, 11, 15, tzinfo=UTC)
END: Final = START + 5 * DAY
SALE: Final = Event("sale", key=("buyer", "id"), version="revision", retention=20 * DAY)

Events: TypeAlias = list[dict[str, Any]]


def _sale(number: int, day: int, amount: int, buyer: str = "ann", revision: int = 1) -> dict[str, Any]:
    at = (START + day * DAY).isoformat()
    return {"id": f"{number}", "buyer": buyer, "shop": "a", "at": at, "amount": amount, "revision": revision}


SALES: Final = [_sale(1, 0, 3), _sale(2, 1, 90), _sale(3, 2, 7, "bob"), _sale(4, 4, 3), _sale(5, 4, 40, "cem")]


@dataclass(frozen=True)
class Measured:
    """A measure: how it is declared, and how it is read."""

    declare: Callable[..., Any]
    read: Callable[[Counters, Any], Any]

    def declared(self, **options: Any) -> list[Declaration]:
        return [*flatten([self.declare(**options)])]

    def of(self, events: Iterable[Mapping[str, Any]], **options: Any) -> Any:
        """The result of a table that has seen these events alone."""
        declared = self.declare(**options)
        with counters_in_memory([declared], now=END) as counters:
            counters.accept_many(SALE, [dict(each) for each in events])
            return self.read(counters, declared)


def _aggregate(*, by: str = "shop", ranking: Ranking | None = None, **measure: Any) -> Measured:
    def declare(**options: Any) -> Aggregate:
        return Aggregate("sales", SALE, by=by, measures=measure, ranking=ranking, **options)

    def read(counters: Counters, declared: Aggregate) -> Any:
        measures = dict(counters.get(declared, shop="a").measures)
        if ranking is None:
            return measures
        return measures, [
            (each.values, score) for each in counters.top(declared, count=3) if (score := each[ranking.measure])
        ]

    return Measured(declare, read)


def _window(measure: Any, read: Callable[[Any], Any]) -> Measured:
    def declare(**options: Any) -> Window:
        return Window("sales", SALE, by="shop", time="at", measure=measure, longest=5 * DAY, **options)

    return Measured(declare, lambda counters, declared: read(counters.window(declared, shop="a")))


def _of(kind: Any, read: Callable[[Counters, Any], Any], **arguments: Any) -> Measured:
    return Measured(lambda **options: kind("sales", SALE, **{"by": "shop", **arguments, **options}), read)


def _extremes(counters: Counters, declared: Extremes) -> Any:
    largest, smallest = (counters.extremes(declared, shop="a", count=9, order=order) for order in ORDERS)
    return [[(each.value, each.items, each.shown) for each in found] for found in (largest, smallest)]


def _active(counters: Counters, declared: ActiveMembers) -> Any:
    users = counters.window(declared, shop="a")
    return [[each.count for each in users.rolling(START, END, length * DAY)] for length in (1, 2, 3)]


MEASURES: Final = {
    "Count": _aggregate(sales=Count()),
    "Sum": _aggregate(paid=Sum("amount")),
    "Average": _aggregate(paid=Average("amount")),
    "Histogram": _aggregate(paid=Histogram("amount", bounds=[0, 10, 50])),
    "Ranking": _aggregate(sales=Count(), ranking=Ranking("sales", leaderboard="SHOPS")),
    "Distinct": _of(Distinct, lambda counters, one: counters.get(one.total, shop="a")["distinct"], member="buyer"),
    "Window": _window(Sum("amount"), lambda window: [each.count for each in window.series(START, END, step=DAY)]),
    "TimeWeighted": _window(
        TimeWeighted("amount"), lambda window: (window.integral(START, END).value, window.integral(START, END).closing)
    ),
    "Percentiles": _of(Percentiles, lambda counters, one: dict(counters.get(one, shop="a").bins), attribute="amount"),
    "ActiveMembers": _of(ActiveMembers, _active, member="buyer", time="at", longest=3 * DAY),
    "Extremes": _of(Extremes, _extremes, attribute="amount", show="id"),
}


def _same(measured: Measured, found: Any, events: Events, word: str = "exact", **options: Any) -> str:
    wanted = measured.of(events, **options)
    assert wanted != measured.of(SALES), "the operation changes nothing that is read"
    return word if found == wanted else "wrong"


def _asked(ask: Callable[[Any], str], measured: Measured) -> str:
    """The answer to a call that takes a declaration."""
    try:
        return ask(measured.declare())
    except InvalidArgumentError:
        return "refused"


def correction(measured: Measured) -> str:
    declared, changed = measured.declare(), _sale(2, 3, 5, "ann", 2)
    with counters_in_memory([declared], now=END) as counters:
        counters.accept_many(SALE, SALES)
        counters.accept(SALE, changed)
        counters.retract(SALE, SALES[4])
        found = measured.read(counters, declared)
    return _same(measured, found, [SALES[0], SALES[2], SALES[3], changed])


def in_pages(measured: Measured) -> str:
    try:
        found = measured.of(SALES, pages=True)
    except InvalidArgumentError:
        return "refused"
    except TypeError:
        paged = {isinstance(part, Aggregate) and part.pages for part in measured.declared()}
        return "always" if paged == {True} else "refused"
    return "exact" if found == measured.of(SALES) else "wrong"


def recorded_once(measured: Measured) -> str:
    def ask(declared: Any) -> str:
        with counters_in_memory([measured.declare()], now=END) as counters:
            for sale in SALES:
                assert counters.record_once(SALE, sale, [declared]).status == "accepted"
            return "exact" if measured.read(counters, measured.declare()) == measured.of(SALES) else "wrong"

    return _asked(ask, measured)


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
    cells = {row[0].strip("`"): row[1:] for row in rows}
    return {(name, column): cell for name, row in cells.items() for column, cell in zip(head[1:], row, strict=True)}


def test_the_table_has_every_measure_and_column() -> None:
    assert _table().keys() >= {(name, column) for name in MEASURES for column in COLUMNS}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", MEASURES)
def test_a_cell_says_what_the_measure_does(name: str, column: str) -> None:
    assert COLUMNS[column](MEASURES[name]) == _table()[name, column]
