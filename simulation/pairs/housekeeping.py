"""Housekeeping of the runtime as usual, or eager: so that few writes suffice to move, settle, prune and expire."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

from counters_lambda.counting import commit, runner
from counters_lambda.counting import run_logs as run_items
from counters_lambda.counting.commit import PageSplits
from dynamodb_counters import _erasure as eraser
from dynamodb_counters import exactly_once
from dynamodb_counters._fold import layouts
from dynamodb_counters._fold.layouts import ItemLayout, Page, texts_of
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._writes import chunk_writes

_EAGER: Final = (
    (commit, "PRUNED_AT", 1),
    (commit, "_SPARE_BYTES", 1024),
    (exactly_once, "PRUNED_EVERY", 1),
    (commit, "WORTH_A_WRITE", 1),
    (chunk_writes, "KEPT_LONGER", 3600),
)
_SMALL: Final = ((run_items, "MOST_BYTES", 120), (runner, "MOST_HELD", 50))


@contextmanager
def housekeeping(*, eager: bool) -> Iterator[None]:
    """If eager, have checkpoints moved, watermarks pruned and chunks deleted as soon as they may be."""
    with _changed(_EAGER if eager else ()):
        yield


@contextmanager
def seeded(rng: random.Random, *, small: bool) -> Iterator[None]:
    """Have the seed decide ids; if small, logs and baselines come in parts."""
    ids: list[tuple[object, str, Any]]
    ids = [(runner, "secrets", SimpleNamespace(token_hex=lambda size: rng.randbytes(size).hex()))]
    ids += [(module, "uuid4", lambda: UUID(int=rng.getrandbits(128))) for module in (eraser, chunk_writes)]
    with _changed([*ids, *(_SMALL if small else ())]):
        yield


@contextmanager
def narrow_pages(groups: int) -> Iterator[None]:
    """Have a page split once it holds more groups, and make room for as few at a time."""
    grown = PageSplits.grown

    def looked_at(self: PageSplits, layout: ItemLayout, page: Page, _: float, item: Image | None, __: int) -> float:
        self._units.clear()
        return grown(self, layout, page, 2.0, item, 1)

    changes: list[tuple[object, str, Any]] = [(layouts, "_MOST_ADDED", 4 * groups), (commit, "_MOST_ENTRIES", groups)]
    is_full = lambda image, _: len(texts_of(image)) > groups  # noqa: E731
    with _changed([*changes, (commit, "is_full", is_full), (PageSplits, "grown", looked_at)]):
        yield


def _changed(changes: Iterable[tuple[object, str, Any]]) -> ExitStack:
    stack = ExitStack()
    for module, name, value in changes:
        stack.enter_context(patch.object(module, name, value))
    return stack
