"""Exact counters on DynamoDB as CDK constructs.

`DedupCounterTable` stores events and counts, `StreamAggregator` keeps the counts exact, and `WindowedCounter` counts by
time. `ThresholdEvents` puts an event on EventBridge when a count crosses a line. `EventIngest` takes events over HTTP;
`CounterApi` serves counts over HTTP, with a `LivePage` if you like.
Declare what to count with `dynamodb_counters`. A wrong argument raises its `InvalidArgumentError`; one whose type is
CDK's, jsii's `TypeError`.
"""

from __future__ import annotations

from cdk_dynamodb_counters._staging import runtime_code
from cdk_dynamodb_counters.counter_api import CounterApi, LivePage
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from cdk_dynamodb_counters.event_ingest import EventIngest
from cdk_dynamodb_counters.stream_aggregator import StreamAggregator, WindowedCounter
from cdk_dynamodb_counters.threshold_events import ThresholdEvents

__all__ = [
    "CounterApi",
    "DedupCounterTable",
    "EventIngest",
    "LivePage",
    "StreamAggregator",
    "ThresholdEvents",
    "WindowedCounter",
    "runtime_code",
]
