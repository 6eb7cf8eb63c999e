"""Bookkeeping items are put if they are as they were seen; watermarks are compact and ordered; items have sizes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from dynamodb_counters._items.schema import (
    bookkeeping_item,
    bookkeeping_key,
    item_bytes,
    put_as_seen,
    read_fields,
    write_units,
)
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable


@dataclass
class Kept:
    name: str
    at: float
    parts: int = 1
    moved: bool = False
    rows: bytes = b""
    others: tuple[str, ...] = ()


KEPT = Kept("a", 1.5, 2, moved=True, rows=b"\0")


def test_fields_are_read_as_they_were_written() -> None:
    values = asdict(KEPT)
    del values["others"]
    assert Kept(**read_fields(Kept, bookkeeping_item(bookkeeping_key("SORT"), values))) == KEPT
    assert read_fields(Kept, {"name": {"S": "a"}, "others": {"S": "b"}}) == {"name": "a"}


@pytest.mark.parametrize(
    ("item", "message"),
    [({"at": {"S": "1"}}, "invalid at={'S': '1'}: expected type N"), ({"at": {"N": "x"}}, "could not convert")],
)
def test_an_attribute_of_another_type_is_refused(item: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_fields(Kept, item)


SEEN = {**bookkeeping_key("SORT"), "a": {"S": "1"}, "other": {"S": "1"}}


@pytest.mark.parametrize(
    ("expected", "current", "is_put"),
    [
        ({}, {}, True),
        ({}, bookkeeping_key("SORT"), False),
        (SEEN, SEEN, True),
        (SEEN, {**SEEN, "other": {"S": "2"}}, True),
        (SEEN, {**SEEN, "a": {"S": "2"}}, False),
        (SEEN, {**SEEN, "b": {"S": "1"}}, False),
        (SEEN, {}, False),
    ],
)
def test_an_item_is_put_if_what_is_compared_is_as_it_was_seen(
    expected: dict[str, Any], current: dict[str, Any], is_put: bool
) -> None:
    table: Any = MemoryTable(VirtualClock())
    if current:
        table.put_item(TableName=table.name, Item=current)
    item = {**bookkeeping_key("SORT"), "a": {"S": "3"}}

    with nullcontext() if is_put else pytest.raises(table.exceptions.ConditionalCheckFailedException):
        table.put_item(**put_as_seen(table.name, item, expected, ("a", "b")))

    assert list(table.items()) == ([item] if is_put else [current] if current else [])


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "é🐍"}, 6),
        ({"N": "0"}, 1),
        ({"N": "-7"}, 3),
        ({"N": "1000"}, 2),
        ({"N": "123.45"}, 4),
        ({"B": b"abc"}, 3),
        ({"BOOL": True}, 1),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "22"]}, 4),
        ({"BS": [b"a"]}, 1),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 9),
        ({"M": {"k": {"S": "ab"}}}, 7),
    ],
)
def test_sizes_follow_the_published_rules(value: dict[str, Any], size: int) -> None:
    assert item_bytes({"name": value}) == 4 + size


def test_write_units_are_rounded_up() -> None:
    assert [write_units(size) for size in (1, 1024, 1025, 4096)] == [1, 1, 2, 4]
