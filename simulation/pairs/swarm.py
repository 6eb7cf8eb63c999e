"""What a seed of a swarm has: a few sources, acts and kinds of trouble, so that it is fast, and each has much to do."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

_SOURCES: Final = {"visit": ("visit", "correct", "record_once"), "tap": ("tap",), "order": ("order",)}
"""Acts by the source that they write."""

_SELDOM: Final = (("erase",), ("increment", "reset"), ("record_once",))
_OFTEN: Final = (("redeclare",), ("redrive", "discard"), ("retract",), ("expire",))
_NEVER: Final = ("backfill", "drop", "verify", "spoil", "block")
"""Runs, and what they judge: those of all actors at once have them."""

_BEYOND: Final = ("erase", "increment", "reset", "record_once", "pages")
"""Beyond the specification that traces are compared with."""

KINDS: Final = ("packed", "apart", "mended", "copied", "traced")


@dataclass(frozen=True, slots=True)
class Tempo:
    """How much happens: `pace` and `trouble` are shares of the steps that are acts, and that disturb something."""

    operations: tuple[int, int]
    pace: float
    trouble: float
    rates: tuple[float, ...]
    """Shares of requests that fail, as long as fewer than `faults` have."""
    faults: int
    favors: tuple[float, ...]
    """By how much an act may be more frequent than usual."""


OF_ALL: Final = Tempo((25, 60), 0.1, 0.06, (0.0, 0.01, 0.05, 0.2), 60, (0.3, 1, 1, 1, 5))
OF_SWARM: Final = Tempo((10, 30), 0.2, 0.1, (0.02, 0.1, 0.2, 0.3), 120, (1,))


@dataclass(frozen=True, slots=True)
class Swarm:
    """The kinds of trouble that a seed has.

    `hours`: it takes hours and days, the others take minutes. `spoils`: bookkeeping is edited by hand. `apart`: other
    code keeps its items in a table of its own. `mended`: the code fails on events that later code counts. `calm`:
    nothing happens to writers and operators.
    """

    sources: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    hours: bool = False
    spoils: bool = False
    apart: bool = False
    mended: bool = False
    poison: float = 0.0
    calm: bool = False

    @classmethod
    def draw(cls, seed: int, only: str = "") -> Self:
        """Return the swarm of a seed; `only` those of a kind."""
        rng = random.Random(f"swarm {seed}")
        apart = only == "apart" or (not only and rng.random() < 0.1)
        mended = only == "mended" or (not only and not apart and rng.random() < 0.1)
        drawn = rng.choice((["visit"], ["visit"], ["visit"], ["tap"], ["visit", "tap", "order"]))
        drawn = ["tap"] if only == "packed" else ["visit", "tap"] if mended else ["order"] if apart else drawn
        left_out = [
            *_NEVER,
            *([] if only == "copied" else ["copy"]),
            *(_BEYOND if only == "traced" else ()),
            *(act for source, acts in _SOURCES.items() if source not in drawn for act in acts),
            *_some(rng, (("arm",), *_SELDOM), 0.8),
            *_some(rng, _OFTEN, 0.35),
        ]
        hours = rng.random() < 0.15
        left_out += [*([] if hours else ["replay"]), *_some(rng, (("crowd",),), 0.9)]
        spoils = only not in ("copied", "mended", "traced") and not mended and rng.random() < 0.1
        poison = rng.choice((0.0, 0.0, 0.0, 0.15, 0.3))
        calm = "tap" not in drawn or rng.random() < 0.2
        return cls(frozenset(drawn), frozenset(left_out), hours, spoils, apart, mended, poison, calm)


def _some(rng: random.Random, groups: Iterable[tuple[str, ...]], share: float) -> list[str]:
    return [act for group in groups if rng.random() < share for act in group]
