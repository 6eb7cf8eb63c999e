"""Rehearsals while all else goes on, and each number of one that nothing is in the way of."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Final, TypeAlias

from dynamodb_counters._backfill.rehearsal import Rehearsal
from dynamodb_counters._declarations import Declaration, Window
from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._timeline.tiers import TOTAL
from simulation.pairs import features
from simulation.pairs.calls import Runner
from simulation.pairs.engine import Act, Engine
from simulation.pairs.runs import Changes
from simulation.pairs.subjects import signature
from simulation.pairs.truth import Truth

_MOST: Final = 2
_EVERY: Final = 10**6
CHANGED: Final = "number that a rehearsal changed"

Place: TypeAlias = tuple[str, tuple[tuple[str, str], ...], str]
"""Name, values and attribute of a number; a window's are summed up."""

Pair: TypeAlias = tuple[Decimal, Decimal]


class Rehearsing:
    """Rehearses other variants of what is declared."""

    def __init__(self, engine: Engine, changes: Changes) -> None:
        self._engine = engine
        self._changes = changes
        self._rng = random.Random(f"rehearsals {engine.seed}")
        # A forced pair has enough to do.
        self._left = 0 if engine.forced.features else max(0, self._rng.randint(-_MOST, _MOST))

    def acts(self) -> Iterable[Act]:
        if self._left and self._engine.taken_over():
            yield 1, self.rehearse

    def rehearse(self) -> None:
        self._left -= 1
        self._start(self._engine.deployments.others(self._rng))

    def _start(self, declared: Iterable[Declaration]) -> Runner:
        kind = partial(Rehearsal, declared=tuple(declared), most=_EVERY)
        return self._changes.start(kind)

    def compare(self) -> None:
        """With nothing in the way: rehearse, and compare each number with what items and tallies come to."""
        engine, declared = self._engine, self._engine.deployments.others(self._rng)
        runner = self._start(declared)
        engine.go()
        if runner.error is not None:
            engine.wrong.append(f"the last rehearsal, with nothing in its way, ended with {runner.error!r}")
            return
        work, truth = runner.work, Truth(engine.backend, engine.ledger)
        sides = _Sides(
            {base_name(name): truth.folded[name] for name in truth.read_names()}, {each.name: each for each in declared}
        )
        found = {place: pair for place, pair in _found(work, sides.windows) if place[0] in sides.changed}
        want = sides.numbers(truth)
        # Whether an early event is still early depends on the moment of the cut.
        unsure = sides.windows if work.uncounted else ()
        for place in sorted({*want, *found}, key=repr):
            if want.get(place) != found.get(place) and place[0] not in unsure:
                engine.wrong.append(f"rehearsed {place}: {found.get(place)}, expected {want.get(place)}")
        engine.reached[CHANGED] += len(want)
        engine.note(features.REHEARSED, work.names)


def _found(work: Rehearsal, windows: Container[str]) -> Iterator[tuple[Place, Pair]]:
    """The numbers that a rehearsal has changed."""
    compared = [each for each in work.largest if each[0] not in windows]
    compared += [each for each in work.sums() if each[0] in windows and each[2] == TOTAL]
    for name, values, attribute, before, after, by in compared:
        if by:
            yield (name, tuple(sorted(values.items())), attribute), (Decimal(before or 0), Decimal(after or 0))


class _Sides:
    """Declarations that are read, by name, and those that are rehearsed in their place."""

    def __init__(self, read: Mapping[str, Declaration], declared: Mapping[str, Declaration]) -> None:
        self._read, self._declared = read, declared
        old, new = ({name: signature(each) for name, each in side.items()} for side in (read, declared))
        self.changed = {name for name in {**old, **new} if old.get(name) != new.get(name)}
        self.windows = {name for name, each in (*read.items(), *declared.items()) if isinstance(each, Window)}

    def numbers(self, truth: Truth) -> dict[Place, Pair]:
        """The numbers that must have changed."""
        found: defaultdict[Place, list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
        for index, side in enumerate((self._read, self._declared)):
            for name in self.changed & side.keys():
                declaration = side[name]
                for group, parts in truth.filled(declaration, self._read, self.changed).items():
                    fields = [] if name in self.windows else sorted(zip(declaration.fields, group, strict=True))
                    attributes = (TOTAL,) if isinstance(declaration, Window) else declaration._attributes
                    for attribute in attributes:
                        place = name, tuple(fields), attribute
                        found[place][index] += parts.get(attribute, Decimal(0))
        return {place: (before, after) for place, (before, after) in found.items() if before != after}
