"""What has to be said beside the numbers: no number of a run stands here."""

from __future__ import annotations

from typing import Final

NOTES: Final = """
## What is measured

Each known design stands in one file of `benchmarks/designs`, told in our own words after its source. **Units by the
rule**: a run on tables in memory adds up what DynamoDB's documentation says each request costs by the size of its
item; refused conditions cost as much as writes, transactions double. **Units of the engine**: a subsample on
DynamoDB Local, with what it reports. Where the two differ, the engine does: it reports nothing for PartiQL (so the
accepted events of *this* are missing there) and counts items of equal cost in a transaction once
([engines](engines.md#dynamodb-local)).

The stream is drained in batches after all events were accepted, as a backlog is; *while events come* has the
changes of the aggregates take room in the same batches. **Redelivery**: a tenth of the queue's and of the stream's
batches come again: half because the acknowledgement got lost, half because the process died before a random
request; stream batches also in halves. The error is the sum of all deviations in percent of the events. Dollars are
on-demand writes and reads in us-east-1; storage, Lambda and queues are left out. The highest rate of a hot counter
is 1,000 units a second over what one event of the most viewed page takes on its counter; events beside their
counter share its partition key, which `write_shards` divides.

The windows are asked on the hour, when the known design reads most keys: once while jobs come, once after them, and
once more about the first moment. *Looking back* only packed buckets are exact, as the known design counts the current
hour whole.

CPU times are those of the process, all interleaved in one process, best of several. *decode* is `json.loads` of the
batch's payload. *handler* has every method of the client stubbed out; *with botocore* everything but the sending.
The records are those of `benchmarks/fold.py`, where nearly every record has a client, so a group, of its own; *few
groups* is the same batch with 50 pages and 50 clients. *commit* is the handler without the fold.

Cold starts are those of fresh processes on this machine, not of Lambda. The synthesis of either app leaves out cdk-
nag. The simulation's assumptions are at the top of `benchmarks/scale.py`; its units are compared with real runs
below, its lag is not.

## What was optimised

- The fold looks an item's declared source up by its type, and an aggregate that only counts adds a constant.
- All items of an aggregate are updated in the same words: an update's expression is put together once.
- The commit hands each thread a share of the items instead of each item as a task, and asks less about each.
- The client's user agent is fixed and arguments are not checked a second time.
- The runtime makes its client with botocore and loads boto3 only to accept events.
- Tried and left out: `account_id_endpoint_mode="disabled"` makes no difference that can be measured; a queue all
  threads take items from is no faster than shares, and makes the order of writes in tests depend on it.
"""

NOT_MET: Final = {
    "memory_peak_mb": "a batch of which nearly every record makes groups of its own holds a delta for each.",
    "hot_write_units_while_events_come": (
        "the changes of the aggregates come back in the stream and take part of each batch. Lambda could "
        "filter them, but filters and the tumbling window that names the shard exclude each other. Bigger "
        "batches make it less."
    ),
    "hot_aggregation_against_not_exact": (
        "by the one write with which a process first moves the fence of a shard's quarantine; counters cost the same."
    ),
    "handler_to_json_loads_many_groups": (
        "more than one item is touched for each record: the requests have to be put together, and each costs "
        "about as much as reading a record's JSON. Tried: expressions worded once, a share of the items a thread. It "
        "comes out on either side of the goal from run to run; with few groups it is well within."
    ),
    "handler_to_json_loads_few_groups": ("see the split of the CPU time: requests for the touched items."),
    "handler_with_botocore_to_json_loads_many_groups": (
        "botocore's serialisation, signing and parsing of a call cost many times what reading a record does; "
        "they are needed once a touched item. Writing an HTTP client of our own was not considered worth it."
    ),
    "log_write_units_batch_1000": ("the log's urls and clients are too many for a batch to meet them often."),
    "log_write_units_batch_10000": ("the log's urls and clients are too many for a batch to meet them often."),
    "big_batch_cpu_seconds": (
        "nearly every record of this batch has a client of its own, so five of the twenty aggregates write an "
        "item a record."
    ),
    "powertools_idempotent_to_handler": ("the handler's share of request building grows with the touched items."),
    "powertools_empty_to_fold": (
        "with an empty handler Powertools looks at no record: it wraps each, to be deserialized when it is read. "
        "Reading no more than each record's sequence number and type (*reading_sequence_and_type* below) takes more "
        "than a fifth of that, so whatever counts in Python does. Tried: sources looked up by type, counts as "
        "constants, fewer calls a record. Against a handler that reads its record, see the other two rows."
    ),
    "powertools_looking_to_fold_one_aggregate": (
        "close to it, on either side from run to run: a good part of the fold's time goes into the first look at a "
        "record, which has left the processor's cache (*reading_sequence_and_type* below). Tried: sources looked up by "
        "type, counts as constants, fewer calls a record."
    ),
}
