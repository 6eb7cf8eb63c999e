from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from demo.examples.blog.traffic import blog_views

END = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)


def test_a_seed_always_makes_the_same_traffic() -> None:
    assert blog_views(random.Random(7), END) == blog_views(random.Random(7), END)
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
