"""Which declarations a schedule deploys, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations import Aggregate, Sum
from dynamodb_counters._items.conditions import Attr
from simulation.oracle.specs import Parts, Spec, Values

_FEES: Final = "fees"


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


def folds_less(spec: Spec) -> Spec:
    """The spec with a sum more, of an attribute that some events lack; without it, if it has it."""
    declared = spec.declaration
    if not isinstance(declared, Aggregate):
        return spec
    if _FEES in declared.measures:
        measures = {name: measure for name, measure in declared.measures.items() if name != _FEES}
        return replace(spec, declaration=replace(declared, measures=measures), parts=lambda v: _without_fees(spec, v))
    summed = replace(declared, measures={**declared.measures, _FEES: Sum("fee")})
    return replace(spec, declaration=summed, parts=lambda values: _with_fees(spec, values))


def _with_fees(spec: Spec, values: Values) -> Parts:
    parts = spec.parts(values)
    return {**parts, _FEES: Decimal(values["fee"])} if parts else {}


def _without_fees(spec: Spec, values: Values) -> Parts:
    parts = spec.parts({"fee": 0, **values})
    return {name: number for name, number in parts.items() if name != _FEES}


def refiltered(spec: Spec) -> Spec:
    """The spec with a filter more."""
    declared, region = spec.declaration, Attr("region").ne("a")
    where = region if declared.where is None else region & declared.where
    return replace(
        spec,
        declaration=replace(declared, where=where),
        parts=lambda values: {} if values["region"] == "a" else spec.parts(values),
    )
