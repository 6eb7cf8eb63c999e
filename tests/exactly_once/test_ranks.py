"""Ranks: those of the scores there are, whatever is delivered, corrected or taken back."""

from __future__ import annotations

import random
from collections.abc import Collection
from decimal import Decimal
from typing import Any, Final

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Counters, Event, Ranks, Sum
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._items.keys import Scale, derivation, expected_text, parts_of, scale_of
from dynamodb_counters._reads.question import ORDERS
from dynamodb_counters._reads.rank_reads import Board
from dynamodb_counters.errors import MalformedImageError
from simulation.counters_in_memory import counters_in_memory
from simulation.world import World
from tests.exactly_once.test_measures import (
    FAULTS,
    NOW,
    OF_EACH_SOURCE,
    ONCE,
    PACKED,
    SEEDS,
    Events,
    churn,
    event_of,
    numbers_of,
)


def _standing(scores: Collection[Any], score: Any, order: str = "largest") -> tuple[Any, ...]:
    before = sum(other > score if order == "largest" else other < score for other in scores)
    return before + 1, len(scores), score, [*scores].count(score)


def _check_ranks(counters: Counters, board: Ranks, scores: Collection[Decimal], rng: random.Random, **of: Any) -> None:
    """Compare ranks, scores at ranks and numbers between scores with all scores."""
    step = Decimal(1).scaleb(-board.places)
    some = sorted({*scores, *(score + step for score in scores if score < board.most), board.least, board.most})
    for order in ORDERS:
        for score in some:
            assert numbers_of(counters.rank(board, of, score=score, order=order)) == _standing(scores, score, order)
        for number, score in enumerate(sorted(scores, reverse=order == "largest"), 1):
            assert numbers_of(counters.at(board, of, rank=number, order=order)) == _standing(scores, score, order)
        assert numbers_of(counters.at(board, of, rank=len(scores) + 1, order=order)) == (None, len(scores), None, 0)
    for _ in range(30):
        low, high = sorted(rng.choices(some, k=2))
        between = counters.between(board, of, low=low, high=high)
        assert (between.count, between.of) == (sum(low <= score <= high for score in scores), len(scores))


_CLIENTS: Final = [f"c{number}" for number in range(12)]
_TWICE: Final = Attr("views").ge(2)


@OF_EACH_SOURCE
@SEEDS
def test_ranks_are_those_of_the_scores_there_are(seed: int, source: Event) -> None:
    rng = random.Random(seed)
    site = Ranks("site", source, score="bytes", least=-50, most=49)
    pages = Ranks("pages", source, by="url", score="ms", places=2, least=Decimal("-99.5"), most=20_000)
    # The members are groups with items of their own, or in pages.
    of_members: dict[str, Any] = {"by": ("url", "client"), "pages": source is PACKED}
    points = Aggregate("points", source, **of_members, points=Sum("ms"), views=Count())
    board = Ranks("board", points, by="url", score="points", places=1, least=-(10**6), most=10**6, where=_TWICE)

    def draw(key: str) -> dict[str, Any]:
        ms = rng.choice((Decimal(rng.randrange(-50, 50)), Decimal(0), Decimal(rng.randrange(-500, 490)) / 10))
        return event_of(key, url=rng.choice("ab"), client=rng.choice(_CLIENTS), ms=ms, bytes=int(ms))

    def choose(current: Events) -> list[str]:
        """All events of some members go."""
        return [key for key in sorted(current) if current[key]["client"] in ("c0", "c1") or rng.random() < 0.1]

    with counters_in_memory([points, site, pages, board], now=NOW, seed=seed, faults=FAULTS) as counters:
        events = churn(counters, source, rng, draw, choose)
        _check_ranks(counters, site, [event["bytes"] for event in events], rng)
        for url in "ab":
            own = [event for event in events if event["url"] == url]
            _check_ranks(counters, pages, [event["ms"] for event in own], rng, url=url)
            of_client = {client: [event["ms"] for event in own if event["client"] == client] for client in _CLIENTS}
            members = {client: Decimal(sum(ms)) for client, ms in of_client.items() if len(ms) >= 2}
            _check_ranks(counters, board, members.values(), rng, url=url)
            for client in (*_CLIENTS, "nobody"):
                rank = numbers_of(counters.rank(board, url=url, client=client))
                nobody = (None, len(members), None, 0)
                assert rank == (_standing(members.values(), members[client]) if client in members else nobody), client


