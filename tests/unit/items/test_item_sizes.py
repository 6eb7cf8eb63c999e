from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters._items.bookkeeping import item_bytes, write_units


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "é🐍"}, 6),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "-7"}, 3),
        ({"N": "1000"}, 2),
        ({"N": "123.45"}, 4),
        ({"B": b"abc"}, 3),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
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
