"""Values of a group are keyword arguments, or one mapping where a field has the name of an option or no identifier."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Distinct,
    Event,
    Histogram,
    InvalidArgumentError,
    Quota,
    Ranking,
    Window,
)
from simulation.counters_in_memory import counters_in_memory

_VIEW = Event("view", pk="URL#{url}", sk="V#{at}#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="N", measures={"n": Count()})
_BINS = Aggregate("bins", _VIEW, pk="BINS#{url}", sk="N", measures={"bins": Histogram("size", exactly=[1, 2])})
_TOP = Aggregate(
    "top", _VIEW, pk="T#{url}", sk="N", measures={"n": Count()}, ranking=Ranking(measure="n", leaderboard="TOP#{url}")
)
_IDS = Distinct("ids", _VIEW, member="id", pk="IDS#{url}", sk="D")
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")
_CALLS = Quota("calls", limit=5, per="day", by=("url",))
_STOCK = Counter("stock", by="url", n=Count())
_NAMES = Counter("names", by=("self", "values", "counter"))
_OPTION = Counter("option", by=("consistent", "at.x"))

_READS: dict[str, Callable[..., Any]] = {
    "get": lambda counters, *values, **fields: counters.get(_VIEWS, *values, **fields),
    "groups": lambda counters, *values, **fields: list(counters.groups(_VIEWS, *values, **fields)),
    "distinct": lambda counters, *values, **fields: counters.get(_IDS, *values, **fields)["distinct"],
    "histogram": lambda counters, *values, **fields: counters.get(_BINS, *values, **fields)["bins"],
    "top": lambda counters, *values, **fields: counters.top(_TOP, *values, **fields),
    "window": lambda counters, *values, **fields: counters.window(_RECENT, *values, **fields).last(timedelta(days=1)),
    "events": lambda counters, *values, **fields: list(counters.events(_VIEW, *values, **fields)),
}
_WRITES: dict[str, Callable[..., Any]] = {
    "increment": lambda counters, *values, **fields: counters.increment(_STOCK, *values, **fields),
    "reset": lambda counters, *values, **fields: counters.reset(_STOCK, *values, **fields),
    "leases": lambda counters, *values, **fields: counters.leases(_CALLS, *values, **fields).take(),
}


@pytest.mark.parametrize("name", _READS)
def test_keyword_arguments_and_a_mapping_read_the_same_group(name: str) -> None:
    answers = []
    for values, fields in (((), {"url": "/"}), (({"url": "/"},), {})):
        with counters_in_memory([_VIEWS, _BINS, _TOP, _IDS, _RECENT]) as counters:
            at = counters.clock.now.isoformat()
            views = [{"url": url, "id": number, "size": 1, "at": at} for url in ("/", "/b") for number in "123"]
            counters.accept_many(_VIEW, views).raise_for_rejected()
            answers.append(_READS[name](counters, *values, **fields))

    assert answers[0] == answers[1]
    assert answers[0]


def test_keyword_arguments_and_a_mapping_write_to_the_same_group() -> None:
    with counters_in_memory([_STOCK]) as counters:
        assert counters.increment(_STOCK, url="/", amount=3) == {"n": 3}
        assert counters.increment(_STOCK, {"url": "/"}, amount={"n": 2}) == {"n": 5}
        assert [counters.reset(_STOCK, {"url": "/"}), counters.reset(_STOCK, url="/")] == [{"n": 5}, {"n": 0}]
        assert counters.leases(_CALLS, url="/").take(5)
        assert not counters.leases(_CALLS, {"url": "/"}).take()


@pytest.mark.parametrize("call", [*_READS.values(), *_WRITES.values()], ids=[*_READS, *_WRITES])
def test_keyword_arguments_and_a_mapping_at_once_are_refused(call: Callable[..., Any]) -> None:
    with counters_in_memory([_VIEWS]) as counters:
        with pytest.raises(InvalidArgumentError, match=r"^invalid values=.*: expected keyword arguments or one"):
            call(counters, {"url": "/"}, id="1")
        with pytest.raises(InvalidArgumentError, match=r"^invalid values='/': expected a mapping of fields"):
            call(counters, "/")


def test_fields_may_have_the_names_of_arguments() -> None:
    with counters_in_memory([_NAMES, _OPTION]) as counters:
        counters.increment(_NAMES, self="a", values="b", counter="c")
        counters.increment(_OPTION, {"consistent": "x", "at.x": "red"}, amount=4)

        assert counters.get(_NAMES, self="a", values="b", counter="c")["names"] == 1
        assert counters.get(_OPTION, {"consistent": "x", "at.x": "red"}, consistent=True)["option"] == 4
