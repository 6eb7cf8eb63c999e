"""Exact counters on DynamoDB as CDK constructs.

`DedupCounterTable` holds events and counts, `StreamAggregator` keeps the counts, `WindowedCounter` counts by time.
`EventIngest` takes events over HTTP, `CounterApi` answers questions about counts, on a `LivePage` too.
What is counted is declared with `dynamodb_counters._declarations`.
"""

from __future__ import annotations

from cdk_dynamodb_counters.counter_api import CounterApi
from cdk_dynamodb_counters.counters_layer import CountersLayer
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from cdk_dynamodb_counters.event_ingest import EventIngest
from cdk_dynamodb_counters.live_page import LivePage
from cdk_dynamodb_counters.runtime_code import runtime_code
from cdk_dynamodb_counters.stream_aggregator import StreamAggregator
from cdk_dynamodb_counters.windowed_counter import WindowedCounter

__all__ = [
    "CounterApi",
    "CountersLayer",
    "DedupCounterTable",
    "EventIngest",
    "LivePage",
    "StreamAggregator",
    "WindowedCounter",
    "runtime_code",
]
