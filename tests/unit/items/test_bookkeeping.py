"""Bookkeeping items hold the plain fields of a dataclass, each with DynamoDB's type for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest

from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key, read_fields


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
    ("item", "said"),
    [({"at": {"S": "1"}}, "invalid at={'S': '1'}: expected type N"), ({"at": {"N": "x"}}, "could not convert")],
)
def test_an_attribute_of_another_type_is_refused(item: dict[str, dict[str, str]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_fields(Kept, item)
