"""The pages example: users view pages, each counted once a page, and everything is read back without a scan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from demo.aggregates_truth import PagesTruth, answers, pages_truth
from demo.drain import read_settled
from demo.events import Course, Page, Visit
from demo.findings import Finding, Numbers
from demo.progress import Progress
from demo.readback import read_groups
from demo.sending import Account, send_course
from dynamodb_counters import Counters
from examples.pages_declarations import PAGE, PAGES, TOTAL, VIEW, VIEWS, VISITORS

_SHOWN: Final = 3


@dataclass(frozen=True)
class Pages:
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

    counters: Counters
    pages: Course[Page]
    visits: Course[Visit]

    @property
    def _truth(self) -> PagesTruth:
        return pages_truth(self.pages, self.visits)

    def send(self, progress: Progress) -> Account:
        """Have the pages created and viewed.

        Parameters
        ----------
        progress : Progress
            Told how far it is.

        Returns
        -------
        Account
            What became of the events.
        """
        accept_many, retract = self.counters.accept_many, self.counters.retract
        created = send_course(partial(accept_many, PAGE), partial(retract, PAGE), self.pages, "pages", progress)
        return created + send_course(
            partial(accept_many, VIEW), partial(retract, VIEW), self.visits, "page views", progress
        )

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

    def finding(self, account: Account) -> Finding:
        """Read everything back and hold it against the truth.

        Parameters
        ----------
        account : Account
            What became of the events.

        Returns
        -------
        Finding
            What was found.
        """
        expected: Numbers = {"totals": self.expected_totals(), "views": self._truth.views}
        found = read_settled(self._read, expected.__eq__)
        of_pages, of_visits = answers(self.pages), answers(self.visits)
        views, totals = found["views"], found["totals"]
        first = sorted(views, key=lambda page: (-views[page], page))[:_SHOWN]
        line = (
            f"pages                  {totals['pages']:,}, viewed {totals['page views']:,} times by {totals['users']:,} "
            f"users; first: {', '.join(f'{page}: {views[page]:,}' for page in first)}"
        )
        both = {answer: of_pages[answer] + of_visits[answer] for answer in of_pages}
        return Finding("pages", account, both, found, expected, [line])

    def _read(self) -> Numbers:
        return {
            "totals": self.totals(),
            "views": read_groups(self.counters, VIEWS, "page", self._truth.views),
        }
