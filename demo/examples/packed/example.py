"""The same views as the blog's, packed: the same truth, at another price."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from demo.check.readback import read_groups
from demo.example import Finding, Numbers, Reading
from demo.examples.blog.example import Blog, Declared
from demo.examples.blog.measures import Measures
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.packed.declarations import (
    ACTIVE,
    LATEST,
    ROLLING,
    SITE,
    SIZES,
    VIEW,
    VIEWS,
    VIEWS_IN_PAGES,
    VISITORS,
    VISITORS_IN_PAGES,
)

_BOTH_WAYS: Final = {"in items": (VIEWS, VISITORS), "in pages": (VIEWS_IN_PAGES, VISITORS_IN_PAGES)}
"""Aggregates of many groups: by url, by visitor."""


@dataclass(frozen=True)
class Packed(Blog):
    """Return the blog's deliveries, in the same order, to a table of its own."""

    leading: ClassVar[bool] = False
    declared: ClassVar[Declared] = Declared(VIEW, VIEWS, SITE, VISITORS, ROLLING, Measures(ACTIVE, SIZES, LATEST))
    noun: ClassVar[str] = "packed views"

    def read(self, counters: Counters, progress: Progress) -> Reading:
        reading = super().read(counters, progress)
        events = Counter(str(event["url"]) for event in counters.events(VIEW))
        paged = {
            "views in pages": read_groups(counters, VIEWS_IN_PAGES, "url", self.truth.counts),
            "requests in pages": read_groups(counters, VISITORS_IN_PAGES, "clientId", self.truth.visitors),
        }
        return Reading({**reading.counts, **paged, "events": events}, reading.interval)

    def expected(self, reading: Reading) -> Numbers:
        paged = {"views in pages": self.truth.counts, "requests in pages": self.truth.visitors}
        return {**super().expected(reading), **paged, "events": self.truth.counts}

    def section(self, finding: Finding) -> dict[str, Any]:
        found = finding.found
        units = self.units(finding) | {
            name.replace(" ", "_"): finding.measured.aggregate(both) for name, both in _BOTH_WAYS.items()
        }
        return {
            **super().section(finding),
            "write_units_per_event": units,
            "read_units_per_event": finding.measured.accept_reads,
            "events_read_back": sum(found["events"].values()),
        }
