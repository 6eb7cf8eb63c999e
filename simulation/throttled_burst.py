"""A burst of events at a table without enough write units: ``python -m simulation.throttled_burst --events 200000``."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from dynamodb_counters import Event
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.handlers.ingest_queue import Consumer
from simulation.aws.queue_messages import MOST_BYTES
from simulation.clock import VirtualClock
from simulation.queue.polling import Consume, Mapping
from simulation.queue.sqs import SQS, Queue, seldom
from simulation.queue.throttled_table import ThrottledTable
from simulation.queue.throttles import Limits
from simulation.queue.virtual_threads import VirtualPool, VirtualThreads

VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
DEAD_LETTERS: Final = "dead-letters"
_PAGES: Final = 50
_MOST_HOURS: Final = 24


@dataclass
class World:
    """A queue with dead letters, a throttled table, and a consumer per execution environment."""

    threads: VirtualThreads
    table: ThrottledTable
    queue: Queue
    dead_letters: Queue
    sqs: SQS
    rng: random.Random

    def runtime_table(self) -> Table:
        """The table as a process reaches it, in virtual time."""
        table = Table(
            self.table.name,
            cast("Any", self.table),
            clock=self.threads.clock,
            sleep=self.threads.sleep,
            jitter=self.rng.random,
        )
        table.__dict__["pool"] = VirtualPool(self.threads, CONCURRENCY)
        return table


def build(
    units_per_second: float,
    seed: int,
    *,
    twice: float = 0.001,
    refused: float = 0,
    outage: float = 0,
) -> World:
    """Build a world in which a share of messages comes twice, and a share of requests to queues is refused."""
    threads, rng = VirtualThreads(VirtualClock()), random.Random(seed)
    dead_letters = Queue(threads.clock)
    queue = Queue(threads.clock, dead_letters=dead_letters, max_bytes=MOST_BYTES, twice=seldom(rng, twice))
    # What feeds its own queue is a loop, which Lambda ends: there is no other queue to send to.
    sqs = SQS({DEAD_LETTERS: dead_letters}, threads.sleep, seldom(rng, refused))
    return World(
        threads,
        ThrottledTable(threads, Limits(table_writes=units_per_second), seed, outage),
        queue,
        dead_letters,
        sqs,
        rng,
    )


def _consumer(world: World) -> Consume:
    """The runtime's consumer."""
    table = world.runtime_table()
    consumer = Consumer(table, VIEW, DEAD_LETTERS)
    consumer.__dict__["sqs"] = world.sqs
    return lambda records, left: [one.id for one in consumer.consume(records, left) if not one.is_done]


def post(world: World, events: int, per_message: int, messages_per_second: float, growing: int) -> None:
    """Post events evenly, by requests of some size, with so many letters that no event is, and that JSON escapes."""
    start = world.threads.clock()
    for number, first in enumerate(range(0, events, per_message)):
        views = [_view(one) for one in range(first, min(first + per_message, events))]
        views += [{"url": "中" * growing}] if growing else []

        def send(body: str = json.dumps(views, ensure_ascii=False)) -> None:
            taken = {"DataType": "Number", "StringValue": str(int(world.threads.clock()))}
            world.queue.send(body, {"taken": taken})

        world.threads.clock.call_at(start + number / messages_per_second, send)


def _view(number: int) -> dict[str, str]:
    return {"url": f"/{number % _PAGES}", "time": f"2026-11-20T10:00:00.{number:07}Z", "clientId": "c"}


def run(
    *,
    events: int,
    per_message: int = 10,
    messages_per_second: float = 1000,
    units_per_second: float = 1000,
    max_concurrency: int = 1000,
    refused: float = 0.0,
    outage: float = 0.0,
    twice: float = 0.001,
    growing: int = 0,
    longest: float = _MOST_HOURS * 3600,
    seed: int = 0,
) -> dict[str, float]:
    """Post a burst and consume it until nothing waits any more; return what came of it."""
    world = build(units_per_second, seed, refused=refused, outage=outage, twice=twice)
    mapping = Mapping(
        world.threads,
        world.queue,
        lambda: _consumer(world),
        max_concurrency=max_concurrency,
    )
    start = world.threads.clock()
    post(world, events, per_message, messages_per_second, growing)
    messages = -(-events // per_message)
    world.threads.clock.advance(1)
    mapping.run(lambda: not world.queue.messages(), longest=longest)
    dead = world.dead_letters.messages()
    return {
        "events": events,
        "messages": messages,
        "accepted": sum(1 for _ in world.table.items()),
        "share of messages in the dead-letter queue": round(len(dead) / messages, 4),
        "events in the dead-letter queue": sum(len(json.loads(message.body)) for message in dead),
        "expired": world.queue.expired,
        "receives per message": round(world.queue.received / messages, 2),
        "write units per event": round(world.table.usage.writes / events, 3),
        "seconds until the last event was accepted": round(world.table.accepted_at - start),
        "invocations": mapping.invocations,
        "invocations killed": mapping.killed,
        "most invocations at a time": mapping.busiest,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--per-message", type=int, default=10)
    parser.add_argument("--units", type=float, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--outage", type=float, default=0, help="seconds for which the table refuses everything")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    found = run(
        events=given.events,
        per_message=given.per_message,
        units_per_second=given.units,
        outage=given.outage,
        seed=given.seed,
    )
    print(json.dumps({**found, "took": round(time.perf_counter() - began)}, indent=2))


if __name__ == "__main__":
    main()
