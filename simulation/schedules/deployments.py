"""Which declarations a schedule deploys, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from simulation.oracle.specs import Spec
from simulation.oracle.variants import folds_less, refiltered, repaired


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
        changes: list[Callable[[list[Spec]], None]] = [self._fold_less, self._fold_less, self._repair]
        changes += [] if self._whole else [self._refilter, self._add, self._remove]
        specs = list(self.current)
        for change in draw.sample(changes, draw.choice((1, 1, 2))):
            change(specs)
        return self._deploy(specs)

    def last(self) -> Sequence[Spec]:
        """Specs to deploy at last, so that every image can be counted by every name it waits for."""
        names = dict.fromkeys(spec.name for specs in self.made for spec in specs)
        originals = [next(spec for spec in self._among if spec.name == name) for name in names]
        return self._deploy([repaired(spec) for spec in originals])

    def _deploy(self, specs: Sequence[Spec]) -> Sequence[Spec]:
        self.made.append(specs)
        return specs

    def _replace(self, specs: list[Spec], made: Callable[[Spec], Spec]) -> None:
        index = self._random.randrange(len(specs))
        specs[index] = made(specs[index])

    def _fold_less(self, specs: list[Spec]) -> None:
        self._replace(specs, folds_less)

    def _refilter(self, specs: list[Spec]) -> None:
        self._replace(specs, refiltered)

    def _repair(self, specs: list[Spec]) -> None:
        specs[:] = [repaired(spec) for spec in specs]

    def _add(self, specs: list[Spec]) -> None:
        known = {spec.name for spec in specs}
        others = [spec for spec in self._among if spec.name not in known]
        if others:
            specs.append(self._random.choice(others))

    def _remove(self, specs: list[Spec]) -> None:
        if len(specs) > 1:
            specs.pop(self._random.randrange(len(specs)))
