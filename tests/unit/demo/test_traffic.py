from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from demo.traffic import blog_views, customer_jobs, with_duplicates

END = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)


def test_a_seed_always_makes_the_same_traffic() -> None:
    assert blog_views(random.Random(7), END) == blog_views(random.Random(7), END)
    assert customer_jobs(random.Random(7), END) == customer_jobs(random.Random(7), END)
    assert blog_views(random.Random(7), END) != blog_views(random.Random(8), END)


def test_views_are_skewed_diurnal_and_end_now() -> None:
    views = blog_views(random.Random(1), END)
    times = [datetime.fromisoformat(view.time) for view in views]
    pages = Counter(view.url for view in views).most_common()
    hours = Counter(time.hour for time in times)
    visitors = Counter(view.client for view in views)

    assert times == sorted(times)
    assert (times[0] >= END - timedelta(hours=49), times[-1]) == (True, END.replace(microsecond=0))
    assert pages[0][1] > 10 * pages[50][1]
    assert hours[15] > 3 * hours[3]
    assert len(visitors) < len(views) / 2
    assert max(visitors.values()) > 20


def test_jobs_cover_37_hours() -> None:
    jobs = customer_jobs(random.Random(1), END)
    times = [datetime.fromtimestamp(job.at / 1000, UTC) for job in jobs]

    assert times == sorted(times)
    assert times[-1] == datetime(2026, 11, 20, 9, 30, 15, tzinfo=UTC)
    assert timedelta(hours=36) < END - times[0] < timedelta(hours=37, seconds=1)
    assert {job.customer for job in jobs} == {"1", "2", "3"}
    assert len({job.id for job in jobs}) == len(jobs)
    assert 20 * 37 <= len(jobs) <= 100 * 37


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
    places = [place for place, event in enumerate(stream) if event in stream[max(0, place - 50) : place]]
    late = [place for place in range(1, len(stream)) if stream[place] < stream[place - 1]]

    assert len(places) < 100
    assert min(late) < 100
    assert max(late) > len(stream) - 100
