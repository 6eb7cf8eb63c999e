"""Calls of DynamoDB Streams: readers of a shard at a time, and descriptions of a stream per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from simulation.aws.rule import Rule
from simulation.memory.client_errors import failure

READERS: Final = 2
DESCRIPTIONS: Final = 10

SHARDS_HAVE_TWO_READERS: Final = Rule(
    "a shard has two readers at most",
    "No more than two processes at most should be reading from the same stream's shard at the same time. Having more "
    "than two readers per shard can result in throttling.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html",
    switch="simulation.aws.stream_calls.StreamCalls(readers)",
    guard="a stream may have a third reader",
)

DESCRIPTIONS_ARE_LIMITED: Final = Rule(
    "a stream is described ten times per second at most",
    "You can call DescribeStream at a maximum rate of 10 times per second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_DescribeStream.html",
    switch="simulation.aws.stream_calls.StreamCalls(descriptions)",
    harmless="clients try again what is throttled: LimitExceededException is one of the codes that they know",
)


class StreamCalls:
    """Calls of the last second; one too many is refused."""

    def __init__(
        self, clock: Callable[[], float], readers: float = float("inf"), descriptions: float = float("inf")
    ) -> None:
        self._clock, self._readers, self._descriptions = clock, readers, descriptions
        self._described = deque[float]()
        self._read: dict[str, dict[str, float]] = {}

    def describe(self) -> None:
        now = self._clock()
        while self._described and self._described[0] <= now - 1:
            self._described.popleft()
        if len(self._described) >= self._descriptions:
            raise failure("DescribeStream", "LimitExceededException")
        self._described.append(now)

    def read(self, shard: str, reader: str) -> None:
        now, known = self._clock(), self._read.setdefault(shard, {})
        others = [name for name, at in known.items() if name != reader and at > now - 1]
        if len(others) >= self._readers:
            raise failure("GetRecords", "LimitExceededException")
        known[reader] = now
