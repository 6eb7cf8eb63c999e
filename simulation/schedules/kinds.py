"""Kinds of trouble in a schedule: the share of each, drawn from its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """The kinds of trouble that a schedule has.

    `hours`: it takes hours and days, the others take minutes. `eager`: housekeeping happens whenever it may.
    `redeclared`: deployments declare something else. `poison`: the share of events that some declarations cannot count.
    `crowded`: nine in ten calls are refused for a while. `spoiled`: the bookkeeping is edited by hand. `packed`: events
    are packed, by several writers that have faults as well. `apart`: other code keeps the events in a table of its own.
    `mended`: the code fails on events that later code counts.
    """

    hours: bool = False
    eager: bool = False
    redeclared: bool = False
    poison: float = 0.0
    crowded: bool = False
    spoiled: bool = False
    packed: bool = False
    apart: bool = False
    mended: bool = False

    @classmethod
    def draw(cls, rng: random.Random, *, packed: bool = False, apart: bool = False, mended: bool = False) -> Kind:
        """A kind at random; `packed`, of other code's events (`apart`), or with code that is `mended`, on request."""
        hours = rng.random() < 0.1
        trouble = rng.choices(("none", "redeclared", "spoiled"), (40, 38, 10))[0]
        spoiled = trouble == "spoiled" and not mended
        redeclared = trouble == "redeclared" or (spoiled and rng.random() < 0.4)
        return cls(
            hours=hours,
            eager=rng.random() < 0.5,
            redeclared=redeclared,
            poison=rng.choice((0.0, 0.0, 0.0, 0.15, 0.3)),
            crowded=rng.random() < 0.1,
            spoiled=spoiled,
            packed=packed or (rng.random() < 0.4 and not apart),
            apart=apart,
            mended=mended,
        )
