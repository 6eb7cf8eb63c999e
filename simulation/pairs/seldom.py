"""Pairs that seldom meet by chance: one seed in four forces one of them, on the same few declarations where it can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from simulation.pairs.features import (
    ADDED,
    DISCARDED,
    ERASED_BACK,
    ERASED_KEPT,
    EXPIRED,
    PACKED,
    REDEFINED,
    REDRIVEN,
    REMOVED,
    RENAMED,
    REPAIRED,
    Pair,
)

SELDOM: Final[Sequence[Pair]] = (
    (DISCARDED, ADDED),
    (REMOVED, REPAIRED),
    (PACKED, EXPIRED),
    (REDRIVEN, ADDED),
    (DISCARDED, REMOVED),
    (DISCARDED, RENAMED),
    (DISCARDED, REDEFINED),
    (ERASED_KEPT, DISCARDED),
    (ERASED_BACK, DISCARDED),
    (ERASED_KEPT, REMOVED),
    (ERASED_BACK, REMOVED),
    (REMOVED, RENAMED),
)

_ONE_IN: Final = 4
_OFTEN: Final = 6

_BRINGS: Final[Mapping[str, frozenset[str]]] = {
    "redrive": frozenset({REDRIVEN}),
    "discard": frozenset({DISCARDED}),
    "erase": frozenset({ERASED_KEPT, ERASED_BACK}),
    "expire": frozenset({EXPIRED}),
    "tap": frozenset({PACKED}),
    "visit": frozenset({REDRIVEN, DISCARDED, ERASED_KEPT, ERASED_BACK}),
}
"""Features that acts bring about, by the acts' names."""


class Forced:
    """The pair that a seed forces, if it forces one, and the declarations on which it is to meet."""

    def __init__(self, seed: int) -> None:
        number, rest = divmod(seed, _ONE_IN)
        self.features = frozenset(SELDOM[number % len(SELDOM)] if rest == 1 else ())
        self.names: tuple[str, ...] = ()
        """The family, and the name that it may get."""
        if self.features:
            self.names = ("taps", "presses") if PACKED in self.features else ("kept", "visitors")

    def has(self, *features: str) -> bool:
        """Whether one of these is forced."""
        return not self.features.isdisjoint(features)

    def weight(self, act: str, weight: int) -> int:
        """How often an act is to be, in proportion to the others."""
        return weight * _OFTEN if self.has(*_BRINGS.get(act, ())) else weight

    def changes(self) -> list[str]:
        """Which deployments come first; what is removed comes back, so that the rest happens to it as well."""
        first = [kind for kind in (ADDED, RENAMED, REMOVED, REDEFINED) if self.has(kind)]
        return [*first, ADDED] if self.has(REMOVED) else first

    def among(self, names: Sequence[str]) -> Sequence[str]:
        """The names on which the pair is to meet, if they are there; all otherwise."""
        return [name for name in names if name in self.names] or names

    def concerns(self, names: Iterable[str]) -> bool:
        """Whether one of these is such a name."""
        return any(name in self.names for name in names)


def forcing(pair: Pair, count: int) -> list[int]:
    """The first seeds that force a pair."""
    start = _ONE_IN * SELDOM.index(pair) + 1
    return [start + turn * _ONE_IN * len(SELDOM) for turn in range(count)]
