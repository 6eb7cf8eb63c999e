"""What is counted: events, aggregates and windows, declared once and shared by infrastructure and runtime.

A declaration cannot be cyclic: its source must exist first.
"""

from dynamodb_counters._declarations.aggregates import (
    MAX_ATTRIBUTES,
    MAX_WRITE_SHARDS,
    WRITE_SHARD_FIELD,
    Aggregate,
    Ranking,
)
from dynamodb_counters._declarations.composites import Distinct, Hierarchy
from dynamodb_counters._declarations.consistency import Declarable, Declaration, flatten, require_consistent
from dynamodb_counters._declarations.measures import Average, Count, Histogram, Measure, Sum, Value
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import BUCKET_FIELD, TIER_FIELD, Window

__all__ = [
    "BUCKET_FIELD",
    "MAX_ATTRIBUTES",
    "MAX_WRITE_SHARDS",
    "TIER_FIELD",
    "WRITE_SHARD_FIELD",
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
