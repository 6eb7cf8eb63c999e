"""The views sent to the blog, to a table that packs them: the same truth at another price; groups in pages, too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from demo.example import Finding, Numbers
from demo.examples import blog
from demo.options import Setup
from demo.sending import Deliveries
from dynamodb_counters import Counters
from examples.packed import VIEW


@dataclass(frozen=True, kw_only=True)
class Packed(blog.Blog):
    def read(self, counters: Counters) -> Numbers:
        events = Counter(str(event["url"]) for event in counters.events(VIEW))
        return {**super().read(counters), "events": events}

    def expected(self, actual: Numbers) -> Numbers:
        return {**super().expected(actual), "events": self.viewed.views}

    def section(self, finding: Finding) -> dict[str, Any]:
        return {self.name: super().section(finding)}

    def units(self, finding: Finding) -> dict[str, float]:
        by_url_and_visitor = {"in_items": ("views", "visitors"), "in_pages": ("views-in-pages", "visitors-in-pages")}
        units = {
            name: finding.measured.aggregate(self.declared[False, aggregate] for aggregate in both)
            for name, both in by_url_and_visitor.items()
        }
        return {**super().units(finding), **units}


def play(setup: Setup) -> Packed:
    truth, deliveries, unparsable = blog.views(setup)
    paged = {"views-in-pages": truth.views, "visitors-in-pages": truth.visitors}
    return Packed(
        name="packed",
        now=truth.now,
        events={"view": Deliveries(deliveries)},
        truth=paged | blog.counts(truth),
        viewed=truth,
        unparsable_lines=unparsable,
    )
