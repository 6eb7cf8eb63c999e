"""The whole bill of a month for each way in, line by line, as `counters cost` computes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from benchmarks import workloads
from benchmarks.function_cpu import POSTED
from benchmarks.packing import chunk_sizes
from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.dollars import added, doors, function_dollars, receiver
from dynamodb_counters._cost.month_bill import bills
from dynamodb_counters._cost.workload_settings import Door, Workload
from dynamodb_counters._price_file import PRICES

LINES: Final = (
    "DynamoDB writes",
    "DynamoDB reads",
    "DynamoDB storage",
    "Lambda",
    "API Gateway",
    "SQS",
    "CloudWatch logs",
    "CloudWatch metrics",
    "CloudWatch alarms",
    "CloudWatch dashboards",
    "X-Ray",
)
_RATES: Final = (1, 10, 1_000)
"""Events per second."""

_INTERVAL: Final = 5
"""Seconds for which events are gathered."""

_EVENT_BYTES: Final = 150
_PAGES: Final = 50


@dataclass(frozen=True)
class Way:
    """A way in: the design that counts, by its title there, and the door that events come through.

    A `direct` design is called by the function behind the API, without a queue.
    """

    title: str
    design: str
    door: Door = "sdk"
    per_request: int = 1
    direct: bool = False


_PLAIN: Final = "this: accept + watermark"
_PACKED: Final = "this: packed"
INCREMENT_BEHIND_API: Final = Way("increment in a function behind an API", "naive increment", "validated", direct=True)
PLAIN: Final = Way("accept_many", _PLAIN)
PACKED: Final = Way("accept_many, packed", _PACKED)
PACKED_SINGLE: Final = Way("EventIngest, packed, straight to the queue", _PACKED, "http")
PACKED_MANY: Final = Way(f"EventIngest, packed, {POSTED} events a request", _PACKED, "validated", POSTED)
WAYS: Final = (
    Way("increment", "naive increment"),
    Way("record_once", "transaction: marker + counter"),
    PLAIN,
    Way("EventIngest, straight to the queue", _PLAIN, "http"),
    Way("EventIngest, validated", _PLAIN, "validated"),
    Way(f"EventIngest, {POSTED} events a request", _PLAIN, "validated", POSTED),
    INCREMENT_BEHIND_API,
    PACKED,
    PACKED_SINGLE,
    PACKED_MANY,
)


def measure() -> dict[str, Any]:
    """Bills of views of few pages, counted per page, by rate."""
    return {str(rate): {way.title: bill_of(way, rate, _INTERVAL, rate * _INTERVAL) for way in WAYS} for rate in _RATES}


def bill_of(way: Way, rate: float, interval: float, per_flush: float) -> dict[str, float]:
    """Dollars of a month, with so many packed events per flush; both batches gather as long."""
    load = Workload(
        rate,
        (Counted(_PAGES, skew=1.0),),
        event_bytes=_EVENT_BYTES,
        gather=interval,
        packed=per_flush if way.design == _PACKED else None,
        sizes=_sizes(),
        door=way.door,
        per_request=way.per_request,
    )
    counted = replace(load, door="sdk") if way.direct else load
    [dollars] = [found.dollars for found in bills(counted, PRICES.of) if found.title == way.design]
    if way.direct:
        door = {"API Gateway": doors(load, PRICES.of)["API Gateway"]}
        dollars = added([dollars, door, function_dollars(receiver(load), PRICES.of, tracing=load.tracing)])
    return {line: dollars.get(line, 0.0) for line in LINES} | {"total": sum(dollars.values())}


@cache
def _sizes() -> ChunkSizes:
    return chunk_sizes([view.as_event() for view in workloads.hot(6_000)])
