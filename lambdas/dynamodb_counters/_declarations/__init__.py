"""Declarations: events, aggregates and windows, declared once and shared by infrastructure and runtime."""

from dynamodb_counters._declarations.active_members import ActiveMembers
from dynamodb_counters._declarations.aggregates import WRITE_SHARD_FIELD, Aggregate, Ranking
from dynamodb_counters._declarations.composites import Composite, Distinct
from dynamodb_counters._declarations.consistency import Declarable, Declaration, flatten, require_consistent
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._declarations.extremes import Extremes
from dynamodb_counters._declarations.measures import Average, Count, Histogram, Measure, Sum, TimeWeighted
from dynamodb_counters._declarations.packed import Packed
from dynamodb_counters._declarations.percentiles import Percentiles
from dynamodb_counters._declarations.quotas import Quota
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.table_keys import TableKeys
from dynamodb_counters._declarations.thresholds import Threshold
from dynamodb_counters._declarations.windows import BUCKET_FIELD, TIER_FIELD, Window
