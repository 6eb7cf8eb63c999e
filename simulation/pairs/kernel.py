"""Schedules of the kernel alone: `ExactlyOnce` over items of other code, and a plain ``ADD`` in its place.

Events are put, changed and deleted; records are delivered again and cut anywhere, from the start of the stream, too;
invocations die between two requests, or run on for 15 minutes; shards split; days pass, so that watermarks are pruned.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, Self, TypeAlias
from unittest.mock import patch

from counters_lambda.counting.batch import Report
from dynamodb_counters import exactly_once
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY, HOUR
from dynamodb_counters.exactly_once import Amounts, ExactlyOnce, Key, Record
from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.faulty_client import FaultPlan
from simulation.faults.process import in_disorder
from simulation.pairs import coverage
from simulation.pairs.backend import MakeBackend, MemoryBackend
from simulation.pairs.coverage import Outcome
from simulation.pairs.deliveries import Deliveries, drawn
from simulation.pairs.function import Function, Sandbox

_STEPS: Final = 80
_MOST_STEPS: Final = 100_000
_BACKLOG: Final = 22 * HOUR
"""Of what waits longer, Lambda gives up on some."""


REFUSED: Final = "records too old to be counted"

Consumer: TypeAlias = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
"""A function on the stream: takes event and context."""


def adds(record: Record) -> Iterator[tuple[Key, Amounts]]:
    """Yield what a record adds to two items: events and bytes of a page, and of all."""
    for name, sign in (("OldImage", -1), ("NewImage", 1)):
        image = record["dynamodb"].get(name, {})
        if "page" in image:
            amounts = {"events": sign, "bytes": sign * int(image["bytes"]["N"])}
            yield ("PAGE#" + image["page"]["S"], "COUNT"), amounts
            yield ("ALL", "COUNT"), amounts


def plain_add(table: Table, _: Callable[[Record], object]) -> Consumer:
    """Return the consumer that many have: it adds up a batch, and sends an ``ADD`` per item."""

    def handle(event: Mapping[str, Any], _: Any) -> Mapping[str, Any]:
        sums: dict[Key, Counter[str]] = {}
        for item, amounts in (pair for record in event.get("Records", ()) for pair in adds(record)):
            sums.setdefault(item, Counter()).update(amounts)
        for (pk, sk), total in sums.items():
            key = {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}
            typed = {name: {"N": str(amount)} for name, amount in total.items()}
            table.client.update_item(**exactly_once.update_request(table.name, key, {"kind": {"S": "count"}}, typed))
        return {"state": {}}

    return handle


def kernel(table: Table, too_old: Callable[[Record], object]) -> Consumer:
    """Return the consumer that counts each record once."""
    counted = ExactlyOnce(table.name, client=table.client, clock=table.clock, too_old=too_old)
    return lambda event, context: counted.handle(event, adds, context)


class KernelSchedule:
    """One schedule of a consumer."""

    def __init__(
        self,
        seed: int,
        make_backend: MakeBackend = MemoryBackend,
        consumer: Callable[[Table, Callable[[Record], object]], Consumer] = kernel,
    ) -> None:
        self._seed = seed
        self._random = rng = random.Random(seed)
        self._backend = backend = make_backend(rng)
        self._clock = backend.clock
        self._faults = FaultPlan(rng, rng.choice((0.0, 0.03, 0.1)), 200)
        self._too_old: list[Record] = []
        too_old = self._too_old.append

        class OwnSandbox(Sandbox):
            def _begin(self, table: Table, *_: Any) -> None:
                self.report = Report()
                self._consumer = consumer(table, too_old)

            def handle(self, delivery: Delivery, deadline: float) -> Mapping[str, Any]:
                self.deadline = deadline
                context = SimpleNamespace(get_remaining_time_in_millis=lambda: 1000 * (deadline - self._clock.now))
                return self._consumer(delivery.event, context)

        self._function = Function(backend, rng, self._faults, (), make_sandbox=OwnSandbox)
        # With no limit of age, a stream that is delivered from its start has records that are too old.
        settings = drawn(rng, rng.choice((23 * HOUR, math.inf)))
        settings = replace(settings, retention_seconds=rng.choice((24, 30)) * HOUR)
        self._deliveries = Deliveries(backend, rng, self._faults, self._function, settings)

    def run(self) -> Outcome:
        with (
            patch.object(exactly_once, "ThreadPoolExecutor", lambda _: _Threads(self._random)),
            patch.object(exactly_once, "PRUNED_AT", 1),
            patch.object(exactly_once, "PRUNED_EVERY", 0),
        ):
            for _ in range(_STEPS):
                self._random.choice((self._write, self._write, self._write, self._count, self._count, self._pass))()
            self._faults.budget = 0
            self._settle()
        reached, mapping = (
            self._function.reached + coverage.of_records(self._backend.history()),
            self._deliveries.mapping,
        )
        reached[REFUSED] += len(self._too_old)
        wrong = [*self._wrong(), *self._function.standstills]
        return Outcome(self._seed, wrong, mapping.deliveries, mapping.delivered, self._faults.injected, reached)

    def _write(self) -> None:
        rng, client, table = self._random, self._backend.client, self._backend.name
        key = {"pk": {"S": f"EVENT#{rng.randrange(40)}"}, "sk": {"S": "EVENT"}}
        if rng.random() < 0.2:
            client.delete_item(TableName=table, Key=key)
            return
        values = {"page": {"S": rng.choice("abc")}, "bytes": {"N": str(rng.randrange(10**6))}}
        client.put_item(TableName=table, Item={**key, **values})

    def _pass(self) -> None:
        """Let time pass, but only as much as the records that wait have left."""
        slack = self._deliveries.oldest_waiting() + _BACKLOG - self._clock()
        self._clock.advance(max(0.0, min(self._random.choice((60, HOUR, 5 * HOUR, 14 * HOUR, DAY)), slack)))

    def _count(self) -> None:
        """Deliver for a while, with all that goes wrong."""
        for _ in range(self._random.choice((10, 40, 160))):
            chance = self._random.random()
            if chance < 0.2:
                self._deliveries.start()
            elif chance < 0.25:
                self._random.choice(self._deliveries.disturbances())()
            elif chance < 0.27:
                self._clock.hurry(self._random)
            else:
                self._deliveries.step()

    def _settle(self) -> None:
        """Count all there is."""
        for _ in range(_MOST_STEPS):
            self._deliveries.step()
            if not self._function.running and not self._clock.hurry(self._random) and self._deliveries.drained():
                return
        raise AssertionError(f"seed {self._seed} does not end")

    def _wrong(self) -> Iterator[str]:
        expected: dict[Key, Counter[str]] = {}
        counts: dict[Key, Counter[str]] = {}
        for item in self._backend.items():
            for key, amounts in adds({"dynamodb": {"NewImage": item}}):
                expected.setdefault(key, Counter()).update(amounts)
            if item["sk"]["S"] == "COUNT":
                numbers = {name: int(item[name]["N"]) for name in ("events", "bytes") if name in item}
                counts[item["pk"]["S"], "COUNT"] = Counter(numbers)
        for key in sorted({*expected, *counts}, key=str):
            if counts.get(key, Counter()) != expected.get(key, Counter()):
                yield f"{key[0]!r}: {dict(counts.get(key, {}))}, expected {dict(expected.get(key, {}))}"


class _Threads:
    """Threads of which one works at a time, in an order that a seed decides."""

    def __init__(self, rng: random.Random) -> None:
        self._side_by_side = in_disorder(rng)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [result for _, result in self._side_by_side(work, [*items])]
