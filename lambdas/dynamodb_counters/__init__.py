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
    from dynamodb_counters.declarations import Count as Count
    from dynamodb_counters.declarations import Event as Event
    from dynamodb_counters.declarations import Sum as Sum
    from dynamodb_counters.declarations import Window as Window
    from dynamodb_counters.errors import CountersError as CountersError
    from dynamodb_counters.errors import InvalidArgumentError as InvalidArgumentError
    from dynamodb_counters.store.accept import Outcome as Outcome
    from dynamodb_counters.store.quarantine import Quarantined as Quarantined
    from dynamodb_counters.store.reads import Group as Group
    from dynamodb_counters.windows import WindowCount as WindowCount

_HOMES = {
    "Aggregate": "declarations",
    "Attr": "conditions",
    "Condition": "conditions",
    "Count": "declarations",
    "Counters": "counters",
    "CountersError": "errors",
    "Event": "declarations",
    "Group": "store.reads",
    "InvalidArgumentError": "errors",
    "Outcome": "store.accept",
    "Quarantined": "store.quarantine",
    "Sum": "declarations",
    "Window": "declarations",
    "WindowCount": "windows",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
