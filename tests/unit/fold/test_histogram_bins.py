"""A histogram's bins: each value by bounds is in one of them, also below the first, wherever bins are shown."""

from __future__ import annotations

from typing import Final

from dynamodb_counters import Aggregate, Count, Event, Histogram, Sum
from dynamodb_counters._http.resources import CountResources
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import run

_CALL: Final = Event("call", key="id", version="revision")
_SPEED: Final = Aggregate("speed", _CALL, calls=Count(), ms=Histogram("ms", bounds=[0, 50]))
_OVER: Final = Aggregate("over", _SPEED, below=Sum("ms.<0"))


def _accept(counters: CountersInMemory, *values: int, revision: int = 1) -> None:
    for number, ms in enumerate(values):
        counters.accept(_CALL, {"id": str(number), "revision": revision, "ms": ms})


def test_values_below_the_first_bound_have_a_bin() -> None:
    with counters_in_memory([_SPEED, _OVER]) as counters:
        _accept(counters, -7, -1, 0, 49, 50)
        assert counters.get(_SPEED)["ms"] == {"<0": 2, 0: 2, 50: 1}
        assert counters.get(_OVER)["below"] == 2
        _accept(counters, 9, revision=2)
        found = counters.get(_SPEED)["ms"]
    assert [*found.items()] == [("<0", 1), (0, 3), (50, 1)]
    assert sum(found.values()) == 5


def test_the_bin_below_is_shown_in_json_and_by_commands() -> None:
    with counters_in_memory([_SPEED]) as counters:
        _accept(counters, -7, 0)
        shown = CountResources(counters, (_SPEED,), clock=counters.clock).read("speed", "", resource="get")
        get = run("get", "speed", "--table=counters", client=counters.client, clock=counters.clock)
    assert shown["measures"]["ms"] == {"<0": 1, "0": 1, "50": 0}
    assert [line.split()[:2] for line in get.out.splitlines()][-3:] == [["<0", "1"], ["0", "1"], ["50", "0"]]


def test_exact_and_cumulative_bins_leave_out_other_values() -> None:
    counted = Aggregate("a", _CALL, one=Histogram("ms", exactly=[1, 3]), more=Histogram("ms", at_least=[1, 3]))
    with counters_in_memory([counted]) as counters:
        _accept(counters, 0, 2, 3)
        assert counters.get(counted).measures == {"one": {1: 0, 3: 1}, "more": {1: 2, 3: 1}}
