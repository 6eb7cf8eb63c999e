"""All questions, in the order in which the page has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from demo.aws_smoke.questions import chains, completions, costs, latencies, metrics, poisoned_batch, refusals
from demo.aws_smoke.questions.question import Answer, Question

BEFORE_EVENTS: Final = (
    Question(
        "How long after a deployment does the stack's event let its declarations take over?",
        "Seconds: [when a deployment takes effect](changing-declarations.md#when-a-deployment-takes-effect)",
        completions.takeover,
    ),
    Question(
        "Do nested stacks send that event?",
        "As any stack; AWS does not say. An aggregator may be in one: "
        "[rules](constructs/stream-aggregator.md#fixed-settings)",
        completions.nested,
    ),
)
"""Questions about the deployment alone: events would disturb the answers."""

AFTER_EVENTS: Final = (
    Question(
        "Does the chain of a message grow by one per hop?",
        "Yes, and Lambda ends it after about 16: [outcomes of a message]"
        "(constructs/event-ingest.md#outcomes-of-a-message)",
        chains.by_hop,
    ),
    Question(
        "Which chain does a batch go on with?",
        "The longest of its messages: `simulation/queue/polling.py`",
        chains.in_batch,
    ),
    Question(
        "Does a redrive of dead letters keep the chain?",
        "Yes, which `RecursiveLoop: Allow` makes harmless: `simulation/queue/sqs.py`",
        chains.redriven,
    ),
    Question(
        "How does the object look that hands over a batch of a stream?",
        "Below `aws/lambda/`, with the records as text in `payload`, the shard in `DDBStreamBatchInfo`: "
        "[records that Lambda gave up on](exactly-once.md#records-that-lambda-gave-up-on)",
        poisoned_batch.handed_over,
    ),
    Question(
        "How is a batch bisected inside of a tumbling window?",
        "Each part names shard and window, and gets the state of the last one that succeeded: "
        "[checkpoints](exactly-once.md#checkpoints)",
        poisoned_batch.bisected,
    ),
    Question(
        "Which refused writes answer with their capacity?",
        "PartiQL's alone. An error has none, so that of an update is computed: `_commit/commit.py`",
        refusals.in_answers,
    ),
    Question(
        "How much does a refused write consume?",
        "As much as one that succeeds, a cancelled transaction double: [formulas](cost.md#formulas)",
        refusals.in_metrics,
    ),
    Question(
        "How long is a cold start?",
        "No figure; so far it was measured on a machine: [cold start](benchmarks.md#cold-start)",
        latencies.cold_starts,
    ),
    Question("How long does it take to accept an event?", "No figure", latencies.accepting),
    Question(
        "How long after that is it counted?",
        "No figure; the batching window, one second, is part of it: "
        "[arguments](constructs/stream-aggregator.md#arguments)",
        latencies.counting,
    ),
    Question(
        "Can an alias name `$LATEST`, and has it metrics of its own?",
        "Yes, the heartbeat of the watch: [monitoring](monitoring.md)",
        metrics.alias,
    ),
    Question(
        "Has a mapping of a stream the metric `PolledEventCount`?",
        "Yes, of its id alone: [AWS metrics](monitoring.md#aws-metrics)",
        metrics.polled,
    ),
    Question(
        "Which metric has a batch that could not be handed over?",
        "`DestinationDeliveryFailures` of the function: [DroppedAlarm](runbook.md#droppedalarm)",
        poisoned_batch.undelivered,
    ),
)

A_DAY_LATER: Final[tuple[tuple[str, str, Callable[[costs.Bill], Answer]], ...]] = (
    (
        "How much does the run cost by Cost Explorer, 1,000 events and all?",
        "A few cents: [what a month costs](cost.md)",
        costs.whole,
    ),
    (
        "Are the metrics of a mapping billed as custom ones?",
        "Yes: [the fixed part](cost.md#the-fixed-part). More hours than the runtime's metrics have, then",
        costs.metrics,
    ),
)
"""Questions about the bill of a day, with their assumptions."""
