"""Tables: what partitions, indexes and a whole table admit, PartiQL's limits, and expiry."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

PARTITION_LIMIT: Final = Rule(
    "a partition takes 1,000 write units and 3,000 read units per second",
    "By default, every partition in a DynamoDB table is designed to deliver a maximum capacity of 3,000 read units per "
    "second and 1,000 write units per second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
    switch="simulation.queue.throttled_table.Limits(writes)",
    guard="contention is not waited out",
)

TABLE_QUOTA: Final = Rule(
    "a table has a quota of 40,000 write units per second",
    "40,000 read request units and 40,000 write request units (per table, on demand).",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
    switch="simulation.queue.throttled_table.Limits(table_writes)",
    guard="contention is not waited out",
)

WARM_THROUGHPUT: Final = Rule(
    "a new table on demand takes 4,000 write units per second",
    "A new on-demand table starts with a warm throughput of 12,000 read units per second and 4,000 write units per "
    "second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html",
    switch="simulation.queue.throttled_table.Limits(table_writes)",
    guard="contention is not waited out",
)

INDEX_BACK_PRESSURE: Final = Rule(
    "an index that is throttled throttles the writes of its table",
    "If a GSI doesn't have sufficient capacity to handle these updates, DynamoDB throttles writes to the base table to "
    "maintain data consistency.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/gsi-throttling.html",
    switch="simulation.queue.throttled_table.Limits(index_writes)",
    guard="contention is not waited out",
)

BATCHES_ARE_SHORT: Final = Rule(
    "a PartiQL batch has 25 statements at most",
    "BatchExecuteStatement and BatchWriteItem can perform no more than 25 statements per batch.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html",
    switch="simulation.metered_table.Metered.has_limits",
    guard="more than 25 statements go into a call",
)

STATEMENTS_ARE_SHORT: Final = Rule(
    "a PartiQL statement has 8,192 characters at most",
    "Length Constraints: Minimum length of 1. Maximum length of 8192.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementRequest.html",
    switch="simulation.metered_table.Metered.has_limits",
    guard="a long statement goes into a batch",
)

EXPIRY_IS_LATE: Final = Rule(
    "expired items stay for days",
    "DynamoDB typically deletes expired items within two days of expiration. Items that have expired and not been "
    "deleted will still show up in reads, queries, and scans.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html",
    switch="simulation.counters_in_memory.Faults(late_expiry)",
    guard="records after a group's retention count",
)
