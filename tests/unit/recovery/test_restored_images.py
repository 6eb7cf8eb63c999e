"""Which of a key's changes are in a copy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dynamodb_counters._fold.records import Record
from dynamodb_counters._recovery.restored_images import compare, first_images

KEY = ("a", "x")


def image(value: Any) -> dict[str, Any]:
    return {"pk": {"S": KEY[0]}, "v": value}


ONE, TWO = image({"N": "1"}), image({"N": "2"})


def chain(*images: dict[str, Any] | None, since: int = 100, every: int = 100, key: str = "a") -> list[Record]:
    """Records of an item that becomes each image in turn."""
    records: list[Record] = []
    for number, (old, new) in enumerate(pairwise(images)):
        found = {name: value for name, value in (("OldImage", old), ("NewImage", new)) if value is not None}
        created = float(since + every * number)
        keys = {"pk": {"S": key}, "sk": {"S": "x"}}
        records.append({"dynamodb": {"Keys": keys, "ApproximateCreationDateTime": created, **found}})
    return records


@pytest.mark.parametrize(("item", "included"), [(None, 0), (ONE, 1), (TWO, 2)])
def test_the_copied_item_shows_how_many_changes_led_to_it(item: dict[str, Any] | None, included: int) -> None:
    found = compare({KEY: chain(None, ONE, TWO)}, {KEY: item})
    assert (found.included, found.unknown, found.moment) == ({KEY: included}, [], 100.0 * included)


def test_an_item_that_is_none_of_the_images_is_unknown() -> None:
    found = compare({KEY: chain(None, ONE)}, {KEY: TWO})
    assert (found.included, found.unknown) == ({}, [KEY])


@pytest.mark.parametrize(("item", "included"), [(TWO, 1), (None, 2)])
def test_changes_between_that_had_been_counted_for_long_may_be_missing(
    item: dict[str, Any] | None, included: int
) -> None:
    """A key's records may be of two shards, of which the earlier one is not counted to its end."""
    first, _, last = chain(None, ONE, TWO, None)
    assert compare({KEY: [first, last]}, {KEY: item}).included == {KEY: included}


def test_a_copy_before_changes_that_were_not_read_is_placed_by_the_one_before() -> None:
    first, _, last = chain(None, ONE, TWO, None)
    assert compare({KEY: [first, last]}, {KEY: ONE}).included == {KEY: 1}


@pytest.mark.parametrize(
    ("stored", "streamed"),
    [
        ({"N": "10"}, {"N": "1E+1"}),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}),
        ({"NS": ["1", "2"]}, {"NS": ["2.0", "1"]}),
        ({"L": [{"M": {"N": {"N": "1.0"}}}]}, {"L": [{"M": {"N": {"N": "1"}}}]}),
        ({"B": b"\x01"}, {"B": b"\x01"}),
    ],
)
def test_values_are_compared_not_their_texts(stored: Any, streamed: Any) -> None:
    assert compare({KEY: chain(None, image(streamed))}, {KEY: image(stored)}).included == {KEY: 1}


def test_images_that_are_there_twice_are_placed_by_other_items() -> None:
    came_and_went = chain(None, ONE, None, since=100, every=200)
    other = ("b", "x")
    early = {KEY: came_and_went, other: chain(None, TWO, since=50, key="b")}
    late = {KEY: came_and_went, other: chain(None, TWO, since=350, key="b")}
    assert compare(early, {KEY: None, other: TWO}).ambiguous == {KEY: (0, 2)}
    assert compare(early, {KEY: None, other: None}).included[KEY] == 0
    assert compare(late, {KEY: None, other: TWO}).included[KEY] == 2


@pytest.mark.parametrize(("at", "included"), [(50.0, 0), (99.4, 2), (350.0, 2)], ids=["before", "the-second", "after"])
def test_images_that_are_there_twice_are_placed_by_the_copys_time(at: float, included: int) -> None:
    every = 1 if at == 99.4 else 200  # Within the copy's second, the last place that fits is taken.
    found = compare({KEY: chain(None, ONE, None, every=every)}, {KEY: None}, at)
    assert found.included == {KEY: included}


def test_the_first_change_shows_what_was_before() -> None:
    assert first_images([*chain(ONE, TWO, None), *chain(None, ONE, key="b")]) == {KEY: ONE, ("b", "x"): None}
