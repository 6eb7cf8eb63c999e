"""Counting on DynamoDB: events accepted once, aggregates and windows exact under at-least-once delivery.

Declarations (`Event`, `Aggregate`, `Window`, `Count`, `Sum`, `Attr`) say what is counted; `Counters` writes and reads.
The names below are loaded when first used, so that a declaration needs neither boto3 nor a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dynamodb_counters._counters import Counters
    from dynamodb_counters._declarations import Declarable
    from dynamodb_counters._declarations.aggregates import Aggregate, Counter, Ranking, Window
    from dynamodb_counters._declarations.composites import ActiveMembers, Distinct, Extremes, Percentiles, Threshold
    from dynamodb_counters._declarations.composites import Ranks as Ranks
    from dynamodb_counters._declarations.event_attributes import Attribute
    from dynamodb_counters._declarations.groups import Group
    from dynamodb_counters._declarations.measures import Average, Count, Histogram, Sum, TimeWeighted
    from dynamodb_counters._declarations.quotas import Quota
    from dynamodb_counters._declarations.sources import Event, Items, Packed, TableKeys
    from dynamodb_counters._erasure import Erased
    from dynamodb_counters._items.conditions import Attr, Condition
    from dynamodb_counters._quarantine import Quarantined
    from dynamodb_counters._reads.events import Explanation, Line
    from dynamodb_counters._reads.group_reads import Distribution as Distribution
    from dynamodb_counters._reads.group_reads import Extreme
    from dynamodb_counters._reads.rank_reads import RangeCount, Rank
    from dynamodb_counters._reads.span_reads import Integral, WindowCount, WindowReader
    from dynamodb_counters._writes.direct_counts import Leases as Leases
    from dynamodb_counters._writes.outcomes import Outcome, Outcomes, OutcomeStatus
    from dynamodb_counters.errors import (
        CountersError,
        InvalidArgumentError,
        RejectedEventError,
        UnavailableError,
        UncountedError,
    )

    Declaration: TypeAlias = Declarable

__all__ = ["ActiveMembers", "Aggregate", "Attr", "Attribute", "Average", "Condition", "Count", "Counter", "Counters"]
__all__ += ["CountersError", "Declaration", "Distinct", "Distribution", "Erased", "Event", "Explanation", "Extreme"]
__all__ += ["Extremes", "Group", "Histogram", "Integral", "InvalidArgumentError", "Items", "Leases", "Line", "Outcome"]
__all__ += ["OutcomeStatus", "Outcomes", "Packed", "Percentiles", "Quarantined", "Quota", "RangeCount", "Rank"]
__all__ += ["Ranking", "Ranks", "RejectedEventError", "Sum", "TableKeys", "Threshold", "TimeWeighted"]
__all__ += ["UnavailableError", "UncountedError", "Window", "WindowCount", "WindowReader"]

_NAMES = {
    "_counters": "Counters",
    "_declarations": "ActiveMembers Aggregate Attribute Average Count Counter Declaration Distinct Event Extremes "
    "Histogram Items Packed Percentiles Quota Ranking Ranks Sum TableKeys Threshold TimeWeighted Window",
    "_declarations.groups": "Group",
    "_erasure": "Erased",
    "_items.conditions": "Attr Condition",
    "_reads.events": "Explanation Line",
    "_reads.group_reads": "Distribution Extreme",
    "_reads.rank_reads": "RangeCount Rank",
    "_reads.span_reads": "Integral WindowCount WindowReader",
    "_quarantine": "Quarantined",
    "_writes.outcomes": "Outcome Outcomes OutcomeStatus",
    "errors": "CountersError InvalidArgumentError RejectedEventError UnavailableError UncountedError",
    "_writes.direct_counts": "Leases",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # Type checkers would take any name for one that exists.

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Inside, what can be declared has a name of its own, as some of it is many declarations.
        return getattr(import_module(f"{__name__}.{home}"), "Declarable" if name == "Declaration" else name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
