"""What the counts must be, worked out from the events alone.

Shares no code with the runtime it is held against, and must stay that way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from demo.events import Job, View

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class BlogTruth:
    """The blog's counts.

    Parameters
    ----------
    distinct : frozenset of View
        Every view once.
    views : mapping of str to int
        By url.
    visitors : mapping of str to int
        Requests by client.
    """

    distinct: frozenset[View]
    views: Mapping[str, int]
    visitors: Mapping[str, int]

    @property
    def site_views(self) -> int:
        """All views."""
        return len(self.distinct)

    @property
    def last(self) -> datetime | None:
        """Time of the latest view; None without views."""
        return max((datetime.fromisoformat(view.time) for view in self.distinct), default=None)

    def rolling(self, start: datetime, end: datetime) -> dict[str, int]:
        """Count each url's views in an interval, one by one.

        Parameters
        ----------
        start, end : datetime
            Aware; the start is part of the interval, the end is not.

        Returns
        -------
        dict of str to int
            Every url of the traffic, also those without a view in the interval.
        """
        viewed = ((view.url, datetime.fromisoformat(view.time)) for view in self.distinct)
        return _counted(self.views, viewed, start, end)


@dataclass(frozen=True)
class JobsTruth:
    """The jobs' counts.

    Parameters
    ----------
    distinct : frozenset of Job
        Every job once.
    jobs : mapping of str to int
        By customer.
    """

    distinct: frozenset[Job]
    jobs: Mapping[str, int]

    @property
    def last(self) -> datetime | None:
        """Time of the latest job; None without jobs."""
        return max((_from_milliseconds(job.at) for job in self.distinct), default=None)

    def rolling(self, start: datetime, end: datetime) -> dict[str, int]:
        """Count each customer's jobs in an interval, one by one.

        Parameters
        ----------
        start, end : datetime
            Aware; the start is part of the interval, the end is not.

        Returns
        -------
        dict of str to int
            Every customer, also those without a job in the interval.
        """
        placed = ((job.customer, _from_milliseconds(job.at)) for job in self.distinct)
        return _counted(self.jobs, placed, start, end)


def blog_truth(stream: Iterable[View]) -> BlogTruth:
    """Count the blog's views, each distinct one once.

    Parameters
    ----------
    stream : iterable of View
        As delivered, repeats included.

    Returns
    -------
    BlogTruth
        What the system must answer.
    """
    distinct = frozenset(stream)
    return BlogTruth(distinct, Counter(view.url for view in distinct), Counter(view.client for view in distinct))


def jobs_truth(stream: Iterable[Job]) -> JobsTruth:
    """Count the jobs, each distinct one once.

    Parameters
    ----------
    stream : iterable of Job
        As delivered, repeats included.

    Returns
    -------
    JobsTruth
        What the system must answer.
    """
    distinct = frozenset(stream)
    return JobsTruth(distinct, Counter(job.customer for job in distinct))


def _counted(
    groups: Iterable[str], events: Iterable[tuple[str, datetime]], start: datetime, end: datetime
) -> dict[str, int]:
    counts = dict.fromkeys(groups, 0)
    for group, time in events:
        if start <= time < end:
            counts[group] += 1
    return counts


def _from_milliseconds(milliseconds: int) -> datetime:
    # Not fromtimestamp of a quotient: floats do not hold every millisecond.
    return _EPOCH + timedelta(milliseconds=milliseconds)
