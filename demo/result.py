"""What a run has found out, held against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demo.comparison import differing
from demo.findings import Finding
from demo.inputs import Inputs
from demo.readback import Rolling
from demo.sending import Account


@dataclass(frozen=True)
class Result:
    """Everything a run has found out.

    Parameters
    ----------
    inputs : Inputs
        What was sent, and the truth about it.
    blog, jobs : Account
        What the runtime answered to it.
    views, visitors : mapping of str to int
        Counts by url and by client.
    site_views : int
        Count of all views.
    jobs_placed : mapping of str to int
        Count of all jobs by customer.
    rolling, jobs_rolling : Rolling
        The last 24 hours by url and by customer.
    accept_units, aggregate_units : float or None
        Write units for the blog; None where they could not be measured.
    window_units : float
        Read units of one window query.
    seconds : float
        How long it all took.
    findings : sequence of Finding
        What the other examples have counted.
    stalled : str or None
        Why waiting for the counts was given up, if it was.
    """

    inputs: Inputs
    blog: Account
    jobs: Account
    views: Mapping[str, int]
    visitors: Mapping[str, int]
    site_views: int
    rolling: Rolling
    jobs_placed: Mapping[str, int]
    jobs_rolling: Rolling
    accept_units: float
    aggregate_units: float | None
    window_units: float
    seconds: float
    findings: Sequence[Finding] = ()
    stalled: str | None = None

    @property
    def duplicates(self) -> int:
        """Views rejected as duplicates."""
        return self.blog.statuses["duplicate"]

    @property
    def duplicate_jobs(self) -> int:
        """Jobs rejected as duplicates."""
        return self.jobs.statuses["duplicate"]

    @property
    def checked(self) -> int:
        """How many counts are compared with the truth."""
        ours = len(self.views) + len(self.rolling.counts) + len(self.visitors) + 1 + 2 * len(self.jobs_placed)
        return ours + sum(finding.checked for finding in self.findings)

    @property
    def accept_units_per_event(self) -> float | None:
        """Write units to accept a view, a duplicate included."""
        return _per(self.accept_units, self.blog.sent)

    @property
    def aggregate_units_per_event(self) -> float | None:
        """Write units to aggregate a distinct view."""
        return _per(self.aggregate_units, self.inputs.blog.site_views)

    def differences(self) -> list[str]:
        """Compare every count with the truth.

        Returns
        -------
        list of str
            A line for each that is wrong, and for each event that was not taken. Empty when all is exact.
        """
        blog, jobs = self.inputs.blog, self.inputs.customers
        rolling = blog.rolling(self.rolling.start, self.rolling.end)
        jobs_rolling = jobs.rolling(self.jobs_rolling.start, self.jobs_rolling.end)
        repeated, repeated_jobs = self.blog.sent - blog.site_views, self.jobs.sent - len(jobs.distinct)
        return [
            *(f"{n:,} events {reason}" for reason, n in (self.blog.reasons + self.jobs.reasons).items()),
            *differing("duplicates", {"views": self.duplicates}, {"views": repeated}),
            *differing("duplicates", {"jobs": self.duplicate_jobs}, {"jobs": repeated_jobs}),
            *differing("views", {"the site": self.site_views}, {"the site": blog.site_views}),
            *differing("views", self.views, blog.views),
            *differing("views in 24 h", self.rolling.counts, rolling),
            *differing("requests", self.visitors, blog.visitors),
            *differing("jobs", self.jobs_placed, jobs.jobs),
            *differing("jobs in 24 h", self.jobs_rolling.counts, jobs_rolling),
            *(line for finding in self.findings for line in finding.differences()),
        ]


def _per(units: float | None, events: int) -> float | None:
    if not events:
        return 0.0
    return None if units is None else round(units / events, 4)
