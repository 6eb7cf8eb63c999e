"""The pages example: users view pages, each counted once a page, and everything is read back without a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from demo.aggregates_truth import PagesTruth, pages_truth
from demo.comparison import highest
from demo.events import Course, Page, Visit
from demo.example import Example, Sent
from demo.findings import Numbers
from demo.readback import read_groups
from examples.pages_declarations import PAGE, PAGES, TOTAL, VIEW, VIEWS, VISITORS

_SHOWN: Final = 3


@dataclass(frozen=True)
class Pages(Example):
    """The pages example.

    Parameters
    ----------
    counters : Counters
        The runtime, bound to the example's table.
    pages : Course of Page
        What happens to pages.
    visits : Course of Visit
        What users do.
    """

    name: ClassVar[str] = "pages"

    pages: Course[Page]
    visits: Course[Visit]

    def totals(self) -> dict[str, int]:
        """Read what tells whether everything has been counted."""
        return {
            "pages": int(self.counters.get(PAGES, {}).measures["pages"]),
            "page views": int(self.counters.get(TOTAL, {}).measures["views"]),
            "users": self.counters.distinct(VISITORS, {}),
        }

    def expected_totals(self) -> dict[str, int]:
        """Work out what the totals must come to."""
        truth = self._truth
        return {"pages": truth.pages, "page views": sum(truth.views.values()), "users": truth.visitors}

    @property
    def _truth(self) -> PagesTruth:
        return pages_truth(self.pages, self.visits)

    def _sent(self) -> Sequence[Sent]:
        return [(PAGE, self.pages, "pages"), (VIEW, self.visits, "page views")]

    def _read(self) -> Numbers:
        return {
            "totals": self.totals(),
            "views": read_groups(self.counters, VIEWS, "page", self._truth.views),
        }

    def _expected(self, found: Numbers) -> Numbers:  # noqa: ARG002
        return {"totals": self.expected_totals(), "views": self._truth.views}

    def _lines(self, found: Numbers) -> Sequence[str]:
        views, totals = found["views"], found["totals"]
        first = ", ".join(f"{page}: {views[page]:,}" for page in highest(views, _SHOWN))
        of_all = f"{totals['pages']:,}, viewed {totals['page views']:,} times by {totals['users']:,} users"
        return [f"pages                  {of_all}; first: {first}"]
