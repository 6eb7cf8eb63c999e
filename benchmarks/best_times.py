"""The best of several rounds: a busy machine only ever makes a round slower."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


def best_cpu_seconds(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each, all interleaved, so that whatever else runs slows all of them alike."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def keep_best(found: dict[str, dict[str, Any]], name: str, wall: float, cpu: float) -> None:
    """Keep the lower of the wall and CPU seconds of one more round."""
    best = found.setdefault(name, {"wall_seconds": wall, "cpu_seconds": cpu})
    best["wall_seconds"] = min(best["wall_seconds"], wall)
    best["cpu_seconds"] = min(best["cpu_seconds"], cpu)
