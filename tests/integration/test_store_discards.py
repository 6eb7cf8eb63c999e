"""Discards of images of every type, marked by one transaction."""

from __future__ import annotations

from typing import Any, Final

from dynamodb_counters._erase.discards import Discards
from tests.integration.stores import Store
from tests.integration.test_store_quarantine import _SALES
from tests.unit.fold.streams import record

_KEY: Final = {"pk": {"S": "SHOP#a"}, "sk": {"S": "ID#1"}}
_STORED: Final[dict[str, Any]] = {
    **_KEY,
    "_type": {"S": "sale"},
    "shop": {"S": "a"},
    "amount": {"S": "much"},
    "price": {"N": "12.5"},
    "photo": {"B": b"\x00\xff"},
    "is_new": {"BOOL": True},
    "note": {"NULL": True},
    "lines": {"L": [{"M": {"sku": {"S": "x"}, "SS": {"S": "a name like a type's"}}}, {"N": "2"}]},
    "tags": {"SS": ["b", "a"]},
    "sizes": {"NS": ["2", "1"]},
    "keys": {"BS": [b"\x02", b"\x01"]},
}
_RECORDED: Final = {**_STORED, "photo": {"B": "AP8="}, "keys": {"BS": ["AQ==", "Ag=="]}}
"""As Lambda has it."""


def test_an_image_of_every_type_is_marked_if_its_item_still_shows_it(store: Store) -> None:
    store.client.put_item(TableName=store.name, Item=_STORED)
    store.deliver([record(1, _RECORDED)], _SALES)
    [entry] = store.counters.quarantined()
    assert Discards(store.table).discard(entry)
    [mark] = store.item("SHOP#a", "ID#1")["_out"]["SS"]
    assert mark.startswith("sales ")
    assert list(store.counters.quarantined()) == []

    marked = {**_RECORDED, "_out": {"SS": [mark]}}
    store.deliver([record(2, marked, _RECORDED), record(3, None, marked)], _SALES)
    assert list(store.counters.quarantined()) == []
