"""What is counted: events, aggregates and windows, declared once and shared by infrastructure and runtime.

Nested declarations form a graph without cycles by construction: a source must exist before what looks at it.
"""

from dynamodb_counters._declarations.aggregates import MAX_ATTRIBUTES, MAX_SPREAD, SPREAD_FIELD, Aggregate, Ranking
from dynamodb_counters._declarations.composites import Distinct, Hierarchy
from dynamodb_counters._declarations.consistency import Declarable, Declaration, flatten, require_consistent
from dynamodb_counters._declarations.measures import Average, Count, Histogram, Measure, Sum, Value
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import BUCKET_FIELD, TIER_FIELD, Window

__all__ = [
    "BUCKET_FIELD",
    "MAX_ATTRIBUTES",
    "MAX_SPREAD",
    "SPREAD_FIELD",
    "TIER_FIELD",
    "Aggregate",
    "Average",
    "Count",
    "Declarable",
    "Declaration",
    "Distinct",
    "Event",
    "Hierarchy",
    "Histogram",
    "Items",
    "Measure",
    "Ranking",
    "Sum",
    "Value",
    "Window",
    "flatten",
    "require_consistent",
]
