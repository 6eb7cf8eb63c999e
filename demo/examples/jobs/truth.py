"""The jobs' counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from demo.check.intervals import Interval, count_between
from demo.examples.jobs.traffic import Job


@dataclass(frozen=True)
class JobsTruth:
    """Distinct jobs, and their count by customer."""

    distinct: frozenset[Job]
    jobs: Mapping[str, int]

    @property
    def last(self) -> datetime | None:
        """Time of the latest job; None without jobs."""
        return max((job.time for job in self.distinct), default=None)

    def rolling(self, interval: Interval) -> dict[str, int]:
        return count_between(interval, self.jobs, ((job.customer, job.time) for job in self.distinct))


def jobs_truth(sent: Iterable[Job]) -> JobsTruth:
    """Count each distinct job once."""
    distinct = frozenset(sent)
    return JobsTruth(distinct, Counter(job.customer for job in distinct))
