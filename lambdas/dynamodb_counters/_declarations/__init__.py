"""Declarations: events, aggregates and windows, declared once and shared by infrastructure and runtime.

A declaration cannot be cyclic: its source must exist first.
"""

from dynamodb_counters._declarations.active_members import ActiveMembers as ActiveMembers
from dynamodb_counters._declarations.aggregates import WRITE_SHARD_FIELD as WRITE_SHARD_FIELD
from dynamodb_counters._declarations.aggregates import Aggregate as Aggregate
from dynamodb_counters._declarations.aggregates import Ranking as Ranking
from dynamodb_counters._declarations.composites import Composite as Composite
from dynamodb_counters._declarations.composites import Distinct as Distinct
from dynamodb_counters._declarations.composites import Hierarchy as Hierarchy
from dynamodb_counters._declarations.consistency import Declarable as Declarable
from dynamodb_counters._declarations.consistency import Declaration as Declaration
from dynamodb_counters._declarations.consistency import flatten as flatten
from dynamodb_counters._declarations.consistency import require_consistent as require_consistent
from dynamodb_counters._declarations.event_attributes import Attribute as Attribute
from dynamodb_counters._declarations.extremes import Extremes as Extremes
from dynamodb_counters._declarations.measures import Average as Average
from dynamodb_counters._declarations.measures import Count as Count
from dynamodb_counters._declarations.measures import Histogram as Histogram
from dynamodb_counters._declarations.measures import Measure as Measure
from dynamodb_counters._declarations.measures import Sum as Sum
from dynamodb_counters._declarations.measures import TimeWeighted as TimeWeighted
from dynamodb_counters._declarations.packed import Packed as Packed
from dynamodb_counters._declarations.percentiles import Percentiles as Percentiles
from dynamodb_counters._declarations.quotas import Quota as Quota
from dynamodb_counters._declarations.sources import Event as Event
from dynamodb_counters._declarations.sources import Items as Items
from dynamodb_counters._declarations.table_keys import TableKeys as TableKeys
from dynamodb_counters._declarations.windows import BUCKET_FIELD as BUCKET_FIELD
from dynamodb_counters._declarations.windows import TIER_FIELD as TIER_FIELD
from dynamodb_counters._declarations.windows import Window as Window
