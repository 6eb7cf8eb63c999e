"""Housekeeping of the runtime as usual, or eager: so that few writes suffice to move, settle, prune and expire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dynamodb_counters._stream import checkpoints, pruning
from dynamodb_counters._writes import packed_accept

_EAGER: Final = (
    (pruning, "PRUNED_AT", 1),
    (pruning, "_SPARE_BYTES", 1024),
    (pruning, "_LOOK_EVERY", 0),
    (checkpoints, "WORTH_A_WRITE", 1),
    (packed_accept, "_MARGIN", 3600),
)


@contextmanager
def housekeeping(*, eager: bool) -> Iterator[None]:
    """If eager, have checkpoints moved, watermarks pruned and chunks deleted as soon as they may be."""
    changed = _EAGER if eager else ()
    usual = [(module, name, vars(module)[name]) for module, name, _ in changed]
    for module, name, value in changed:
        vars(module)[name] = value
    try:
        yield
    finally:
        for module, name, value in usual:
            vars(module)[name] = value
