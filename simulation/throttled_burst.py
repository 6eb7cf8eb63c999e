"""A burst of events at a table without enough write units: ``python -m simulation.throttled_burst --events 200000``."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from counters_lambda.handlers.ingest_queue import Consumer
from dynamodb_counters import Event
from dynamodb_counters._fold.plan import Plan
from simulation.clock import VirtualClock
from simulation.queue.sqs import MOST_BYTES, SQS, Poller, Queue
from simulation.queue.throttled_table import Limits, ThrottledTable
from simulation.queue.virtual_threads import VirtualThreads

VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
_PAGES: Final = 50
_MESSAGES_PER_SECOND: Final = 1000
_DAY: Final = 86_400.0


def run(
    *,
    events: int,
    per_message: int = 10,
    units_per_second: float = 1000,
    refused: float = 0.0,
    outage: float = 0.0,
    twice: float = 0.001,
    growing: int = 0,
    longest: float = _DAY,
    seed: int = 0,
) -> dict[str, float]:
    """Post a burst and consume it until nothing waits any more; return what came of it.

    A share of requests to queues is `refused`, a share of messages comes `twice`, and for the first `outage` seconds
    the table refuses all. Each message has so many `growing` letters, which no event is, and which JSON escapes.
    """
    threads, rng = VirtualThreads(VirtualClock()), random.Random(seed)
    clock = threads.clock
    table, dead_letters = ThrottledTable(threads, Limits(table_writes=units_per_second), seed, outage), Queue(clock)
    queue = Queue(clock, dead_letters=dead_letters, max_bytes=MOST_BYTES, twice=lambda: rng.random() < twice)
    # What feeds its own queue is a loop, which Lambda ends: there is no other queue to send to.
    sqs = SQS({"dead-letters": dead_letters}, threads.sleep, lambda: rng.random() < refused)
    consumer = Consumer(table.reached(rng.random), VIEW, "dead-letters", Plan(()))
    consumer.__dict__["sqs"] = sqs
    mapping = Poller(threads, queue, lambda *batch: [item.id for item in consumer.consume(*batch) if not item.is_done])
    start, messages = clock(), -(-events // per_message)
    for number, first in enumerate(range(0, events, per_message)):
        views = [_view(index) for index in range(first, min(first + per_message, events))]
        views += [{"url": "中" * growing}] if growing else []

        def send(body: str = json.dumps(views, ensure_ascii=False)) -> None:
            queue.send(body, {"taken": {"DataType": "Number", "StringValue": str(int(clock()))}})

        clock.call_at(start + number / _MESSAGES_PER_SECOND, send)
    clock.advance(1)
    mapping.run(longest)
    return {
        "events": events,
        "messages": messages,
        "accepted": sum(1 for _ in table.items()),
        "events in the dead-letter queue": sum(len(json.loads(message.body)) for message in dead_letters.messages()),
        "expired": queue.expired,
        "receives per message": round(queue.received / messages, 2),
        "write units per event": round(table.usage.writes / events, 3),
        "seconds until the last event was accepted": round(table.accepted_at - start),
        "invocations": mapping.invocations,
        "invocations killed": mapping.killed,
    }


def _view(number: int) -> dict[str, str]:
    return {"url": f"/{number % _PAGES}", "time": f"2026-11-20T10:00:00.{number:07}Z", "clientId": "c"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--per-message", type=int, default=10)
    parser.add_argument("--units-per-second", type=float, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--outage", type=float, default=0, help="seconds for which the table refuses everything")
    print(json.dumps(run(**vars(parser.parse_args(arguments))), indent=2))


if __name__ == "__main__":
    main()
