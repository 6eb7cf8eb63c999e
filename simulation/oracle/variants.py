"""Variants of a spec for deployments: declarations that count otherwise, each with what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations import Aggregate, Sum, Window
from dynamodb_counters._items.conditions import Attr, Condition
from simulation.oracle.specs import (
    BEYOND_ALL_TEXTS,
    UNCOUNTABLE,
    Parts,
    Spec,
    Values,
    tag_keys,
)

FEES: Final = "fees"
_MANY_GROUPS: Final = 100

# Only a number is less than a number, and a text than a text.
_IS_NUMBER: Final = Attr("amount").lt(Decimal("1E+100"))
_IS_SHORT: Final = Attr("desk").lt(BEYOND_ALL_TEXTS)


def folds_less(spec: Spec) -> Spec:
    """The spec with a sum more, of an attribute that some events lack; without it, if it has it."""
    declared = spec.declaration
    if not isinstance(declared, Aggregate):
        return spec
    if FEES in declared.measures:
        measures = {name: measure for name, measure in declared.measures.items() if name != FEES}
        return replace(spec, declaration=replace(declared, measures=measures), parts=lambda v: _without_fees(spec, v))
    summed = replace(declared, measures={**declared.measures, FEES: Sum("fee")})
    return replace(spec, declaration=summed, parts=lambda values: _with_fees(spec, values))


def _with_fees(spec: Spec, values: Values) -> Parts:
    parts = spec.parts(values)
    return {**parts, FEES: Decimal(values["fee"])} if parts else {}


def _without_fees(spec: Spec, values: Values) -> Parts:
    parts = spec.parts({"fee": 0, **values})
    return {name: number for name, number in parts.items() if name != FEES}


def refiltered(spec: Spec) -> Spec:
    """The spec with a filter more."""
    declared, region = spec.declaration, Attr("region").ne("a")
    where = region if declared.where is None else region & declared.where
    return replace(
        spec,
        declaration=_filtered(spec, where),
        parts=lambda values: {} if values["region"] == "a" else spec.parts(values),
    )


def repaired(spec: Spec) -> Spec:
    """The spec after the deployment that can fold every event: what has no number, or a huge text, is left out."""
    declared = spec.declaration
    if isinstance(declared, Aggregate) and FEES in declared.measures:
        spec = folds_less(spec)
        declared = spec.declaration
    conditions = []
    measures = [declared.measure] if isinstance(declared, Window) else list(declared.measures.values())
    if Sum("amount") in measures:
        conditions.append(_IS_NUMBER)
    if "desk" in declared.fields:
        conditions.append(_IS_SHORT)
    if spec.keys is not None and isinstance(declared, Aggregate):
        more = replace(declared, max_groups=_MANY_GROUPS)
        return replace(spec, declaration=more, keys=lambda values: tag_keys(values, _MANY_GROUPS))
    if not conditions:
        return spec
    where = conditions[0]
    for condition in (*conditions[1:], *((declared.where,) if declared.where is not None else ())):
        where &= condition
    return replace(spec, declaration=_filtered(spec, where), parts=_or_none(spec))


def _filtered(spec: Spec, where: Condition) -> Aggregate | Window:
    return replace(spec.declaration, where=where)


def _or_none(spec: Spec) -> Callable[[Values], Parts]:
    def parts_or_none(values: Values) -> Parts:
        try:
            spec.places(values)
            return spec.parts(values)
        except UNCOUNTABLE:
            return {}

    return parts_or_none