def test_a_score_out_of_range_waits_for_its_ranks_alone() -> None:
    points = Aggregate("points", ONCE, by="client", points=Sum("bytes"))
    board = Ranks("board", points, score="points", least=5, most=250)
    world = World(points, board)

    def ranks(**added: Any) -> list[int | None]:
        number = len(world.records())
        world.accept(ONCE, *({"id": f"{client}{number}", "client": client, "bytes": added[client]} for client in added))
        world.settle()
        return [world.counters.rank(board, client=client).rank for client in "abcd"]

    assert ranks(a=5, b=250, c=4, d=Decimal("9.5")) == [2, 1, None, None]
    assert [world.counters.get(points, client=client)["points"] for client in "abcd"] == [5, 250, 4, Decimal("9.5")]
    words = "is none of 5 to 250 with at most 0 decimal places"
    reasons = {f"board: {ms} {words}; board-1: {ms} {words}" for ms in ("4", "9.5")}
    assert {entry.reason for entry in world.counters.quarantined()} == reasons
    assert ranks(a=-1, b=-1, c=4, d=Decimal("0.5")) == [None, 1, 3, 2]
    # Entries of what is out of range no more cancel each other.
    for entry in world.counters.quarantined():
        world.counters.redrive(entry)
    assert ranks() == [None, 1, 3, 2]
    assert ranks(a=1) == [4, 1, 3, 2]


def test_a_rank_is_found_while_a_page_lacks_what_the_one_above_has() -> None:
    board = Ranks("board", ONCE, score="bytes", least=0, most=99_999)
    world = World(board)
    world.accept(ONCE, *({"id": f"{number}", "bytes": number} for number in (7, 123, 45_678, 45_699)))
    world.settle()
    for name, expected in {"board": (1, 2, 45_600, 0), "board-1": (1, 2, 40_000, 0)}.items():
        world.delete(next(item for item in world.items(name) if "#456#" in str(item["sk"]) or name == "board-1"))
        assert numbers_of(world.counters.at(board, rank=2)) == expected
    page = object.__new__(Board)  # One that lacks a member that the page above has.
    page._table, page.digits, page.pages = world.counters._table, range(2), {(1, 0): {3: 3}, (0, 3): {5: 1, 8: 1}}
    assert [page.units_at(rank, "largest") for rank in (1, 2, 3)] == [308, 305, 305]


def test_a_removal_whose_insertion_still_waits_lowers_no_rank() -> None:
    board = Ranks("board", ONCE, score="bytes", least=0, most=9_999)
    world = World(board)
    world.accept(ONCE, *({"id": f"{number}", "bytes": number} for number in (5, 6, 7)))
    world.counters.retract(ONCE, {"id": "5"})
    world.deliver(world.records()[1:])
    assert [numbers_of(world.counters.rank(board, score=6, order=order)) for order in ORDERS] == [
        (2, 2, 6, 1),
        (1, 2, 6, 1),
    ]
    between = world.counters.between(board, low=0, high=6)
    assert (between.count, between.of) == (1, 2)


@pytest.mark.parametrize("writes", range(1, 8))
def test_no_rank_is_below_one_or_above_the_last_while_pages_differ(writes: int) -> None:
    board = Ranks("board", ONCE, score="bytes", least=0, most=9_999)
    world = World(board)
    world.accept(ONCE, *({"id": f"{number}", "bytes": score} for number, score in enumerate((150, 150, 150, 40))))
    world.settle()
    before = len(world.records())
    for number in range(4):
        world.counters.retract(ONCE, {"id": f"{number}"})
    world.kill(world.records()[before:], writes, after=True)
    for score in (0, 40, 150, 9_999):
        ranks = [world.reader().rank(board, score=score, order=order) for order in ORDERS]
        assert all(rank.rank is not None and 1 <= rank.rank <= rank.of + (rank.ties == 0) for rank in ranks)
        assert sum(rank.rank or 0 for rank in ranks) + ranks[0].ties == ranks[0].of + 2
    for low, high in ((0, 9_999), (45, 120), (41, 150), (150, 150)):
        between = world.reader().between(board, low=low, high=high)
        assert 0 <= between.count <= between.of


@pytest.mark.parametrize(
    ("places", "least", "most"), [(0, 0, 99), (0, -5, 10**9), (2, -123, 10**12 - 124), (9, 7, 107)]
)
def test_the_digits_of_a_score_are_how_far_it_is_above_the_least(places: int, least: int, most: int) -> None:
    scale, rng = Scale(places, least, most), random.Random(1)
    for units in (0, most - least, *(rng.randrange(most - least) for _ in range(50))):
        score, digits = scale.number_of(units), ""
        for level in range(scale.levels):
            fields = scale.fields("ms", level)
            derived = [derivation(parts_of(field)[1]) for field in fields]
            *above, digit = [how.text({"N": format_number(score)}) for how in derived if how is not None]
            assert [expected_text(*pair) for pair in zip(fields, (*above, digit), strict=True)] == [None] * len(fields)
            assert {scale_of(field) for field in fields} == {(scale, level)}
            digits = f"{digit}{digits}"
            assert int(f"{above[0] if above else ''}{digits}") == units
        assert Decimal(score) == Decimal(least + units).scaleb(-places)
    assert expected_text(f"ms:digit{places}.0.99.0", "7") == "two digits such as '07'"
    assert expected_text(f"ms:above{places}.0.9999.0", "07") == "the digits above, such as '12'"
    for number in (scale.number_of(-1), scale.number_of(most - least + 1), scale.number_of(0) + Decimal("1E-12")):
        with pytest.raises(MalformedImageError, match="is none of"):
            scale.units_of(number)
