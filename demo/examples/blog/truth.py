"""The blog's counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from demo.check.intervals import Interval, count_between
from demo.examples.blog.traffic import View


@dataclass(frozen=True)
class BlogTruth:
    """Distinct views, and their counts by url and by client."""

    distinct: frozenset[View]
    views: Mapping[str, int]
    visitors: Mapping[str, int]

    @property
    def site_views(self) -> int:
        return len(self.distinct)

    @property
    def last(self) -> datetime | None:
        """Time of the latest view; None without views."""
        return max((datetime.fromisoformat(view.time) for view in self.distinct), default=None)

    def rolling(self, interval: Interval) -> dict[str, int]:
        return count_between(
            interval, self.views, ((view.url, datetime.fromisoformat(view.time)) for view in self.distinct)
        )


def blog_truth(sent: Iterable[View]) -> BlogTruth:
    """Count each distinct view once."""
    distinct = frozenset(sent)
    return BlogTruth(distinct, Counter(view.url for view in distinct), Counter(view.client for view in distinct))
