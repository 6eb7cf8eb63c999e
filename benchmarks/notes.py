"""The text beside the numbers; no number of a run stands here."""

from __future__ import annotations

from typing import Final

NOTES: Final = """
## How it is measured

Each known design is one file of `benchmarks/designs`, rewritten after its source. **Rule**: a run on DynamoDB in
memory (`simulation/dynamodb`) adds up what DynamoDB's documentation says each request costs for the size of its item; a
refused condition costs as much as a write, a transaction double. **Engine**: what DynamoDB Local reports for a
sample. Where the two differ, DynamoDB Local differs from DynamoDB: it reports nothing for PartiQL (so the accepted
events of *this* are missing there) and counts items of equal cost in a transaction once
([engines](engines.md#dynamodb-local)).

The stream is drained in batches after all events were accepted, like a backlog; in *while events come*, the
changes of the aggregates share the batches with new events. **Redelivery**: a tenth of the batches of the queue and of
the stream come again, half of them because the acknowledgement got lost, half because the process died before a random
request; batches of the stream are then bisected. The error is the sum of all deviations in percent of the events.
Dollars are on-demand writes and reads in us-east-1, without storage, Lambda and queues. The highest rate of a hot
counter is 1,000 units per second divided by the units that one event of the most viewed page costs on its counter;
events stored beside their counter share its partition key, unless `write_shards` divides it.

The windows are queried on the hour, when the known design reads most keys: once while jobs come, once after them, and
once more about the first moment (*looking back*). There only packed buckets are exact: the known design counts the
whole current hour.

CPU times are those of the process; everything is interleaved in one process, and the best of several rounds counts.
*decode* is `json.loads` of the batch's payload. *handler* has every method of the client stubbed out; *with botocore*
stubs out the network only. In the records (`benchmarks/log_records.py`) nearly every record has a client, and so a
group, of its own; *few groups* is the same batch with 50 pages and 50 clients. *commit* is the handler without the
fold.

Cold starts are those of fresh processes on this machine, not of Lambda. Both apps are synthesized without cdk-nag. The
assumptions of the simulation are at the top of `benchmarks/scale.py`; its units are compared with real runs above, its
lag is not.

## What was optimized

- The fold looks an item's declared source up by its type, and an aggregate that only counts adds a constant.
- All items of an aggregate share one update expression, built once.
- The commit hands each thread a share of the items, not each item as a task, and asks less about each.
- The client's user agent is fixed, and arguments are not validated a second time.
- The runtime creates its client with botocore and loads boto3 only to accept events.
- Tried and left out: `account_id_endpoint_mode="disabled"` makes no measurable difference; a queue from which all
  threads take items is no faster than shares, and makes the order of writes in tests depend on it.
"""

NOT_MET: Final = {
    "memory_peak_mb": "nearly every record of this batch makes groups of its own, each with a delta.",
    "hot_write_units_while_events_come": (
        "the changes of the aggregates come back in the stream and take part of each batch. Lambda could "
        "filter them, but it allows no filter beside the tumbling window that names the shard. Larger batches "
        "reduce it."
    ),
    "hot_aggregation_against_not_exact": (
        "by the one write with which a process first moves the fencing token of a shard's quarantine; counters cost "
        "the same."
    ),
    "handler_to_json_loads_many_groups": (
        "a record touches more than one item, and building each request costs about as much as parsing a record's "
        "JSON. Tried: expressions built once, a share of the items per thread. Runs land on either side of the goal; "
        "with few groups it is well within."
    ),
    "handler_to_json_loads_few_groups": "see the split of the CPU time: requests for the touched items.",
    "handler_with_botocore_to_json_loads_many_groups": (
        "botocore's serialization, signing and parsing of one call cost many times what parsing a record does, once "
        "per touched item. An HTTP client of our own was not considered worth it."
    ),
    "log_write_units_batch_1000": "the log has too many URLs and clients for a batch to meet them often.",
    "log_write_units_batch_10000": "the log has too many URLs and clients for a batch to meet them often.",
    "big_batch_cpu_seconds": (
        "nearly every record of this batch has a client of its own, so five of the twenty aggregates write an item "
        "per record."
    ),
    "powertools_idempotent_to_handler": "the share of building requests grows with the touched items.",
    "powertools_empty_to_fold": (
        "with an empty handler Powertools looks at no record: it wraps each, to deserialize it when it is read. "
        "Reading each record's sequence number and type alone (*reading_sequence_and_type* below) takes more than a "
        "fifth of that, so anything that counts in Python does. Tried: sources looked up by type, counts as "
        "constants, fewer calls per record. The other two rows compare with handlers that read their record."
    ),
    "powertools_looking_to_fold_one_aggregate": (
        "runs land on either side of the goal: much of the fold's time is the first look at a record, which has left "
        "the processor's cache (*reading_sequence_and_type* below). Tried: sources looked up by type, counts as "
        "constants, fewer calls per record."
    ),
}
