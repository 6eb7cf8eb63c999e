"""Reads: units and calls of each question, by a process that has read nothing yet, and by the same one again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from benchmarks.databases import read_usage
from dynamodb_counters import Aggregate, Count, Counters, Distinct, Event, Histogram, Ranking, Window
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from simulation.world import World

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
    bench = World(_VIEWS, *_VISITORS._parts, _SITE, _ROLLING)
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
    results = {}
    for name, read in _questions(datetime.fromtimestamp(end, UTC)).items():
        counters = Counters(bench.table.name, client=client, clock=bench.clock)
        first, again = (read_usage(bench.table.usage, partial(read, counters)) for _ in range(2))
        results[name] = {f"first_{figure}": value for figure, value in first.items()} | again
    return results


def _questions(end: datetime) -> dict[str, _Read]:
    groups = [(_VIEWS, {"url": f"/{number}"}) for number in range(25)]
    hour, day = timedelta(hours=1), timedelta(days=1)

    def last(span: timedelta) -> _Read:
        return lambda counters: counters.window(_ROLLING, url="/1").last(span, as_of=end)

    def series(span: timedelta, step: timedelta) -> _Read:
        return lambda counters: counters.window(_ROLLING, url="/1").series(end - span, end, step=step)

    return {
        "a group": lambda counters: counters.get(_VIEWS, url="/1"),
        "25 groups": lambda counters: counters.get_many(groups),
        "distinct members of a group": lambda counters: counters.get(_VISITORS, url="/1")["distinct"],
        "histogram": lambda counters: counters.get(_SITE)["by_views"],
        "first ten of a leaderboard": lambda counters: counters.top(_VIEWS),
        "last hour": last(hour),
        "last 24 hours": last(day),
        "last 7 days": last(7 * day),
        "last 30 days": last(30 * day),
        "24 hours, by the hour": series(day, hour),
        "30 days, by the day": series(30 * day, day),
    }
