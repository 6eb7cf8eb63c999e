"""The events that are counted: page views, submissions of players, jobs of providers, as in the references."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from demo.blog.access_log import read_log
from demo.blog.traffic import View

LOG: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "semicomplete_access.log"
"""A real log, where there is one next to the project."""

_JOB_HOURS: Final = 37
PROVIDERS: Final = ("1", "2", "3")
# So far ahead that no engine's TTL deletes what looking back needs.
FIRST_JOB: Final = int(datetime(2096, 11, 18, 9, 23, 45, tzinfo=UTC).timestamp())

_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
_CLIENTS: Final = 5_000
_HOT: Final = 50


class Job(NamedTuple):
    """A job placed for a provider, at a second since 1970."""

    second: int
    provider: str


def hot(events: int) -> list[View]:
    """Return views of few pages, by Zipf's law: the n-th page has an n-th of the first one's views."""
    weights = list(accumulate(1 / rank for rank in range(1, _HOT + 1)))
    return _views(random.Random(1), events, lambda dice: dice.choices(range(_HOT), cum_weights=weights)[0])


def long_tail(events: int, groups: int) -> list[View]:
    """Return views of very many pages, all equally likely."""
    return _views(random.Random(2), events, lambda dice: dice.randrange(groups))


def log() -> list[View]:
    """Return the distinct views of the real log, in its order."""
    return list(dict.fromkeys(view._replace(size=None) for view in read_log(LOG) if view is not None))


def leaderboard(players: int) -> list[tuple[str, str]]:
    """Return who found which path: up to 14 per player, some of them twice, in random order."""
    dice = random.Random(3)
    pairs = [
        (f"player-{player}", f"path-{path}")
        for player in range(players)
        for path in dice.sample(range(20), dice.randint(0, 14))
    ]
    pairs += dice.sample(pairs, len(pairs) // 20)
    dice.shuffle(pairs)
    return pairs


def jobs() -> list[Job]:
    """20 to 100 jobs in each hour, in order of time."""
    dice = random.Random(1)
    placed = [
        Job(FIRST_JOB + hour * 3600 + dice.randrange(3600), dice.choice(PROVIDERS))
        for hour in range(_JOB_HOURS)
        for _ in range(dice.randint(20, 100))
    ]
    return sorted(placed, key=lambda job: job.second)


def truth(views: Sequence[View]) -> Counter[str]:
    return Counter(view.url for view in views)


def _views(dice: random.Random, events: int, choose: Callable[[random.Random], int]) -> list[View]:
    return [
        View(
            url=f"myblog.com/article{choose(dice)}",
            # A client views one page per second, so that no two events are the same.
            time=(_START + timedelta(seconds=number // 10)).isoformat(),
            client=f"client{number % 10}-{dice.randrange(_CLIENTS)}",
        )
        for number in range(events)
    ]
