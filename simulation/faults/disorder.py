"""The order in which threads get requests done, decided by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._table import CONCURRENCY


def in_disorder(rng: random.Random) -> Callable[..., Any]:
    """Threads that take one item after the other: any of the next few may be done first."""

    def side_by_side(work: Callable[[Any], Any], items: Sequence[Any]) -> list[tuple[Any, Any]]:
        waiting, done = list(range(len(items))), dict[int, Any]()
        while waiting:
            index = waiting.pop(rng.randrange(min(CONCURRENCY, len(waiting))))
            try:
                done[index] = work(items[index])
            except (ClientError, BotoCoreError, TimeoutError) as error:
                done[index] = error
        return [(item, done[index]) for index, item in enumerate(items)]

    return side_by_side
