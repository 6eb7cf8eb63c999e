"""1,000 views of a blog in the last ten days, or those of an access log; measures that are no sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

from demo.blog.access_log import read_log
from demo.blog.measures import Measures
from demo.blog.traffic import View, blog_views
from demo.blog.truth import BlogTruth
from demo.check.intervals import last_day
from demo.example import Example, Finding, Numbers, highest
from demo.options import Setup
from demo.sending import Attributes, Deliveries, with_duplicates
from demo.terminal import printable
from dynamodb_counters import Aggregate, Counters
from examples.blog import LEVELS

_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True)
class Blog(Example):
    """The blog, whose views may be replayed from a log."""

    priced: ClassVar[bool] = True

    viewed: BlogTruth
    unparsable_lines: int
    levels: Sequence[int] = ()
    """Levels of a url's views that have a threshold."""

    @property
    def measures(self) -> Measures:
        return Measures(*(self.declared[False, name] for name in ("active", "sizes", "latest", "board")))

    def read(self, counters: Counters) -> Numbers:
        return {**super().read(counters), **self.measures.read(counters, self.viewed)}

    def expected(self, actual: Numbers) -> Numbers:
        crossings = {"crossings": self.viewed.crossed(self.levels)} if self.levels else {}
        return {**self.truth, **self.measures.expected(self.viewed, actual), **crossings}

    def questions(self) -> Sequence[tuple[Aggregate, Mapping[str, str]]]:
        return [(self.declared[False, "views"], {"url": url}) for url in highest(self.truth["views"], 1)]

    def lines(self, numbers: Numbers) -> Sequence[str]:
        views, recent = numbers["views"], numbers["views_24h"]
        top = highest(views, _SHOWN)
        return [
            f"{'views':>7}  {'last 24 h':>9}  page",
            *(f"{views[url]:>7,.0f}  {recent[url]:>9,.0f}  {printable(url)}" for url in top),
            *([f"{'':>18}  … and {len(views) - len(top):,} more"] if len(views) > len(top) else []),
            f"{numbers['site']['']:>7,.0f}  {sum(recent.values()):>9,.0f}  the site",
        ]

    def units(self, finding: Finding) -> dict[str, float]:
        """Write units per event."""
        costs, counted = finding.measured, [self.declared[False, name] for name in self.truth]
        return {"accept": costs.accept, "aggregate": costs.aggregate(counted) + costs.index(counted)}

    def section(self, finding: Finding) -> dict[str, Any]:
        actual, (start, end) = finding.actual, last_day(self.now)
        return {
            "events_sent": finding.account.total,
            "distinct_events": self.viewed.total,
            "duplicates_rejected": finding.account.statuses["duplicate"],
            "unparsable_lines": self.unparsable_lines,
            "killed_while_counting": finding.crashed,
            "views": actual["views"],
            "site_views": actual["site"][""],
            "visitors": actual["visitors"],
            "rolling_24h": {
                "as_of": end.isoformat(),
                "from": start.isoformat(),
                "from_inclusive": True,
                "as_of_inclusive": False,
                "counts": actual["views_24h"],
            },
            "measures": {name: numbers for name, numbers in actual.items() if name in self.measures.names()},
            "crossings": actual.get("crossings", {}),
            "write_units_per_event": self.units(finding),
            "window_read_units": finding.measured.window,
        }

    def commands(self) -> Sequence[str]:
        *others, _ = super().commands()
        return [*others, *(command.replace("get", "explain", 1) for command in others[:1])]


def play(setup: Setup) -> Blog:
    truth, deliveries, unparsable = views(setup)
    return Blog(
        name="blog",
        now=truth.now,
        events={"view": Deliveries(deliveries)},
        truth=counts(truth),
        viewed=truth,
        unparsable_lines=unparsable,
        levels=LEVELS,
    )


def counts(truth: BlogTruth) -> dict[str, Mapping[str, float]]:
    """Return the numbers that are sums."""
    return {"views": truth.views, "views_24h": truth.rolling, "visitors": truth.visitors, "site": {"": truth.total}}


@cache
def views(setup: Setup) -> tuple[BlogTruth, Sequence[Attributes], int]:
    """Return the truth, the views, and how many lines could not be parsed: read once, since a log may be a pipe."""
    log, unparsable = setup.options.log, 0
    if log is None:
        viewed = blog_views(setup.rng("views"), setup.now)
    else:
        # Those of the same url, time and client are the same view, as the first one is logged.
        first, lines = dict[tuple[str, str, str], View](), list(read_log(log))
        viewed = [first.setdefault(view[:3], view) for view in lines if view is not None]
        unparsable = len(lines) - len(viewed)
        setup.progress(f"{log}: {len(viewed):,} views, {unparsable:,} lines not understood")
    events = with_duplicates(setup.rng("views again"), [view.as_event() for view in viewed], setup.options.duplicates)
    return BlogTruth(viewed, setup.now), events, unparsable
