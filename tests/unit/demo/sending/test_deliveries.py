from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.examples.leaderboard.traffic import submissions
from demo.examples.pages.traffic import created, visited
from demo.sending.deliveries import Deliveries, with_duplicates


def test_what_is_retracted_is_gone_until_it_comes_again() -> None:
    deliveries = Deliveries(["a", "b", "a", "c"], ["a", "b"], ["b"])

    assert deliveries.remaining() == {"b", "c"}
    assert deliveries.responses() == {"accepted": 4, "duplicate": 1, "withdrawn": 2}


@pytest.mark.parametrize("make", [submissions, created, visited])
@pytest.mark.parametrize("seed", range(20))
def test_only_what_was_sent_is_retracted_and_only_that_is_sent_again(make: Any, seed: int) -> None:
    deliveries: Deliveries[Any] = make(random.Random(seed), 0.2)

    assert len(deliveries.sent) > len(set(deliveries.sent))
    assert 0 < len(deliveries.retracted) == len(set(deliveries.retracted))
    assert set(deliveries.resent) <= set(deliveries.retracted) <= set(deliveries.sent)
    assert len(deliveries.resent) == len(set(deliveries.resent))
    assert deliveries == make(random.Random(seed), 0.2)


@given(st.lists(st.integers(0, 50), max_size=60), st.floats(0, 1), st.integers())
def test_duplicates_are_a_share_of_the_distinct_events(events: list[int], share: float, seed: int) -> None:
    stream = with_duplicates(random.Random(seed), events, share)
    extra = Counter(stream) - Counter(events)

    assert len(stream) == len(events) + round(share * len(set(events)))
    assert Counter(stream) - extra == Counter(events)
    assert set(stream) == set(events)
    assert max(extra.values(), default=1) == 1


def test_duplicates_come_out_of_order_and_all_over_the_stream() -> None:
    stream = with_duplicates(random.Random(1), range(10_000), 0.2)
    positions = [position for position, event in enumerate(stream) if event in stream[max(0, position - 50) : position]]
    late = [position for position in range(1, len(stream)) if stream[position] < stream[position - 1]]

    assert len(positions) < 100
    assert min(late) < 100
    assert max(late) > len(stream) - 100
