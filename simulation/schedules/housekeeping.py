"""Housekeeping of the runtime as usual, or eager: so that few writes suffice to move, settle and prune."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dynamodb_counters._stream import checkpoints, pruning

_EAGER: Final = (
    (pruning, "PRUNED_AT", 1),
    (pruning, "_SPARE_BYTES", 1024),
    (pruning, "_LOOK_EVERY", 0),
    (checkpoints, "WORTH_A_WRITE", 1),
)


@contextmanager
def housekeeping(*, eager: bool) -> Iterator[None]:
    """If eager, have checkpoints moved and watermarks pruned whenever they may be, not when it is worth a write."""
    changed = _EAGER if eager else ()
    usual = [(module, name, vars(module)[name]) for module, name, _ in changed]
    for module, name, value in changed:
        vars(module)[name] = value
    try:
        yield
    finally:
        for module, name, value in usual:
            vars(module)[name] = value
