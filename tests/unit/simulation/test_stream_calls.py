"""The API of a stream in memory refuses what DynamoDB Streams throttles, and clients try that again."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker

from simulation.aws.stream_calls import DESCRIPTIONS, READERS, StreamCalls
from simulation.clock import VirtualClock
from simulation.recorded_stream import RecordedStream


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def stream(clock: VirtualClock) -> RecordedStream:
    found, calls = RecordedStream(0, 1, clock), StreamCalls(clock, READERS, DESCRIPTIONS)
    found.admit_description, found.admit_read = calls.describe, calls.read
    return found


def test_the_eleventh_description_of_a_second_is_throttled(stream: RecordedStream, clock: VirtualClock) -> None:
    for _ in range(DESCRIPTIONS):
        stream.describe_stream()
    with pytest.raises(ClientError) as refused:
        stream.describe_stream()
    clock.advance(1)
    stream.describe_stream()
    assert refused.value.response["Error"]["Code"] in vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"]


def test_the_third_reader_of_a_shard_is_throttled(stream: RecordedStream, clock: VirtualClock) -> None:
    [shard] = stream.shards()
    iterators: list[Any] = [stream.get_shard_iterator(ShardId=shard.id)["ShardIterator"] for _ in range(3)]
    for _ in range(2):
        for number in range(READERS):
            iterators[number] = stream.get_records(ShardIterator=iterators[number])["NextShardIterator"]
    with pytest.raises(ClientError, match="LimitExceededException"):
        stream.get_records(ShardIterator=iterators[2])
    clock.advance(1)
    stream.get_records(ShardIterator=iterators[2])
