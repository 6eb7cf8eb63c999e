"""A field that a group does not have is refused by every read, with the ones there are; it is not ignored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Counters,
    Distinct,
    Event,
    Histogram,
    InvalidArgumentError,
    Ranking,
    Window,
)
from tests.unit.writes.clients import ScriptedClient

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="N", measures={"n": Count()})
_STOCK = Counter("stock", pk="URL#{url}", sk="STOCK")
_SHARDED = Aggregate("sharded", _VIEW, pk="S#{url}", sk="N", measures={"n": Count()}, write_shards=2)
_BY_ID = Aggregate("by_id", _VIEW, pk="URL#{url}", sk="BY#{id}", measures={"n": Count()})
_VISITORS = Distinct("visitors", _VIEW, member="id", pk="URL#{url}", sk="D")
_TOP = Aggregate(
    "top", _VIEW, pk="T#{url}", sk="N", measures={"n": Count()}, ranking=Ranking(measure="n", leaderboard="TOP")
)
_SIZES = Aggregate("sizes", _BY_ID, pk="SIZES", sk="N", measures={"bins": Histogram("n", exactly=[1])})
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")
_HOUR = timedelta(hours=1)
_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)

_READS: dict[str, tuple[Callable[[Counters, Any], Any], str]] = {
    "get": (lambda counters, values: counters.get(_VIEWS, values), "of 'views': 'url'"),
    "get of a sharded one": (lambda counters, values: counters.get(_SHARDED, values), "of 'sharded': 'url'"),
    "get_many": (lambda counters, values: counters.get_many([(_VIEWS, values)]), "of 'views': 'url'"),
    "partition": (lambda counters, values: counters.partition([_VIEWS, _BY_ID], values), "of 'views': 'url'"),
    "scan": (lambda counters, values: counters.scan(_BY_ID, values), "of 'by_id': 'url'"),
    "distinct": (lambda counters, values: counters.get(_VISITORS, values)["distinct"], "of 'visitors': 'url'"),
    "histogram": (lambda counters, values: counters.get(_SIZES, values)["bins"], "of 'sizes': none"),
    "top": (lambda counters, values: counters.top(_TOP, values), "of 'top': none"),
    "around": (lambda counters, values: counters.around(_TOP, values), "of 'top': 'url'"),
    "window": (lambda counters, values: counters.window(_RECENT, values).last(_HOUR), "of 'recent': 'url'"),
    "calendar": (lambda counters, values: counters.window(_RECENT, values).calendar("day"), "of 'recent': 'url'"),
    "between": (
        lambda counters, values: counters.window(_RECENT, values).between(_NOON - _HOUR, _NOON),
        "of 'recent': 'url'",
    ),
    "series": (
        lambda counters, values: counters.window(_RECENT, values).series(_NOON - _HOUR, _NOON, step=_HOUR),
        "of 'recent': 'url'",
    ),
    "increment": (lambda counters, values: counters.increment(_STOCK, values), "of 'stock': 'url'"),
    "reset": (lambda counters, values: counters.reset(_STOCK, values), "of 'stock': 'url'"),
}


@pytest.mark.parametrize("name", _READS)
def test_an_unknown_field_is_refused_before_any_call(name: str) -> None:
    read, there = _READS[name]
    client: Any = ScriptedClient()
    counters = Counters("table", client=client)
    with pytest.raises(InvalidArgumentError) as refused:
        read(counters, {"cleint": "c1", "url": "/"} if "'url'" in there else {"cleint": "c1"})

    assert str(refused.value) == f"invalid values='cleint': expected no fields but those {there}"
    with pytest.raises(InvalidArgumentError, match=r"^invalid values=5: expected a mapping of fields to values"):
        read(counters, 5)
