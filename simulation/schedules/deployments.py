"""Which declarations a schedule deploys, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from simulation.oracle.specs import Spec
from simulation.oracle.variants import folds_less, refiltered


class Deployments:
    """Every deployment of a schedule, in order, of specs `among` those there are."""

    def __init__(self, rng: random.Random, specs: Sequence[Spec], among: Sequence[Spec]) -> None:
        self._random = rng
        self._among = among
        self.made: list[Sequence[Spec]] = [specs]

    @property
    def current(self) -> Sequence[Spec]:
        return self.made[-1]

    def reorder(self) -> Sequence[Spec]:
        """Declare the same in another order."""
        return self._deploy(self._random.sample(self.current, len(self.current)))

    def change(self) -> Sequence[Spec]:
        """Declare something else, quite often what was declared before."""
        draw = self._random
        if len(self.made) > 1 and draw.random() < 0.4:
            return self._deploy(draw.choice(self.made[:-1]))
        changes: Sequence[Callable[[list[Spec]], None]] = (self._fold_less, self._refilter, self._add, self._remove)
        specs = list(self.current)
        for change in draw.sample(changes, draw.choice((1, 1, 2))):
            change(specs)
        return self._deploy(specs)

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

    def _add(self, specs: list[Spec]) -> None:
        known = {spec.name for spec in specs}
        others = [spec for spec in self._among if spec.name not in known]
        if others:
            specs.append(self._random.choice(others))

    def _remove(self, specs: list[Spec]) -> None:
        if len(specs) > 1:
            specs.pop(self._random.randrange(len(specs)))
