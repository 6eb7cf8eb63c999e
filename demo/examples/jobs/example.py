"""The jobs example: jobs by customer, in all and in 24 hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from demo.check.intervals import Timeline
from demo.check.readback import read_groups, read_rolling
from demo.example import Example, Finding, Numbers, Reading
from demo.examples.jobs.traffic import Job, customer_jobs
from demo.examples.jobs.truth import jobs_truth
from demo.options import Setup
from demo.sending.deliveries import Deliveries, with_duplicates
from demo.sending.send import Feed
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.jobs.declarations import JOB, JOBS, JOBS_24H


@dataclass(frozen=True)
class Jobs(Example):
    noun: ClassVar[str] = "jobs"

    jobs: Sequence[Job]
    now: datetime

    @classmethod
    def prepare(cls, setup: Setup) -> Jobs:
        jobs = customer_jobs(setup.rng("jobs"), setup.now)
        return cls(with_duplicates(setup.rng("jobs again"), jobs, setup.options.duplicates), setup.now)

    @cached_property
    def truth(self) -> Timeline:
        return jobs_truth(self.jobs)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(JOB, Deliveries(self.jobs), "jobs")]

    def total(self, counters: Counters) -> int:
        return sum(self._placed(counters).values())

    def expected_total(self) -> int:
        return self.truth.total

    def read(self, counters: Counters, progress: Progress) -> Reading:
        truth, as_of = self.truth, self.truth.last or self.now
        rolling, interval = read_rolling(counters, JOBS_24H, "customer", truth.counts, as_of=as_of, progress=progress)
        return Reading({"jobs": self._placed(counters), "jobs in 24 h": rolling}, interval)

    def expected(self, reading: Reading) -> Numbers:
        return {"jobs": self.truth.counts, "jobs in 24 h": self.truth.rolling(reading.covered)}

    def lines(self, finding: Finding) -> Sequence[str]:
        last_day = finding.found["jobs in 24 h"]
        return [
            f"{'jobs':>7}  {'last 24 h':>9}  customer",
            *(f"{count:>7,}  {last_day[name]:>9,}  {name}" for name, count in sorted(finding.found["jobs"].items())),
        ]

    def commands(self) -> Sequence[str]:
        return [
            f"get {JOBS.name} customer=1",
            f"window {JOBS_24H.name} customer=1 --last 24h",
            f"explain {JOBS.name} customer=1",
        ]

    def section(self, finding: Finding) -> dict[str, Any]:
        return {
            "events_sent": finding.account.sent,
            "distinct_events": self.truth.total,
            "duplicates_rejected": finding.account.statuses["duplicate"],
            "customers": finding.found["jobs"],
            "rolling_24h": {**finding.reading.covered.section(), "counts": finding.found["jobs in 24 h"]},
        }

    def _placed(self, counters: Counters) -> dict[str, int]:
        return read_groups(counters, JOBS, "customer", self.truth.counts)
