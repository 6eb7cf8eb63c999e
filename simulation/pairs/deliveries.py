"""The table's stream on its way to the function: deliveries, and what may go wrong with them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.faulty_client import FaultPlan
from simulation.pairs import coverage
from simulation.pairs.apart import Backend
from simulation.pairs.function import Function, Invocation, wait_of

HOUR: Final = 3600.0
MAX_AGE: Final = 23 * HOUR
_MOST_RUNNING: Final = 5
_BACKOFF: Final = 60.0
_ALL: Final = 100_000


def drawn(rng: random.Random, max_age_seconds: float) -> Settings:
    """Return settings of a mapping, at random."""
    return Settings(
        batch_size=rng.choice((1, 3, 10, 100)),
        max_bytes=None,
        window_seconds=rng.choice((60, 900)),
        bisect=rng.random() < 0.5,
        max_age_seconds=max_age_seconds,
    )


class Deliveries:
    """The mapping, and the function's invocations.

    `acknowledged` has the last record of each shard that the mapping has moved past.
    """

    def __init__(
        self, backend: Backend, rng: random.Random, faults: FaultPlan, function: Function, settings: Settings
    ) -> None:
        self._backend = backend
        self._random = rng
        self._faults = faults
        self._function = function
        self._settings = settings
        self.mappings = [self._mapping_anew()]
        self.reached: Counter[str] = function.reached
        self.acknowledged: dict[str, str] = {}
        self.given_up = 0
        """Records that Lambda gave up on before they were acknowledged."""
        self.failed = ""
        """Why the last invocation failed that did."""
        self._tried_since: dict[str, float] = {}
        self._failing: dict[str, float] = {}

    @property
    def mapping(self) -> EventSourceMapping:
        return self.mappings[-1]

    def oldest_waiting(self) -> float:
        """Return when the oldest record was created that waits."""
        stream = self._backend.stream
        pages = [stream.read(shard.id, self.acknowledged.get(shard.id), 1) for shard in stream.shards()]
        created = [page.records[0]["dynamodb"]["ApproximateCreationDateTime"] for page in pages if page.records]
        return min(created, default=math.inf)

    def start(self) -> None:
        """Deliver the next records of a shard; one that fails for hours is tried now and then."""
        shards = self.mapping.shards()
        if shards and len(self._function.running) <= _MOST_RUNNING:
            shard = self._random.choice(shards)
            if not self._fails(shard) or self._random.random() > 0.9:
                self._deliver(shard, self._random.randint(1, self._settings.batch_size))

    def ended(self, invocation: Invocation) -> None:
        """Settle or fail what an invocation was about."""
        delivery = invocation.delivery
        self.failed = repr(invocation.error) if invocation.error is not None else self.failed
        if wait_of(invocation.error):
            self._backend.clock.advance(_BACKOFF)
        if invocation.error is not None or self._faults.strikes("response lost", 0.03):
            self.mapping.fail(delivery)
        elif self.mapping.settle(delivery, invocation.result):
            self.reached[coverage.HOURS] += self._backend.clock.now - self._tried_since.pop(delivery.shard) > HOUR
            if delivery.records:
                last = delivery.records[-1]["dynamodb"]["SequenceNumber"]
                self.acknowledged[delivery.shard] = max(last, self.acknowledged.get(delivery.shard, "0"), key=int)
                self._function.acknowledged(delivery.shard, last)

    def step(self) -> Invocation | None:
        """Let an invocation go on, and return it if it has ended."""
        if (ended := self._function.step()) is not None:
            self.ended(ended)
        return ended

    def drained(self) -> bool:
        """Return whether nothing is left to deliver; if there is, some of it is on its way."""
        self.recover()
        # Until no shard is new: a parent that is found drained makes way for its children, and they for theirs.
        polled: set[str] = set()
        while unpolled := [shard for shard in self.mapping.shards() if shard not in polled]:
            for shard in unpolled:
                polled.add(shard)
                if self._deliver(shard):
                    return False
        return True

    def recover(self) -> None:
        """No shard fails on purpose any longer."""
        self._failing.clear()

    # Trouble

    def disturbances(self) -> Sequence[Callable[[], object]]:
        seldom = [self.crowd, self.replay] if self._random.random() < 0.3 else []
        return [self.time_out, self.time_out, self.rewind, self.split, *seldom]

    def time_out(self) -> None:
        waited_for = [invocation for invocation in self._function.running if not invocation.timed_out]
        if waited_for and self._faults.strikes(coverage.TIMED_OUT):
            self._give_up(self._random.choice(waited_for))

    def rewind(self) -> None:
        shards = self.mapping.shards()
        if shards and self._faults.strikes(coverage.REWOUND):
            shard = self._random.choice(shards)
            page = self._backend.stream.read(shard, None, _ALL)
            passed = [record["dynamodb"]["SequenceNumber"] for record in page.records]
            reached = self.mapping.checkpoint(shard)
            before = passed[: passed.index(reached)] if reached in passed else []
            self.mapping.rewind(shard, self._random.choice([None, *before]))

    def split(self) -> None:
        if self._random.random() < 0.25:
            self.reached[coverage.SPLIT] += 1
            self._backend.split(self._random)

    def crowd(self) -> None:
        if not self._faults.crowded and self._faults.strikes(coverage.CROWDED):
            self._faults.crowded = self._random.randint(20, 200)

    def replay(self) -> None:
        if self._faults.strikes(coverage.REPLAYED):
            self.create_mapping()

    def create_mapping(self) -> None:
        """Delete the mapping and create it again; it begins at the start of the stream."""
        self.reached[coverage.REPLAYED] += 1
        for invocation in self._function.running:
            if not invocation.timed_out:
                self._give_up(invocation)
        self.mappings.append(self._mapping_anew())
        if self._random.random() < 0.5:
            self._function.cool_down()

    def fail_for_hours(self) -> None:
        shards = self.mapping.shards()
        if shards and self._faults.strikes("a shard fails for hours"):
            until = self._backend.clock.now + self._random.choice((1, 5, 19)) * HOUR
            self._failing[self._random.choice(shards)] = until

    def _give_up(self, invocation: Invocation) -> None:
        invocation.timed_out, invocation.asleep = True, self._random.random() < 0.8
        self.mapping.fail(invocation.delivery)

    def _deliver(self, shard: str, size: int | None = None) -> bool:
        passed = len(self.mapping.on_failure)
        delivery = self.mapping.poll(shard, size)
        for _, records in self.mapping.on_failure[passed:]:
            # A mapping that is created again gives up on what has been counted, too.
            numbers = (int(record["dynamodb"]["SequenceNumber"]) for record in records)
            self.given_up += sum(number > int(self.acknowledged.get(shard, "0")) for number in numbers)
        if delivery is None:
            return False
        self.reached[coverage.FINAL] += not delivery.records
        self._tried_since.setdefault(shard, self._backend.clock.now)
        self._function.invoke(delivery, doomed=self._fails(shard))
        return True

    def _fails(self, shard: str) -> bool:
        return self._failing.get(shard, 0.0) > self._backend.clock.now

    def _mapping_anew(self) -> EventSourceMapping:
        cut: Callable[[int], int] = lambda length: self._random.randint(1, length)  # noqa: E731
        return EventSourceMapping(self._backend.stream, self._backend.clock, self._settings, cut)
