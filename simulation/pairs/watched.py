"""Thresholds on the declarations of pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dynamodb_counters._declarations import Aggregate, Count, Declaration, Sum, Threshold
from simulation.pairs.measured import is_measured

_LEVELS: Final = (1, 3, 8)


def armed(declaration: Declaration) -> Declaration:
    """The declaration with thresholds over its first measure, if it may have some."""
    measure = first_measure(declaration)
    if measure is None or not isinstance(declaration, Aggregate):
        return declaration
    found = (
        Threshold(f"{declaration.name}-up", None, at=_LEVELS, measure=measure),
        Threshold(f"{declaration.name}-all", None, at=_LEVELS, measure=measure, direction="both", burst="highest"),
    )
    return replace(declaration, _thresholds=found)


def first_measure(declaration: Declaration) -> str | None:
    """The measure that thresholds watch; None of what has none, or has several items per group."""
    if not isinstance(declaration, Aggregate) or declaration.write_shards > 1 or is_measured(declaration):
        return None
    [(name, measure), *_] = declaration.measures.items()
    return name if isinstance(measure, Count | Sum) else None
