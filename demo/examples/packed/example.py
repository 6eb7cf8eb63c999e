"""The same views as the blog's, packed: the same truth, at another price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from demo.example import Finding, Numbers, Reading
from demo.examples.blog.example import Blog, Declared
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.packed.declarations import ROLLING, SITE, VIEW, VIEWS, VISITORS


@dataclass(frozen=True)
class Packed(Blog):
    """Return the blog's deliveries, in the same order, to a table of its own."""

    declared: ClassVar[Declared] = Declared(VIEW, VIEWS, SITE, VISITORS, ROLLING)
    noun: ClassVar[str] = "packed views"

    def read(self, counters: Counters, progress: Progress) -> Reading:
        reading = super().read(counters, progress)
        events = Counter(str(event["url"]) for event in counters.events(VIEW))
        return Reading({**reading.counts, "events": events}, reading.interval)

    def expected(self, reading: Reading) -> Numbers:
        return {**super().expected(reading), "events": self.truth.counts}

    def lines(self, finding: Finding) -> Sequence[str]:
        costs = finding.measured
        return [f"    packed             {costs.line(4)}; {costs.accept_reads:.4f} read units to accept"]

    def section(self, finding: Finding) -> dict[str, Any]:
        found = finding.found
        return {
            "write_units_per_event_packed": finding.measured.section(),
            "packed": {
                "events_sent": finding.account.sent,
                "distinct_events": self.truth.total,
                "duplicates_rejected": finding.account.statuses["duplicate"],
                "read_units_per_event": finding.measured.accept_reads,
                "events_read_back": sum(found["events"].values()),
                "views": found["views"],
                "site_views": found["all views"]["the site"],
                "visitors": found["requests"],
                "rolling_24h": {**finding.reading.covered.section(), "counts": found["views in 24 h"]},
            },
        }

    def queries(self, table: str) -> Sequence[str]:  # noqa: ARG002
        return []
