"""What generated views of pages contain, whatever the seed."""

from __future__ import annotations

import random

import pytest

from demo.examples.pages.traffic import created, visited
from demo.examples.pages.truth import pages_truth


@pytest.mark.parametrize("seed", range(20))
def test_users_view_pages_again_and_are_forgotten(seed: int) -> None:
    visits = visited(random.Random(seed), 0.0)
    truth = pages_truth(created(random.Random(seed), 0.0), visits)

    assert len(visits.sent) > len(set(visits.sent))
    assert truth.visitors < len({user for _, user in visits.sent})
    assert truth.pages < len(truth.views) + 2
    assert visits.resent
    assert len(visits.sent) < 600
