"""The leaderboard and the pages, on a table in memory that is evaluated anew at each question."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast

import pytest

from demo.drain import read_settled
from demo.events import Course
from demo.example import Example
from demo.game import submissions
from demo.leaderboard import Leaderboard
from demo.pages import Pages
from demo.progress import Progress
from demo.site import created, visited
from dynamodb_counters import Aggregate, Counters, Distinct, Event, Group, evaluate
from dynamodb_counters._reads.rankings import Ranked
from dynamodb_counters._writes.insert import Outcome
from examples.leaderboard_declarations import LEADERBOARD, PLAYERS
from examples.pages_declarations import PAGES, TOTAL, VIEWS, VISITORS


class Table:
    """Answers like `Counters`, off by what `errors` says of an aggregate."""

    def __init__(self, *declarations: Aggregate | Distinct, errors: Mapping[str, int]) -> None:
        self.declarations = declarations
        self.errors = errors
        self.events: dict[object, tuple[Event, Mapping[str, Any]]] = {}

    def accept_many(self, event: Event, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        return [Outcome("accepted" if self._insert(event, values) else "duplicate") for values in events]

    def _insert(self, event: Event, values: Mapping[str, Any]) -> bool:
        before = len(self.events)
        self.events.setdefault((event.name, *values.values()), (event, values))
        return len(self.events) > before

    def retract(self, event: Event, values: Mapping[str, Any]) -> bool:
        return self.events.pop((event.name, *values.values()), None) is not None

    def _groups(self, aggregate: Aggregate) -> list[Group]:
        return evaluate(self.declarations, self.events.values()).get(aggregate.name, [])

    def get(self, aggregate: Aggregate, values: Mapping[str, Any]) -> Group:
        error = self.errors.get(aggregate.name, 0)
        for group in self._groups(aggregate):
            if group.values == values:
                numbers = {name: n + error if isinstance(n, int) else n for name, n in group.measures.items()}
                return Group(values, numbers)
        return Group(values, {name: measure.read(name, {}) for name, measure in aggregate.measures.items()})

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [self.get(aggregate, values) for aggregate, values in groups]

    def group(self, aggregates: list[Aggregate], values: Mapping[str, Any]) -> dict[str, list[Group]]:
        return {aggregate.name: [self.get(aggregate, values)] if self.events else [] for aggregate in aggregates}

    def histogram(self, aggregate: Aggregate, values: Mapping[str, Any], measure: str) -> Mapping[int, int]:
        bins: Mapping[int, int] = self.get(aggregate, values).measures[measure]
        return bins

    def distinct(self, declared: Distinct, values: Mapping[str, Any]) -> int:
        return int(self.get(declared.total, values).measures["distinct"])

    def top(self, aggregate: Aggregate, count: int) -> list[Ranked]:
        ranked = [Ranked(group.values, group.measures["paths"]) for group in self._groups(aggregate)]
        return sorted(ranked, key=lambda entry: -entry.score)[:count]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.example.read_settled", partial(read_settled, sleep=lambda _: None))


def _leaderboard(**errors: int) -> Leaderboard:
    table = Table(PLAYERS, LEADERBOARD, errors=errors)
    return Leaderboard(cast("Counters", table), submissions(random.Random(1), 0.2))


def _pages(**errors: int) -> Pages:
    rng, table = random.Random(1), Table(VIEWS, PAGES, TOTAL, VISITORS, errors=errors)
    return Pages(cast("Counters", table), created(rng, 0.2), visited(rng, 0.2))


def _progress() -> Progress:
    return Progress(io.StringIO())


@pytest.mark.parametrize("example", [_leaderboard(), _pages()])
def test_what_is_counted_right_is_found_exact(example: Example) -> None:
    finding = example.finding(example.send(_progress()))

    assert finding.differences() == []
    assert finding.checked == sum(map(len, finding.found.values())) > 20
    assert example.totals() == example.expected_totals()
    assert all(len(line) < 110 for line in finding.lines)


@pytest.mark.parametrize(
    ("example", "wrong"),
    [
        (_leaderboard(leaderboard=1), {"totals of active_players", "totals of total_paths"}),
        (_leaderboard(players=1), {"players of player-07"}),
        (_pages(total=1), {"totals of page views"}),
        (_pages(pages=1), {"totals of pages"}),
        (_pages(visitors=-1), {"totals of users"}),
        (_pages(views=1), {"views of page-01"}),
    ],
)
def test_what_is_counted_wrong_is_told(example: Example, wrong: set[str]) -> None:
    finding = example.finding(example.send(_progress()))

    assert wrong <= {line.partition(": ")[2].partition(":")[0] for line in finding.differences()}


def test_equal_scores_may_be_named_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    example = _leaderboard()
    account = example.send(_progress())
    ranked = Table.top(cast("Table", example.counters), PLAYERS, 45)

    last = ranked[9].score
    others = [entry for entry in ranked if entry.score == last and entry not in ranked[:10]]
    monkeypatch.setattr(example.counters, "top", lambda *_, **__: [*ranked[:9], *others][:10])
    assert others
    assert example.finding(account).differences() == []

    monkeypatch.setattr(example.counters, "top", lambda *_, **__: ranked[1:11])
    assert example.finding(account).differences()


def test_examples_without_events_count_nothing() -> None:
    board = Leaderboard(cast("Counters", Table(PLAYERS, LEADERBOARD, errors={})), Course())
    site = Pages(cast("Counters", Table(VIEWS, PAGES, TOTAL, VISITORS, errors={})), Course(), Course())

    for example in (board, site):
        assert example.finding(example.send(_progress())).differences() == []
