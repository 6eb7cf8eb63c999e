"""The pages example: pages, and their views by different users, read back without a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

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

_SHOWN: Final = 5


@dataclass(frozen=True)
class Pages(Example):
    noun: ClassVar[str] = "pages and views"

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

    def total(self, counters: Counters) -> int:
        return int(counters.get(TOTAL).measures["views"])

    def expected_total(self) -> int:
        return sum(self.truth.views.values())

    def read(self, counters: Counters, progress: Progress) -> Reading:  # noqa: ARG002
        totals = {
            "pages": int(counters.get(PAGES).measures["pages"]),
            "page views": self.total(counters),
            "users": counters.get(VISITORS)["distinct"],
        }
        return Reading({"totals": totals, "views": read_groups(counters, VIEWS, "page", self.truth.views)})

    def expected(self, reading: Reading) -> Numbers:  # noqa: ARG002
        truth = self.truth
        totals = {"pages": truth.pages, "page views": self.expected_total(), "users": truth.visitors}
        return {"totals": totals, "views": truth.views}

    def lines(self, finding: Finding) -> Sequence[str]:
        views, totals = finding.found["views"], finding.found["totals"]
        return [
            f"{'views':>7}  page",
            *(f"{views[page]:>7,}  {page}" for page in highest(views, _SHOWN)),
            f"{totals['page views']:>7,}  of {totals['pages']:,} pages by {totals['users']:,} users",
        ]

    def commands(self) -> Sequence[str]:
        return [f"get {VIEWS.name} page=page-01", f"get {TOTAL.name}", f"explain {VIEWS.name} page=page-01"]
