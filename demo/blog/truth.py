"""The blog's counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta

from demo.blog.traffic import View
from demo.check.intervals import last_day

_DAY = timedelta(days=1)


class BlogTruth:
    """Each distinct view once, by url and by client; who came on which day, and which sizes were sent.

    The last 24 hours are those to the last view, or to `now` if there is none.
    """

    def __init__(self, views: Iterable[View], now: datetime) -> None:
        distinct = frozenset(views)
        self.total = len(distinct)
        self.views = Counter(view.url for view in distinct)
        self.visitors = Counter(view.client for view in distinct)
        self.now = max((datetime.fromisoformat(view.time) for view in distinct), default=now)
        start, end = last_day(self.now)
        self.rolling = dict.fromkeys(self.views, 0)
        self._clients, self._sizes = defaultdict[date, set[str]](set), defaultdict[date, list[int]](list)
        self.latest: dict[str, datetime] = {}
        self.viewed: dict[tuple[str, str], datetime] = {}
        """When a client viewed a url last."""
        for url, time, client, size in distinct:
            moment = datetime.fromisoformat(time)
            self.rolling[url] += start <= moment < end
            self._clients[moment.date()].add(client)
            if size is not None:
                self._sizes[moment.date()].append(size)
            self.latest[client] = max(moment, self.latest.get(client, moment))
            self.viewed[client, url] = max(moment, self.viewed.get((client, url), moment))
        first, last = min(self._clients, default=None), max(self._clients, default=None)
        self.days = [] if first is None or last is None else list(_days(last, (last - first).days + 1))[::-1]
        """All days in UTC from the first view to the last."""

    def crossed(self, levels: Iterable[int]) -> dict[str, float]:
        """Return how often each url's views have crossed each level: views are never taken back."""
        return {f"{url} up {level}": 1 for url, count in self.views.items() for level in levels if count >= level}

    def unique(self, last: date, days: int) -> int:
        """Return how many different clients came on the days that end with the last one."""
        return len(set[str]().union(*(self._clients.get(day, ()) for day in _days(last, days))))

    def size(self, percent: int, last: date, days: int) -> int | None:
        """Return the percentile of the sizes of these days, by nearest rank."""
        sizes = sorted(size for day in _days(last, days) for size in self._sizes.get(day, ()))
        return sizes[-(-percent * len(sizes) // 100) - 1] if sizes else None


def _days(last: date, days: int) -> Iterator[date]:
    return (last - back * _DAY for back in range(days))
