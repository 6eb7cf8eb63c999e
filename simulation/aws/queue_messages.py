"""Messages of a queue: how many may be in flight, and how often one is received before it is a dead letter."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

MOST_IN_FLIGHT: Final = 120_000
MOST_RECEIVES: Final = 718
HIDDEN_SECONDS: Final = 361.0
KEPT_SECONDS: Final = 4 * 86_400.0
MOST_BYTES: Final = 262_144
"""The construct's redrive policy, visibility timeout, retention and longest message, by default."""

FLIGHT_IS_LIMITED: Final = Rule(
    "a queue has 120,000 messages in flight at most",
    "For most standard queues (depending on queue traffic and message backlog), there can be a maximum of "
    "approximately 120,000 inflight messages.",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html",
    switch="simulation.queue.sqs.Queue(most_in_flight)",
    harmless="messages that are not received wait in the queue, and use up no receive",
)

RECEIVES_ARE_LIMITED: Final = Rule(
    "a message that was received too often becomes a dead letter",
    "When the ReceiveCount for a message exceeds the maxReceiveCount for a queue, Amazon SQS moves the message to the "
    "dead-letter-queue.",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    switch="simulation.queue.sqs.Queue(max_receives)",
    guard="a message that the table refuses for long becomes a dead letter",
)
