"""The pages example: pages, and their views by different users, read back without a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from demo.check.readback import read_groups
from demo.example import Example, Finding, Numbers, Reading, highest
from demo.examples.pages.traffic import Page, Visit, created, visited
from demo.examples.pages.truth import PagesTruth
from demo.options import Setup
from demo.sending.deliveries import Deliveries
from demo.sending.send import Feed
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.pages.declarations import PAGE, PAGES, TOTAL, VIEW, VIEWS, VISITORS

_SHOWN: Final = 3


@dataclass(frozen=True)
class Pages(Example):
    pages: Deliveries[Page]
    visits: Deliveries[Visit]

    @classmethod
    def prepare(cls, setup: Setup) -> Pages:
        rng, duplicates = setup.rng("pages"), setup.options.duplicates
        return cls(created(rng, duplicates), visited(rng, duplicates))

    @cached_property
    def truth(self) -> PagesTruth:
        return PagesTruth(self.pages, self.visits)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(PAGE, self.pages, "pages"), Feed(VIEW, self.visits, "page views")]

    def totals(self, counters: Counters) -> dict[str, int]:
        return {
            "pages": int(counters.get(PAGES).measures["pages"]),
            "page views": int(counters.get(TOTAL).measures["views"]),
            "users": counters.get(VISITORS)["distinct"],
        }

    def expected_totals(self) -> dict[str, int]:
        truth = self.truth
        return {"pages": truth.pages, "page views": sum(truth.views.values()), "users": truth.visitors}

    def read(self, counters: Counters, progress: Progress) -> Reading:  # noqa: ARG002
        return Reading(
            {"totals": self.totals(counters), "views": read_groups(counters, VIEWS, "page", self.truth.views)}
        )

    def expected(self, reading: Reading) -> Numbers:  # noqa: ARG002
        return {"totals": self.expected_totals(), "views": self.truth.views}

    def lines(self, finding: Finding) -> Sequence[str]:
        views, totals = finding.found["views"], finding.found["totals"]
        first = ", ".join(f"{page}: {views[page]:,}" for page in highest(views, _SHOWN))
        of_all = f"{totals['pages']:,}, viewed {totals['page views']:,} times by {totals['users']:,} users"
        return [f"pages                  {of_all}; first: {first}"]
