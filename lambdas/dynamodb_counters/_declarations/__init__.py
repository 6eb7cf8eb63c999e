"""Declarations: events, aggregates and windows, declared once and shared by infrastructure and runtime."""

from dynamodb_counters._declarations.aggregates import Aggregate, Counter, Ranking, Window
from dynamodb_counters._declarations.checks import BUCKET_FIELD, TIER_FIELD, WRITE_SHARD_FIELD
from dynamodb_counters._declarations.codec import Declarable, Declaration, flatten, require_consistent
from dynamodb_counters._declarations.composites import (
    ActiveMembers,
    Composite,
    Distinct,
    Extremes,
    Percentiles,
    Ranks,
    Threshold,
)
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._declarations.measures import Average, Count, Histogram, Measure, Sum, TimeWeighted
from dynamodb_counters._declarations.quotas import Quota
from dynamodb_counters._declarations.sources import Direct, Event, Items, Packed, TableKeys
