"""Work that must not take long by its algorithm: CPU time, apart from the garbage and the threads of other tests."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cpu_seconds_below(limit: float, clock: Callable[[], float] = time.thread_time) -> Iterator[None]:
    """Expect the block to take less; ``time.process_time`` for what works by threads."""
    gc.collect()
    gc.disable()
    try:
        begun = clock()
        yield
        taken = clock() - begun
    finally:
        gc.enable()
    assert taken < limit
