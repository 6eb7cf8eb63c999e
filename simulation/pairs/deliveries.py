"""The table's stream on its way to the function: deliveries, and what may go wrong with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Final

from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.faulty_client import FaultPlan
from simulation.pairs import features
from simulation.schedules.backend import Backend
from simulation.schedules.bucket import Bucket
from simulation.schedules.function import Function, waits_for_another
from simulation.schedules.sandbox import Invocation

_HOUR: Final = 3600.0
MAX_AGE: Final = 23 * _HOUR


class Deliveries:
    """The mapping, the function's invocations, and the on-failure bucket."""

    def __init__(
        self, backend: Backend, rng: random.Random, faults: FaultPlan, function: Function, note: Callable[[str], None]
    ) -> None:
        self._backend = backend
        self._random = rng
        self._faults = faults
        self._function = function
        self._note = note
        self._settings = Settings(
            batch_size=rng.choice((1, 3, 10, 100)),
            max_bytes=None,
            window_seconds=rng.choice((60, 900)),
            bisect=rng.random() < 0.5,
            max_age_seconds=MAX_AGE,
        )
        self.mappings = [self._mapping_anew()]
        self._bucket = Bucket(self.mappings)
        self.failing: set[str] = set()
        self._counted: set[str] = set()
        self._losses: list[tuple[float, int]] = []

    @property
    def mapping(self) -> EventSourceMapping:
        return self.mappings[-1]

    @property
    def has_given_up(self) -> bool:
        return any(mapping.on_failure for mapping in self.mappings)

    def start(self) -> None:
        shards = [shard for shard in self.mapping.shards() if shard not in self.failing]
        if shards and len(self._function.running) <= 5:
            self._deliver(self._random.choice(shards), self._random.randint(1, self._settings.batch_size))

    def ended(self, invocation: Invocation) -> None:
        delivery = invocation.delivery
        if waits_for_another(invocation.error):
            self._backend.clock.advance(60)
        if delivery.given_up:
            if invocation.error is None and not self._faults.strikes("object not deleted", 0.03):
                self._note(features.BUCKET)
                self._counted.update(record["eventID"] for record in delivery.records)
                self._bucket.delete(delivery)
                self._note_loss()
            self._bucket.leave(delivery)
        elif invocation.error is not None or self._faults.strikes("response lost", 0.03):
            self.mapping.fail(delivery)
        elif self.mapping.settle(delivery, invocation.result) and delivery.records:
            self._counted.update(record["eventID"] for record in delivery.records)
            self._function.acknowledged(delivery.shard, delivery.records[-1]["dynamodb"]["SequenceNumber"])

    def drained(self) -> bool:
        """Whether nothing is left to deliver; if there is, some of it is on its way."""
        polled: set[str] = set()
        while unpolled := [shard for shard in self.mapping.shards() if shard not in polled]:
            for shard in unpolled:
                polled.add(shard)
                if self._deliver(shard):
                    return False
        return not self.redrive_bucket()

    def lost(self) -> int:
        """How many records went to the bucket and were not counted from there."""
        given_up = (record for mapping in self.mappings for _, batch in mapping.on_failure for record in batch)
        return sum(record["eventID"] not in self._counted for record in given_up)

    def lost_at(self, when: float) -> int:
        """How many records were in the bucket then."""
        return next((lost for at, lost in reversed(self._losses) if at <= when), 0)

    # Trouble

    def acts(self) -> list[Callable[[], object]]:
        return [self._time_out, self._time_out, self._rewind, self._split, self._crowd, self._replay]

    def redrive_bucket(self) -> bool:
        delivery = self._bucket.take(self._random)
        if delivery is not None:
            self._function.invoke(delivery, doomed=self._faults.strikes("redrive dies", 0.1))
        return delivery is not None

    def give_up(self) -> None:
        """A shard fails for so long that Lambda gives up on its records."""
        if shards := self.mapping.shards():
            shard = self._random.choice(shards)
            for invocation in self._function.running:
                self._give_up(invocation)
            self._backend.clock.advance(MAX_AGE + self._random.choice((60, _HOUR)))
            self._deliver(shard)

    def _deliver(self, shard: str, size: int | None = None) -> bool:
        before = len(self.mapping.on_failure)
        delivery = self.mapping.poll(shard, size)
        if len(self.mapping.on_failure) > before:
            self._note(features.GIVEN_UP)
            self._note_loss()
        if delivery is not None:
            self._function.invoke(delivery, doomed=False)
        return delivery is not None

    def _note_loss(self) -> None:
        self._losses.append((self._backend.clock.now, self.lost()))

    def _mapping_anew(self) -> EventSourceMapping:
        cut: Callable[[int], int] = lambda length: self._random.randint(1, length)  # noqa: E731
        return EventSourceMapping(self._backend.stream, self._backend.clock, self._settings, cut)

    def _time_out(self) -> None:
        waited_for = [invocation for invocation in self._function.running if not invocation.timed_out]
        if waited_for and self._faults.strikes("timeout, invocation runs on"):
            self._note(features.ZOMBIES)
            self._give_up(self._random.choice(waited_for))

    def _give_up(self, invocation: Invocation) -> None:
        if not invocation.timed_out:
            invocation.timed_out, invocation.asleep = True, self._random.random() < 0.8
            self._bucket.leave(invocation.delivery)
            if not invocation.delivery.given_up:
                self.mapping.fail(invocation.delivery)

    def _rewind(self) -> None:
        shards = self.mapping.shards()
        if shards and self._faults.strikes("redelivery from an earlier position"):
            shard = self._random.choice(shards)
            page = self._backend.stream.read(shard, None, 100_000)
            passed = [record["dynamodb"]["SequenceNumber"] for record in page.records]
            reached = self.mapping.checkpoint(shard)
            if reached in passed:
                self._note(features.REDELIVERED)
                self.mapping.rewind(shard, self._random.choice([None, *passed[: passed.index(reached)]]))

    def _replay(self) -> None:
        """Delete the mapping and create it again; it begins at the start of the stream."""
        if not self.has_given_up and self._faults.strikes("mapping re-created", 0.3):
            self._note(features.REDELIVERED)
            for invocation in self._function.running:
                self._give_up(invocation)
            self.mappings.append(self._mapping_anew())

    def _split(self) -> None:
        if self._random.random() < 0.3:
            self._note(features.SPLIT)
            self._backend.split(self._random)

    def _crowd(self) -> None:
        if not self._faults.crowded and self._faults.strikes("nine in ten calls refused", 0.3):
            self._faults.crowded = self._random.randint(20, 100)


class GivingUp:
    """Has Lambda give up on records, until it has."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def acts(self) -> Iterable[tuple[int, Callable[[], None]]]:
        if not self._deliveries.has_given_up:
            yield 1, self._deliveries.give_up
