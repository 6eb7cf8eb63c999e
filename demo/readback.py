"""Reads all counts back through the read library, as any user of it would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from demo.inputs import Inputs
from demo.progress import Progress
from dynamodb_counters import Aggregate, Counters, Window, WindowCount
from examples.blog_declarations import ROLLING, SITE, VIEWS, VISITORS
from examples.jobs_declarations import JOBS, JOBS_24H

DAY: Final = timedelta(hours=24)
_THREADS: Final = 8


@dataclass(frozen=True)
class Rolling:
    """One window of many groups.

    Parameters
    ----------
    start, end : datetime
        The interval every answer covers: start included, end excluded.
    counts : mapping of str to int
        By group.
    """

    start: datetime
    end: datetime
    counts: Mapping[str, int]


class UnevenWindowsError(Exception):
    """Answers of one window as of one time cover different intervals."""


def read_groups(counters: Counters, aggregate: Aggregate, field: str, values: Iterable[str]) -> dict[str, int]:
    """Read an aggregate's only measure for many groups.

    Parameters
    ----------
    counters : Counters
        The read library, bound to a table.
    aggregate : Aggregate
        Which aggregate.
    field : str
        What its groups are told apart by.
    values : iterable of str
        The groups.

    Returns
    -------
    dict of str to int
        Count by group.
    """
    asked = list(values)
    (measure,) = aggregate.measures
    groups = counters.get_many([(aggregate, {field: value}) for value in asked])
    return {value: int(group.measures[measure]) for value, group in zip(asked, groups, strict=True)}


def read_rolling(
    counters: Counters, window: Window, field: str, values: Iterable[str], *, as_of: datetime, progress: Progress
) -> Rolling:
    """Read the last 24 hours of many groups.

    Parameters
    ----------
    counters : Counters
        The read library, bound to a table.
    window : Window
        Which window.
    field : str
        What its groups are told apart by.
    values : iterable of str
        The groups.
    as_of : datetime
        Aware; until when.
    progress : Progress
        Told how far it is.

    Returns
    -------
    Rolling
        The counts, and the interval as the answers state it.

    Raises
    ------
    UnevenWindowsError
        The answers do not all cover the same interval.
    """
    asked = list(values)

    def ask(value: str) -> WindowCount:
        return counters.window(window, {field: value}, last=DAY, as_of=as_of)

    # Without any group, one that cannot exist still tells which interval an answer covers.
    answers = _concurrently(ask, asked, progress) if asked else [ask("nothing")]
    intervals = {(answer.start, answer.end) for answer in answers}
    if len(intervals) != 1:
        raise UnevenWindowsError(f"windows as of {as_of.isoformat()} cover {len(intervals)} different intervals")
    ((start, end),) = intervals
    return Rolling(start, end, {value: int(answer.count) for value, answer in zip(asked, answers, strict=False)})


def _concurrently(ask: Callable[[str], WindowCount], values: list[str], progress: Progress) -> list[WindowCount]:
    pool = ThreadPoolExecutor(_THREADS)
    try:
        answers = []
        for answer in pool.map(ask, values):
            answers.append(answer)
            if len(answers) % _THREADS == 0:
                progress.now_and_then(f"reading windows: {len(answers):,} of {len(values):,}")
        return answers
    finally:
        # An interrupt must not wait for the questions still in the queue.
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Reader:
    """All counts of a run.

    Parameters
    ----------
    inputs : Inputs
        What was sent: tells what to ask for.
    blog, jobs : Counters
        The read library, bound to each example's table.
    now : datetime
        Aware; as of when to ask about windows when there was no event.
    progress : Progress
        Told how far it is.
    """

    inputs: Inputs
    blog: Counters
    jobs: Counters
    now: datetime
    progress: Progress

    def site_views(self) -> int:
        """Read the count of all views."""
        return int(self.blog.get(SITE, {}).measures["site_views"])

    def views(self) -> dict[str, int]:
        """Read the views of every url."""
        return read_groups(self.blog, VIEWS, "url", self.inputs.blog.views)

    def visitors(self) -> dict[str, int]:
        """Read the requests of every visitor."""
        return read_groups(self.blog, VISITORS, "clientId", self.inputs.blog.visitors)

    def rolling(self) -> Rolling:
        """Read the views of every url in the 24 hours up to the last event."""
        as_of = self.inputs.blog.last or self.now
        return read_rolling(self.blog, ROLLING, "url", self.inputs.blog.views, as_of=as_of, progress=self.progress)

    def jobs_placed(self) -> dict[str, int]:
        """Read the jobs of every customer."""
        return read_groups(self.jobs, JOBS, "customer", self.inputs.customers.jobs)

    def jobs_rolling(self) -> Rolling:
        """Read the jobs of every customer in the 24 hours up to the last job."""
        truth, as_of = self.inputs.customers, self.inputs.customers.last or self.now
        return read_rolling(self.jobs, JOBS_24H, "customer", truth.jobs, as_of=as_of, progress=self.progress)

    def totals(self) -> dict[str, int]:
        """Read sums that tell whether everything has been counted."""
        totals = {"views": self.site_views(), "jobs": sum(self.jobs_placed().values())}
        # The sums over groups take some reading: worth it only once the total says that all may be there.
        if totals["views"] >= self.inputs.blog.site_views:
            totals["views by url"] = sum(self.views().values())
            totals["requests by visitor"] = sum(self.visitors().values())
        return totals

    def expected_totals(self) -> dict[str, int]:
        """Work out what the sums must come to."""
        views = self.inputs.blog.site_views
        return {
            "views": views,
            "jobs": len(self.inputs.customers.distinct),
            "views by url": views,
            "requests by visitor": views,
        }
