"""The blog example: views by url, of the site and in 24 hours, requests by visitor, and measures that are no sums."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

from demo.check.readback import read_groups, read_rolling
from demo.example import Example, Finding, Numbers, Reading, highest
from demo.examples.blog.access_log import read_log
from demo.examples.blog.measures import Measures
from demo.examples.blog.traffic import View, blog_views
from demo.examples.blog.truth import BlogTruth
from demo.options import Setup
from demo.sending.deliveries import Deliveries, with_duplicates
from demo.sending.send import Feed
from demo.terminal import Progress, printable
from dynamodb_counters import Aggregate, Counters, Event, Window
from examples.blog.declarations import ACTIVE, LATEST, LEVELS, ROLLING, SITE, SIZES, VIEW, VIEWS, VISITORS

_SHOWN: Final = 5


class Declared(NamedTuple):
    """How views are kept and counted."""

    view: Event
    views: Aggregate
    site: Aggregate
    visitors: Aggregate
    rolling: Window
    measures: Measures
    levels: Sequence[int] = ()
    """Levels of a url's views that have a threshold."""


@dataclass(frozen=True)
class Blog(Example):
    """The blog, whose views may be replayed from a log."""

    leading: ClassVar[bool] = True
    priced: ClassVar[bool] = True
    declared: ClassVar[Declared] = Declared(
        VIEW, VIEWS, SITE, VISITORS, ROLLING, Measures(ACTIVE, SIZES, LATEST), LEVELS
    )
    noun: ClassVar[str] = "views"

    views: Sequence[View]
    now: datetime
    unparsable_lines: int = 0

    @classmethod
    def prepare(cls, setup: Setup) -> Self:
        return cls(*_sent(setup))

    @cached_property
    def truth(self) -> BlogTruth:
        return BlogTruth(self.views)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(self.declared.view, Deliveries(self.views), self.noun)]

    def total(self, counters: Counters) -> int:
        return int(counters.get(self.declared.site).measures["site_views"])

    def expected_total(self) -> int:
        return self.truth.total

    def _groups(self, counters: Counters) -> dict[str, dict[str, int]]:
        return {
            "url": read_groups(counters, self.declared.views, "url", self.truth.counts),
            "clientId": read_groups(counters, self.declared.visitors, "clientId", self.truth.visitors),
        }

    def read(self, counters: Counters, progress: Progress) -> Reading:
        urls, as_of = self.truth.counts, self.truth.last or self.now
        rolling, interval = read_rolling(counters, self.declared.rolling, "url", urls, as_of=as_of, progress=progress)
        groups = self._groups(counters)
        counts = {
            "all views": {"the site": self.total(counters)},
            "views": groups["url"],
            "requests": groups["clientId"],
            "views in 24 h": rolling,
            **self.declared.measures.read(counters, self.truth),
        }
        return Reading(counts, interval)

    def expected(self, reading: Reading) -> Numbers:
        return {
            "all views": {"the site": self.truth.total},
            "views": self.truth.counts,
            "requests": self.truth.visitors,
            "views in 24 h": self.truth.rolling(reading.covered),
            **self.declared.measures.expected(self.truth, reading.counts),
            **({"crossings": self.truth.crossed(self.declared.levels)} if self.declared.levels else {}),
        }

    def questions(self, reading: Reading) -> Sequence[tuple[Aggregate, Mapping[str, str]]]:
        return [(self.declared.views, {"url": url}) for url in highest(reading.counts["views"], 1)]

    def lines(self, finding: Finding) -> Sequence[str]:
        views, last_day = finding.found["views"], finding.found["views in 24 h"]
        top = highest(views, _SHOWN)
        return [
            f"{'views':>7}  {'last 24 h':>9}  page",
            *(f"{views[url]:>7,}  {last_day.get(url, 0):>9,}  {printable(url)}" for url in top),
            *([f"{'':>18}  … and {len(views) - len(top):,} more"] if len(views) > len(top) else []),
            f"{finding.found['all views']['the site']:>7,}  {sum(last_day.values()):>9,}  the site",
        ]

    def units(self, finding: Finding) -> dict[str, float]:
        """Write units per event."""
        costs, declared = finding.measured, self.declared
        counted = (declared.views, declared.site, declared.visitors, declared.rolling)
        return {"accept": costs.accept, "aggregate": costs.aggregate(counted) + costs.index(counted)}

    def section(self, finding: Finding) -> dict[str, Any]:
        costs = finding.measured
        return {
            "events_sent": finding.account.sent,
            "distinct_events": self.truth.total,
            "duplicates_rejected": finding.account.statuses["duplicate"],
            "unparsable_lines": self.unparsable_lines,
            "views": finding.found["views"],
            "site_views": finding.found["all views"]["the site"],
            "visitors": finding.found["requests"],
            "rolling_24h": {**finding.reading.covered.section(), "counts": finding.found["views in 24 h"]},
            "measures": self.measured(finding),
            "crossings": finding.found.get("crossings", {}),
            "write_units_per_event": self.units(finding),
            "window_read_units": costs.window,
        }

    def measured(self, finding: Finding) -> Numbers:
        return {name: finding.found[name] for name in sorted(self.declared.measures.names() & finding.found.keys())}

    def commands(self) -> Sequence[str]:
        field = shlex.quote(f"url={next(iter(highest(self.truth.counts, 1)), '/')}")
        as_of = (self.truth.last or self.now).isoformat()
        name = self.declared.views.name
        return [
            f"get {name} {field}",
            f"window {self.declared.rolling.name} {field} --last 24h --until {as_of}",
            f"explain {name} {field}",
        ]


@cache
def _sent(setup: Setup) -> tuple[Sequence[View], datetime, int]:
    """The views, the time, and how many lines could not be parsed: read once, since a log may be a pipe."""
    options, unparsable = setup.options, 0
    if options.log is None:
        views = blog_views(setup.rng("views"), setup.now)
    else:
        views, unparsable = _replayed(options.log, setup.progress)
    return with_duplicates(setup.rng("views again"), views, options.duplicates), setup.now, unparsable


def _replayed(log: Path, progress: Progress) -> tuple[list[View], int]:
    """The views of a log: those of the same url, time and client are the same view, as the first one is logged."""
    views, line, first = [], 0, dict[tuple[str | int | None, ...], View]()
    for line, view in enumerate(read_log(log), start=1):
        if view is not None:
            views.append(first.setdefault(view[:3], view))
        if line % 10_000 == 0:
            progress.now_and_then(f"reading {log}: {line:,} lines")
    unparsable = line - len(views)
    progress(f"{log}: {len(views):,} views, {unparsable:,} lines not understood")
    return views, unparsable
