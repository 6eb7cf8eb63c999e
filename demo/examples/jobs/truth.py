"""The jobs' counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections.abc import Iterable

from demo.check.intervals import Timeline
from demo.examples.jobs.traffic import Job


def jobs_truth(sent: Iterable[Job]) -> Timeline:
    """Each distinct job once, by customer."""
    return Timeline((job.customer, job.time) for job in frozenset(sent))
