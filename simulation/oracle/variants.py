"""Variants of a spec for deployments: declarations that count otherwise, each with what it means."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations import Aggregate, Sum
from dynamodb_counters._items.conditions import Attr
from simulation.oracle.specs import Parts, Spec, Values

_FEES: Final = "fees"


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
