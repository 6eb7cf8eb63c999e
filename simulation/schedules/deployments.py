"""Which declarations a schedule deploys, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from simulation.oracle.specs import RENAMED, Spec, family
from simulation.oracle.variants import folds_less, refiltered, renamed, repaired


class Deployments:
    """Every deployment of a schedule, in order, of specs `among` those there are.

    `whole` says that none may leave out what another counts.
    """

    def __init__(self, rng: random.Random, specs: Sequence[Spec], among: Sequence[Spec], *, whole: bool) -> None:
        self._random = rng
        self._among = among
        self._whole = whole
        self.base = list(specs)
        self.made: list[Sequence[Spec]] = [specs]

    @property
    def current(self) -> Sequence[Spec]:
        return self.made[-1]

    def reorder(self) -> Sequence[Spec]:
        """Declare the same in another order: the same deployment."""
        return self._deploy(self._random.sample(self.current, len(self.current)))

    def change(self) -> Sequence[Spec]:
        """Declare something else, quite often what was declared before."""
        draw = self._random
        if len(self.made) > 1 and draw.random() < 0.4:
            return self._deploy(draw.choice(self.made[:-1]))
        changes: list[Callable[[list[Spec]], None]] = [self._rename, self._rename, self._fold_less, self._fold_less]
        changes += [self._repair] if self._whole else [self._repair, self._refilter, self._add, self._remove]
        specs = list(self.current)
        for change in draw.sample(changes, draw.choice((1, 1, 2))):
            change(specs)
        return self._deploy(specs)

    def last(self) -> list[Sequence[Spec]]:
        """What to deploy at last, one by one, so that every image can be counted by every name it waits for."""
        families = {spec.family: spec for specs in self.made for spec in specs}
        originals = [next(spec for spec in self._among if spec.family == name) for name in families]
        mended = [repaired(spec) for spec in originals]
        return [self._deploy(mended), self._deploy([renamed(spec) for spec in mended])]

    def _deploy(self, specs: Sequence[Spec]) -> Sequence[Spec]:
        self.made.append(specs)
        return specs

    def _replace(self, specs: list[Spec], made: Callable[[Spec], Spec], among: Sequence[int]) -> None:
        if among:
            index = self._random.choice(among)
            specs[index] = made(specs[index])

    def _rename(self, specs: list[Spec]) -> None:
        self._replace(specs, renamed, [i for i, spec in enumerate(specs) if spec.family in RENAMED])

    def _fold_less(self, specs: list[Spec]) -> None:
        self._replace(specs, folds_less, range(len(specs)))

    def _refilter(self, specs: list[Spec]) -> None:
        self._replace(specs, refiltered, range(len(specs)))

    def _repair(self, specs: list[Spec]) -> None:
        specs[:] = [repaired(spec) for spec in specs]

    def _add(self, specs: list[Spec]) -> None:
        known = {family(spec.declaration.name) for spec in specs}
        others = [spec for spec in self._among if spec.family not in known]
        if others:
            specs.append(self._random.choice(others))

    def _remove(self, specs: list[Spec]) -> None:
        if len(specs) > 1:
            specs.pop(self._random.randrange(len(specs)))
