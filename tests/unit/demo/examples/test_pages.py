from __future__ import annotations

import random

import pytest

from demo.examples.pages.traffic import Page, Visit, created, visited
from demo.examples.pages.truth import PagesTruth
from demo.sending.deliveries import Deliveries


@pytest.mark.parametrize("seed", range(20))
def test_users_view_pages_again_and_are_forgotten(seed: int) -> None:
    visits = visited(random.Random(seed), 0.0)
    truth = PagesTruth(created(random.Random(seed), 0.0), visits)

    assert len(visits.sent) > len(set(visits.sent))
    assert truth.visitors < len({user for _, user in visits.sent})
    assert truth.pages < len(truth.views) + 2
    assert visits.resent
    assert len(visits.sent) < 600


def test_a_user_counts_once_a_page_and_once_in_all() -> None:
    visits = [Visit("/a", "u"), Visit("/a", "v"), Visit("/b", "u"), Visit("/a", "u"), Visit("/b", "w")]

    truth = PagesTruth(Deliveries([Page("/a"), Page("/b"), Page("/c")], [Page("/c")]), Deliveries(visits, visits[-1:]))

    assert (truth.pages, truth.views, truth.visitors) == (2, {"/a": 2, "/b": 1}, 2)
