"""The blog example: views by url, of the site and in 24 hours, and requests by visitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from demo.check.readback import read_groups, read_rolling
from demo.example import Example, Finding, Numbers, Reading, highest
from demo.examples.blog.access_log import read_log
from demo.examples.blog.traffic import View, blog_views
from demo.examples.blog.truth import BlogTruth
from demo.options import Setup
from demo.sending.deliveries import Deliveries, with_duplicates
from demo.sending.send import Feed
from demo.terminal import Progress, printable
from dynamodb_counters import Counters
from examples.blog.declarations import ROLLING, SITE, VIEW, VIEWS, VISITORS

_SHOWN: Final = 10


@dataclass(frozen=True)
class Blog(Example):
    """The blog, whose views may be replayed from a log."""

    leading: ClassVar[bool] = True

    views: Sequence[View]
    now: datetime
    unparsable_lines: int = 0

    @classmethod
    def prepare(cls, setup: Setup) -> Blog:
        """Read the log or generate views, and repeat some."""
        options, unparsable = setup.options, 0
        if options.log is None:
            views = blog_views(setup.rng("views"), setup.now)
        else:
            views, unparsable = _replayed(options.log, setup.progress)
        return cls(with_duplicates(setup.rng("views again"), views, options.duplicates), setup.now, unparsable)

    @cached_property
    def truth(self) -> BlogTruth:
        return BlogTruth(self.views)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(VIEW, Deliveries(self.views), "views")]

    def totals(self, counters: Counters) -> dict[str, int]:
        totals = {"views": _site_views(counters)}
        # Summing up groups takes many reads: worth it only once the total says that all may be there.
        if totals["views"] >= self.truth.total:
            totals["views by url"] = sum(read_groups(counters, VIEWS, "url", self.truth.counts).values())
            totals["requests by visitor"] = sum(
                read_groups(counters, VISITORS, "clientId", self.truth.visitors).values()
            )
        return totals

    def expected_totals(self) -> dict[str, int]:
        return dict.fromkeys(("views", "views by url", "requests by visitor"), self.truth.total)

    def read(self, counters: Counters, progress: Progress) -> Reading:
        truth, as_of = self.truth, self.truth.last or self.now
        rolling, interval = read_rolling(counters, ROLLING, "url", truth.counts, as_of=as_of, progress=progress)
        counts = {
            "all views": {"the site": _site_views(counters)},
            "views": read_groups(counters, VIEWS, "url", truth.counts),
            "requests": read_groups(counters, VISITORS, "clientId", truth.visitors),
            "views in 24 h": rolling,
        }
        return Reading(counts, interval)

    def expected(self, reading: Reading) -> Numbers:
        return {
            "all views": {"the site": self.truth.total},
            "views": self.truth.counts,
            "requests": self.truth.visitors,
            "views in 24 h": self.truth.rolling(reading.covered),
        }

    def lines(self, finding: Finding) -> Sequence[str]:
        views, last_day = finding.found["views"], finding.found["views in 24 h"]
        start, end = finding.reading.covered
        accept, aggregate = _number(finding.measured.accept), _number(finding.measured.aggregate)
        top = highest(views, _SHOWN)
        return [
            f"{'views':>9} {'last 24 h':>10}  url",
            *(f"{views[url]:>9,} {last_day.get(url, 0):>10,}  {printable(url)}" for url in top),
            *([f"{'':>21} … and {len(views) - len(top):,} more"] if len(views) > len(top) else []),
            f"{finding.found['all views']['the site']:>9,} {sum(last_day.values()):>10,}  the whole site",
            "",
            f"last 24 h              from {_minute(start)} up to, not including, {_minute(end)} UTC",
            f"visitors               {len(finding.found['requests']):,}",
            f"lines not understood   {self.unparsable_lines:,}",
            f"write units            {accept} to accept a view sent, {aggregate} to aggregate a distinct one",
            f"read units             {finding.measured.window:.2f} per window query",
        ]

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
            "write_units_per_event": {"accept": costs.accept, "aggregate": costs.aggregate},
            "window_read_units": costs.window,
        }

    def queries(self, table: str) -> Sequence[str]:
        last = self.truth.last
        url = next(iter(highest(self.truth.counts, 1)), "/")
        as_of = f"datetime.fromisoformat({last.isoformat()!r})" if last else "None"
        return [
            "from datetime import datetime, timedelta",
            "from dynamodb_counters import Counters",
            "from examples.blog.declarations import ROLLING, VIEWS",
            f"counters = Counters({table!r})",
            f"url = {url!r}",
            'print(counters.get(VIEWS, {"url": url}).measures)',
            f'print(counters.window(ROLLING, {{"url": url}}, last=timedelta(hours=24), as_of={as_of}))',
        ]


def _replayed(log: Path, progress: Progress) -> tuple[list[View], int]:
    views, line = [], 0
    for line, view in enumerate(read_log(log), start=1):
        if view is not None:
            views.append(view)
        if line % 10_000 == 0:
            progress.now_and_then(f"reading {log}: {line:,} lines")
    unparsable = line - len(views)
    progress(f"{log}: {len(views):,} views, {unparsable:,} lines not understood")
    return views, unparsable


def _site_views(counters: Counters) -> int:
    return int(counters.get(SITE, {}).measures["site_views"])


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _minute(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M")
