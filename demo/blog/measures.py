"""Measures of the blog that are no sums: unique visitors of some days, percentiles of sizes, latest pages, ranks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from typing import Final, NamedTuple

from demo.blog.truth import BlogTruth
from demo.example import Numbers
from dynamodb_counters import ActiveMembers, Counters, Extremes, Percentiles, Ranks

_DAY: Final = timedelta(days=1)
_PERCENTS: Final = (50, 95, 99)
_THREADS: Final = 8

_UNIQUE: Final = {days: f"unique visitors, {days} days to" for days in (1, 7, 30)}
_SIZES: Final = {days: f"response sizes, {days} days" for days in (1, 7, 30)}
_P95: Final = "p95 of response sizes by day"
_LATEST: Final = "latest view"
_PAGES: Final = "latest page"
_RANKS: Final = "rank of a page by views"


class Measures(NamedTuple):
    """How visitors, sizes, latest pages and ranks are declared."""

    active: ActiveMembers
    sizes: Percentiles
    latest: Extremes
    board: Ranks

    def read(self, counters: Counters, truth: BlogTruth) -> Numbers:
        """Read them of each day and of the last ones, and of each visitor."""
        if not truth.days:
            return {}
        start, end = (datetime.combine(day, time(), UTC) for day in (truth.days[0], truth.days[-1] + _DAY))
        active, sizes = counters.window(self.active), counters.window(self.sizes)
        numbers: dict[str, dict[str, float]] = {}
        for days, name in _UNIQUE.items():
            counts = active.rolling(start, end, timedelta(days=days))
            numbers[name] = {_day(count.end - _DAY): int(count.count) for count in counts}
        for days, name in _SIZES.items():
            spread = sizes.between(end - timedelta(days=days), end)
            numbers[name] = _numbers({f"p{percent}": spread.p(percent / 100) for percent in _PERCENTS})
        by_day = zip(truth.days, sizes.series(start, end, step="day"), strict=True)
        numbers[_P95] = _numbers({str(day): spread.p(0.95) for day, spread in by_day})
        with ThreadPoolExecutor(_THREADS) as pool:
            latest = pool.map(lambda client: counters.extremes(self.latest, clientId=client), truth.latest)
            views = [(client, view) for client, views in zip(truth.latest, latest, strict=True) for view in views]
            ranks = pool.map(lambda url: counters.rank(self.board, url=url).rank, truth.views)
            numbers[_RANKS] = _numbers(dict(zip(truth.views, ranks, strict=True)))
        numbers[_LATEST] = {client: _seconds(view.value) for client, view in views}
        numbers[_PAGES] = {f"{client} {view.shown['url']}": _seconds(view.value) for client, view in views}
        return numbers

    def expected(self, truth: BlogTruth, actual: Numbers) -> Numbers:
        """Return the numbers that must have been read; a percentile may differ by the declared error."""
        if not truth.days:
            return {}
        error, today = float(self.sizes.error), truth.days[-1]
        sizes = {
            name: {f"p{percent}": truth.size(percent, today, days) for percent in _PERCENTS}
            for days, name in _SIZES.items()
        }
        sizes[_P95] = {str(day): truth.size(95, day, 1) for day in truth.days}
        ordered = sorted(truth.views.values(), reverse=True)
        viewed = {f"{client} {url}": moment.timestamp() for (client, url), moment in truth.viewed.items()}
        return {
            **{name: {str(day): truth.unique(day, days) for day in truth.days} for days, name in _UNIQUE.items()},
            **{what: _within(error, actual.get(what, {}), _numbers(exact)) for what, exact in sizes.items()},
            _RANKS: {url: 1 + ordered.index(views) for url, views in truth.views.items()},
            _LATEST: {client: moment.timestamp() for client, moment in truth.latest.items()},
            # Any of the pages that a client viewed in the same second may be named.
            _PAGES: {name: viewed.get(name, 0) for name in actual.get(_PAGES, {})},
        }

    @classmethod
    def names(cls) -> frozenset[str]:
        return frozenset((*_UNIQUE.values(), *_SIZES.values(), _P95, _LATEST, _PAGES, _RANKS))


def _day(moment: datetime) -> str:
    return str(moment.date())


def _seconds(value: object) -> float:
    assert isinstance(value, datetime)
    return value.timestamp()


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Those that are not None: there may be days without a size."""
    return {name: float(str(value)) for name, value in values.items() if value is not None}


def _within(error: float, actual: Mapping[str, float], exact: Mapping[str, float]) -> dict[str, float]:
    """Return the values that were found where they are near enough, else the exact ones."""
    return {
        name: actual[name] if name in actual and abs(actual[name] - value) <= error * value else value
        for name, value in exact.items()
    }
