"""Counting on DynamoDB: events accepted once, aggregates and windows exact under at-least-once delivery.

Declarations (`Event`, `Aggregate`, `Window`, `Count`, `Sum`, `Attr`) say what is counted; `Counters` writes and reads.
The names below are loaded when first used, so that a declaration needs neither boto3 nor a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dynamodb_counters._counters import Counters as Counters
    from dynamodb_counters._declarations import ActiveMembers as ActiveMembers
    from dynamodb_counters._declarations import Aggregate as Aggregate
    from dynamodb_counters._declarations import Average as Average
    from dynamodb_counters._declarations import Count as Count
    from dynamodb_counters._declarations import Counter as Counter
    from dynamodb_counters._declarations import Declarable
    from dynamodb_counters._declarations import Distinct as Distinct
    from dynamodb_counters._declarations import Event as Event
    from dynamodb_counters._declarations import Extremes as Extremes
    from dynamodb_counters._declarations import Histogram as Histogram
    from dynamodb_counters._declarations import Items as Items
    from dynamodb_counters._declarations import Packed as Packed
    from dynamodb_counters._declarations import Percentiles as Percentiles
    from dynamodb_counters._declarations import Quota as Quota
    from dynamodb_counters._declarations import Ranking as Ranking
    from dynamodb_counters._declarations import Sum as Sum
    from dynamodb_counters._declarations import Threshold as Threshold
    from dynamodb_counters._declarations import TimeWeighted as TimeWeighted
    from dynamodb_counters._declarations import Window as Window
    from dynamodb_counters._declarations.event_attributes import Attribute as Attribute
    from dynamodb_counters._declarations.groups import Group as Group
    from dynamodb_counters._declarations.sources import TableKeys as TableKeys
    from dynamodb_counters._erasure import Erased as Erased
    from dynamodb_counters._items.conditions import Attr as Attr
    from dynamodb_counters._items.conditions import Condition as Condition
    from dynamodb_counters._quarantine import Quarantined as Quarantined
    from dynamodb_counters._reads.events import Explanation as Explanation
    from dynamodb_counters._reads.events import Line as Line
    from dynamodb_counters._reads.group_reads import Extreme as Extreme
    from dynamodb_counters._reads.span_reads import Distribution as Distribution
    from dynamodb_counters._reads.span_reads import Integral as Integral
    from dynamodb_counters._reads.span_reads import WindowCount as WindowCount
    from dynamodb_counters._reads.span_reads import WindowReader as WindowReader
    from dynamodb_counters._writes.leases import Leases as Leases
    from dynamodb_counters._writes.outcomes import Outcome as Outcome
    from dynamodb_counters._writes.outcomes import Outcomes as Outcomes
    from dynamodb_counters._writes.outcomes import OutcomeStatus as OutcomeStatus
    from dynamodb_counters.errors import CountersError as CountersError
    from dynamodb_counters.errors import InvalidArgumentError as InvalidArgumentError
    from dynamodb_counters.errors import RejectedEventError as RejectedEventError
    from dynamodb_counters.errors import UnavailableError as UnavailableError
    from dynamodb_counters.errors import UncountedError as UncountedError

    Declaration: TypeAlias = Declarable

_NAMES = {
    "_counters": "Counters",
    "_declarations": "ActiveMembers Aggregate Attribute Average Count Counter Declaration Distinct Event Extremes "
    "Histogram Items Packed Percentiles Quota Ranking Sum TableKeys Threshold TimeWeighted Window",
    "_declarations.groups": "Group",
    "_erasure": "Erased",
    "_items.conditions": "Attr Condition",
    "_reads.events": "Explanation Line",
    "_reads.group_reads": "Extreme",
    "_reads.span_reads": "Distribution Integral WindowCount WindowReader",
    "_quarantine": "Quarantined",
    "_writes.outcomes": "Outcome Outcomes OutcomeStatus",
    "errors": "CountersError InvalidArgumentError RejectedEventError UnavailableError UncountedError",
    "_writes.leases": "Leases",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # Type checkers would take any name for one that exists.

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Inside, what can be declared has a name of its own, as some of it is many declarations.
        return getattr(import_module(f"{__name__}.{home}"), "Declarable" if name == "Declaration" else name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
