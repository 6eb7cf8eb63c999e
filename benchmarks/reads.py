"""Reads: units and calls of each question, by a process that has read nothing yet, and by the same one again."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.databases import since
from dynamodb_counters import Aggregate, Count, Counters, Distinct, Event, Histogram, Ranking, Window
from dynamodb_counters._items.table_schema import LEADERBOARD, RANKING_INDEX, SCORE
from simulation.workbench import Workbench

_URLS: Final = 50
_DAYS: Final = 30
_HOUR: Final = 3600

_VIEW: Final = Event("view", key=("url", "time", "client"))
_VIEWS: Final = Aggregate("views", _VIEW, by="url", ranking=Ranking("views", leaderboard="URLS"))
_VISITORS: Final = Distinct("visitors", _VIEW, by="url", member="client")
_SITE: Final = Aggregate("site", _VIEWS, urls=Count(), by_views=Histogram("views", bounds=range(1, 100)))
_ROLLING: Final = Window(
    "rolling", _VIEW, by="url", time="time", longest=timedelta(days=30), retention=None, future_tolerance=None
)

_Read = Callable[[Counters], object]


def measure(events: int) -> dict[str, Any]:
    """Units and calls of each question about a month of views."""
    bench = Workbench([_VIEWS, *_VISITORS._parts, _SITE, _ROLLING])
    bench.table.tables[bench.table.name].indexes[RANKING_INDEX] = LEADERBOARD, SCORE
    end = int(bench.clock()) // _HOUR * _HOUR
    step = _DAYS * 24 * _HOUR / events
    views = [
        {"url": f"/{number % _URLS}", "time": end - int(number * step), "client": f"c{number % 97}"}
        for number in range(events)
    ]
    bench.counters.accept_many(_VIEW, views)
    bench.deliver_all()
    client: Any = bench.table
    found = {}
    for name, read in _questions(datetime.fromtimestamp(end, UTC)).items():
        counters = Counters(bench.table.name, client=client, clock=bench.clock)
        first, again = (_used(bench, read, counters) for _ in range(2))
        found[name] = {"first_units": first["reads"], "first_calls": first["calls"]} | {
            "units": again["reads"],
            "calls": again["calls"],
        }
    return found


def _questions(end: datetime) -> dict[str, _Read]:
    groups = [(_VIEWS, {"url": f"/{number}"}) for number in range(25)]
    hour, day = timedelta(hours=1), timedelta(days=1)
    return {
        "a group": lambda counters: counters.get(_VIEWS, url="/1"),
        "25 groups": lambda counters: counters.get_many(groups),
        "distinct members of a group": lambda counters: counters.get(_VISITORS, url="/1")["distinct"],
        "histogram": lambda counters: counters.get(_SITE)["by_views"],
        "first ten of a leaderboard": lambda counters: counters.top(_VIEWS),
        "last hour": lambda counters: counters.window(_ROLLING, url="/1").last(timedelta(hours=1), as_of=end),
        "last 24 hours": lambda counters: counters.window(_ROLLING, url="/1").last(timedelta(hours=24), as_of=end),
        "last 7 days": lambda counters: counters.window(_ROLLING, url="/1").last(timedelta(days=7), as_of=end),
        "last 30 days": lambda counters: counters.window(_ROLLING, url="/1").last(timedelta(days=30), as_of=end),
        "24 hours, by the hour": lambda counters: counters.window(_ROLLING, url="/1").series(end - day, end, step=hour),
        "30 days, by the day": lambda counters: counters.window(_ROLLING, url="/1").series(
            end - 30 * day, end, step=day
        ),
    }


def _used(bench: Workbench, read: _Read, counters: Counters) -> dict[str, float]:
    before = copy(bench.table.usage)
    read(counters)
    used = since(before, bench.table.usage)
    return {"reads": used.reads, "calls": used.calls}
