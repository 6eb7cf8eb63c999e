from __future__ import annotations

from demo.examples.pages.traffic import Page, Visit
from demo.examples.pages.truth import pages_truth
from demo.sending.deliveries import Deliveries


def test_a_user_counts_once_a_page_and_once_in_all() -> None:
    visits = [Visit("/a", "u"), Visit("/a", "v"), Visit("/b", "u"), Visit("/a", "u"), Visit("/b", "w")]

    truth = pages_truth(Deliveries([Page("/a"), Page("/b"), Page("/c")], [Page("/c")]), Deliveries(visits, visits[-1:]))

    assert (truth.pages, truth.views, truth.visitors) == (2, {"/a": 2, "/b": 1}, 2)


def test_nothing_is_nothing() -> None:
    truth = pages_truth(Deliveries(), Deliveries())

    assert (truth.pages, truth.views, truth.visitors) == (0, {}, 0)
