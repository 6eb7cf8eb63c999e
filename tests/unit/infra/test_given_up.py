"""Batches that the aggregator's mapping gives up on arrive in its bucket: nothing vanishes with the stream."""

from __future__ import annotations

import math

import pytest
from aws_cdk import Stack

from cdk_dynamodb_counters import StreamAggregator
from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.metered_table import MeteredTable
from tests.unit.infra.support import build, properties, synthesized

_HOUR = 3600.0


@pytest.fixture
def settings(stack: Stack) -> Settings:
    """The mapping's settings as deployed, on a stream that forgets after a day."""
    mapping = properties(synthesized(build(StreamAggregator, stack)), "AWS::Lambda::EventSourceMapping")
    assert mapping["MaximumRetryAttempts"] == -1
    age = mapping["MaximumRecordAgeInSeconds"]
    return Settings(
        batch_size=mapping["BatchSize"],
        window_seconds=mapping["TumblingWindowInSeconds"],
        bisect=mapping["BisectBatchOnFunctionError"],
        max_age_seconds=math.inf if age == -1 else age,
        retention_seconds=24 * _HOUR,
    )


def test_batches_of_a_function_that_always_fails_arrive_in_the_bucket(settings: Settings) -> None:
    clock = VirtualClock()
    table = MeteredTable(clock)
    mapping = EventSourceMapping(table.stream, clock, settings)
    for half_hour in range(60):
        if half_hour < 10:
            table.put_item(TableName=table.name, Item={"pk": {"S": str(half_hour)}, "sk": {"S": "x"}})
        for shard in mapping.shards():
            if delivery := mapping.poll(shard):
                mapping.fail(delivery)
        clock.advance(_HOUR / 2)
        table.stream.trim(clock() - settings.retention_seconds)
    arrived = [record["eventID"] for _, batch in mapping.on_failure for record in batch]
    written = [record["eventID"] for _, record in table.stream.history()]
    assert len(written) == 10
    assert sorted(arrived) == sorted(written)
