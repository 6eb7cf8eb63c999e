"""The ways in: what an event takes on its way into the table, by who calls what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

STREAM_BATCH: Final = 1_000
"""Events in a batch of the stream."""

QUEUE_BATCH: Final = 100
"""Messages that the queue's consumer gets at once, by default."""

PACKED_BATCH: Final = 1_000
"""The same for packed events."""

POSTED: Final = 100
"""Events of a request that posts many."""


@dataclass(frozen=True)
class Way:
    """A way in.

    `accepts` names how events are written, `counted` says whether the stream counts them; `http` are requests and
    `messages` are messages per event, `receiver` and `consumer` name the measured CPU time of the functions before and
    behind the queue, `aggregator` that of the one on the stream. An invocation behind the queue gets `batch` messages,
    one on the stream the changes of `stream_batch` events.
    """

    title: str
    accepts: str
    counted: bool = True
    http: float = 0.0
    messages: float = 0.0
    receiver: str | None = None
    consumer: str | None = None
    aggregator: str = "aggregator"
    batch: float = QUEUE_BATCH
    stream_batch: float = STREAM_BATCH


INCREMENT_BEHIND_API: Final = Way(
    "increment in a function behind an API", "increment", counted=False, http=1, receiver="receiver_single"
)
PACKED: Final = Way("accept_many, packed", "packed", aggregator="packed_aggregator")
PACKED_SINGLE: Final = replace(
    PACKED,
    title="EventIngest, packed, straight to the queue",
    http=1,
    messages=1,
    consumer="packed_consumer_single",
    batch=PACKED_BATCH,
)
PACKED_MANY: Final = replace(
    PACKED,
    title=f"EventIngest, packed, {POSTED} events a request",
    http=1 / POSTED,
    messages=1 / POSTED,
    receiver="receiver_many",
    consumer="packed_consumer_many",
)
WAYS: Final = (
    Way("increment", "increment", counted=False),
    Way("record_once", "record_once", counted=False),
    Way("accept, one by one", "accept"),
    Way("accept_many", "accept_many"),
    Way("EventIngest, straight to the queue", "accept_many", http=1, messages=1, consumer="consumer_single"),
    Way(
        "EventIngest, validated",
        "accept_many",
        http=1,
        messages=1,
        receiver="receiver_single",
        consumer="consumer_single",
    ),
    Way(
        f"EventIngest, {POSTED} events a request",
        "accept_many",
        http=1 / POSTED,
        messages=1 / POSTED,
        receiver="receiver_many",
        consumer="consumer_many",
    ),
    INCREMENT_BEHIND_API,
    PACKED,
    PACKED_SINGLE,
    PACKED_MANY,
)
