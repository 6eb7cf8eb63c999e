"""The assumptions that exactness rests on: each margin, freshness, limit and retry policy, once.

A table of docs/engines.md is generated from it; the modules that import a name rely on it. Durations are in seconds.
"""

from __future__ import annotations

from typing import Final

from dynamodb_counters._tiers import DAY, HOUR, MINUTE

# AWS
LONGEST_INVOCATION: Final = 15 * MINUTE
"""Lambda ends an invocation by then. `Timeout` of the specification.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
GIVEN_UP_AFTER: Final = 23 * HOUR
"""Lambda gives up on records of this age: `MaximumRecordAgeInSeconds` of the mapping, which the construct sets."""
STREAM_BEGINS_WITHIN: Final = 5 * MINUTE
"""A stream that was created with its table begins within so long of it: seconds, in fact."""

# Clocks and landings
CLOCKS: Final = MINUTE
"""Any two clocks differ by less, the time that an acknowledged write takes included."""
LEASE_CLOCKS: Final = 1.0
"""A clock by which calls of a quota are made is off by less: a call so near a period's end counts in both periods."""
LANDS_WITHIN: Final = 5 * MINUTE
"""AWS refuses a request that reaches it so long after it was signed, by its sender's clock.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_aws-signing.html"""
SKEW: Final = 2 * (LANDS_WITHIN + CLOCKS)
"""Two requests, one after the other, have landed so long after they were sent, whatever clocks say."""
WIDE_MARGIN: Final = HOUR
"""An invocation, a landing with all retries and the difference of two clocks are less together."""
KEPT_LONGER: Final = DAY
"""An item with a `ttl` outlives by so long the last request that needs it: longer than any clock is off."""

# Freshness
FRESH: Final = MINUTE
"""A process relies so long on what it has read of a checkpoint, or of the registry. `Fresh` of the specification."""
SETTLED_AFTER: Final = LONGEST_INVOCATION + FRESH + SKEW
"""Every invocation that may still run has read a checkpoint that was written so long ago, or a later one.
`Settling` of the specification."""
READ_TOGETHER: Final = 5 * MINUTE
"""Checkpoints that were read within so long before an item have not settled meanwhile: less than `SETTLED_AFTER`."""
RUN_OPEN_AFTER: Final = FRESH + 2 * CLOCKS
"""Every process knows of a run that was opened so long ago."""
ONE_CLOCK: Final = 1.0
"""In the emulator of `counters dev`, in place of `CLOCKS`: all processes have one clock, which counts whole seconds."""
KNOWN_AT_ONCE: Final = 2 * ONE_CLOCK
"""There, in place of `RUN_OPEN_AFTER`: every process that counts reads the registry before each batch."""

# How long what is known of a shard is kept
GUARANTEE: Final = GIVEN_UP_AFTER + SKEW
"""Records are folded up to this age: Lambda has given up on older ones, and a repair may have counted them."""
GIVEN_UP_SETTLED: Final = SKEW + LONGEST_INVOCATION + SKEW
"""So long after Lambda has given up on a record, nothing counts it any more: it may be begun with until `GUARANTEE`."""
CHECKPOINT_KEPT: Final = 400 * DAY
"""A checkpoint outlives its last write by so long: more than any pause of a table's traffic."""
GROUP_KEPT: Final = 3 * DAY
"""The item of a closed group stays so long: more than `GUARANTEE` and two `SKEW`."""
LINEAGE_KEPT: Final = 20 * HOUR
"""A process relies so long on what a stream described of its shards, which it does for a day.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""

# Limits
MOST_NAMES: Final = 90
"""Names, thresholds included, that are registered in one transaction, which holds 100 items.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""

# Requests
LONGEST_REQUEST: Final = 12.0
"""A request ends within so long, with all tries of its client; none starts with less time left."""
LONGEST_TRY: Final = 3.0
"""A client waits so long for one answer."""
TRIES: Final = 10
"""Times that a request is sent which others outran, or which a throttled table refused."""
FIRST_PAUSE: Final = 0.025
"""The longest pause before the second try is twice this, and doubles before each further one, with full jitter."""
LONGEST_PAUSE: Final = 2.0
"""The longest pause between two tries."""
PASSING: Final = frozenset(
    (
        *("InternalServerError", "ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException"),
        *("ReplicatedWriteConflictException", "RequestLimitExceeded", "RequestTimeout", "RequestTimeoutException"),
        *("ServiceUnavailable", "ServiceUnavailableException", "Throttling", "ThrottlingError", "ThrottlingException"),
        *("TransactionConflict", "TransactionConflictException", "TransactionInProgressException"),
    )
)
"""DynamoDB may answer the same request otherwise in a moment. Codes without "Exception" are of single statements and of
single items of a transaction.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html"""
IN_DOUBT: Final = ("InternalServerError", "RequestTimeout", "ServiceUnavailable")
"""DynamoDB may have done a request whose error begins so; what it refuses otherwise it has not done, and never will.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html"""
