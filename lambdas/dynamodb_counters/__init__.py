"""Counting on DynamoDB: events accepted once, aggregates and windows exact under at-least-once delivery.

Declarations (`Event`, `Aggregate`, `Window`, `Count`, `Sum`, `Attr`) say what is counted; `Counters` writes and reads.
The names below are loaded when first used, so that a declaration needs neither boto3 nor a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamodb_counters.conditions import Attr as Attr
    from dynamodb_counters.conditions import Condition as Condition
    from dynamodb_counters.counters import Counters as Counters
    from dynamodb_counters.declarations import Aggregate as Aggregate
    from dynamodb_counters.declarations import Average as Average
    from dynamodb_counters.declarations import Count as Count
    from dynamodb_counters.declarations import Distinct as Distinct
    from dynamodb_counters.declarations import Event as Event
    from dynamodb_counters.declarations import Hierarchy as Hierarchy
    from dynamodb_counters.declarations import Histogram as Histogram
    from dynamodb_counters.declarations import Items as Items
    from dynamodb_counters.declarations import Ranking as Ranking
    from dynamodb_counters.declarations import Sum as Sum
    from dynamodb_counters.declarations import Window as Window
    from dynamodb_counters.errors import CountersError as CountersError
    from dynamodb_counters.errors import InvalidArgumentError as InvalidArgumentError
    from dynamodb_counters.evaluation import evaluate as evaluate
    from dynamodb_counters.groups import Group as Group
    from dynamodb_counters.store.accept import Outcome as Outcome
    from dynamodb_counters.store.quarantine import Quarantined as Quarantined
    from dynamodb_counters.store.rankings import Ranked as Ranked
    from dynamodb_counters.windows import Comparison as Comparison
    from dynamodb_counters.windows import WindowCount as WindowCount

_HOMES = {
    "Aggregate": "declarations",
    "Attr": "conditions",
    "Average": "declarations",
    "Comparison": "windows",
    "Condition": "conditions",
    "Count": "declarations",
    "Counters": "counters",
    "CountersError": "errors",
    "Distinct": "declarations",
    "Event": "declarations",
    "Group": "groups",
    "Hierarchy": "declarations",
    "Histogram": "declarations",
    "InvalidArgumentError": "errors",
    "Items": "declarations",
    "Outcome": "store.accept",
    "Quarantined": "store.quarantine",
    "Ranked": "store.rankings",
    "Ranking": "declarations",
    "Sum": "declarations",
    "Window": "declarations",
    "WindowCount": "windows",
    "evaluate": "evaluation",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
