"""The events that are counted: views of a page by a client, as the references have them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Final, TypeAlias

from demo.examples.blog.access_log import read_log
from demo.examples.blog.traffic import View

LOG: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "semicomplete_access.log"
"""A real log, where there is one beside the project."""

_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
_CLIENTS: Final = 5_000
_Choose: TypeAlias = Callable[[random.Random], int]


def hot(events: int = 100_000, groups: int = 50, seed: int = 1) -> list[View]:
    """Generate views of few pages, by Zipf's law: the n-th page has an n-th of the first one's views."""
    weights = list(accumulate(1 / rank for rank in range(1, groups + 1)))
    return _views(random.Random(seed), events, lambda dice: dice.choices(range(groups), cum_weights=weights)[0])


def long_tail(events: int = 100_000, groups: int = 50_000, seed: int = 2) -> list[View]:
    """Generate views of very many pages, all alike."""
    return _views(random.Random(seed), events, lambda dice: dice.randrange(groups))


def log(path: Path = LOG) -> list[View]:
    """Read the distinct views of an access log, in its order."""
    return list(dict.fromkeys(view for view in read_log(path) if view is not None))


def leaderboard(players: int = 2_000, seed: int = 3) -> list[tuple[str, str]]:
    """Generate who found which path: up to 14 a player, some of them twice, in a random order."""
    dice = random.Random(seed)
    found = [
        (f"player-{player}", f"path-{path}")
        for player in range(players)
        for path in dice.sample(range(20), dice.randint(0, 14))
    ]
    found += dice.sample(found, len(found) // 20)
    dice.shuffle(found)
    return found


def truth(views: Sequence[View]) -> Counter[str]:
    """Count views per page."""
    return Counter(view.url for view in views)


def _views(dice: random.Random, events: int, choose: _Choose) -> list[View]:
    return [
        View(
            url=f"myblog.com/article{choose(dice)}",
            # A client views no two pages in one second, so that each event is another.
            time=(_START + timedelta(seconds=number // 10)).isoformat(),
            client=f"client{number % 10}-{dice.randrange(_CLIENTS)}",
        )
        for number in range(events)
    ]
