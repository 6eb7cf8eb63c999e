"""Names and limits of the table, each defined once for runtime and infrastructure.

The limits are DynamoDB's: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

from typing import Final

PK: Final = "pk"
SK: Final = "sk"
"""Partition and sort key of the table, strings."""

TTL: Final = "ttl"
"""When DynamoDB may delete an item, in seconds since 1970."""

RESERVED_PREFIX: Final = "_"
"""Starts the bookkeeping's attribute names, which events, groups and measures cannot use."""

TYPE: Final = "_type"
"""The name of the declaration that wrote an item; the fold dispatches on it."""

ONCE_SUFFIX: Final = "#once"
"""Ends the type of an event that a transaction has counted: its stream record counts nothing more."""

PACK_SUFFIX: Final = "#pack"
"""Ends the type of a chunk: an item that holds many events."""

PACK_PREFIX: Final = "PACK#"
"""Starts the partition keys of chunks."""

LAYOUT: Final = "LAYOUT"
"""Sort key of the item that holds where an event's chunks are."""

CHUNK: Final = "_chunk"
"""The attribute that holds a chunk's events."""

ERASED: Final = "_erased"
"""The attribute of a chunk with the digests of events that were erased, of 16 bytes each; of an event, a mark that it
is being erased and its counts are kept."""

LEADERBOARD: Final = "_board"
"""Partition key of the ranking index: the leaderboard a group is on."""

SCORE: Final = "_score"
"""Sort key of the ranking index: the measure a group is ranked by."""

RANKING_INDEX: Final = "ranking"
"""Name of the global secondary index that leaderboards are read from."""

PAGE_PREFIX: Final = "PAGE#"
"""Starts the sort keys of pages, items that hold many groups of an aggregate."""

LEVEL: Final = "_level"
"""How often a page has split: that many first bits of a hash say which groups lie in it; missing for none."""

VERSION: Final = "_v"
"""How many updates of a page there were."""

CHECKPOINT: Final = "_checkpoint"
"""The type of checkpoint items, which no declaration can have as its name."""

CHECKPOINT_PREFIX: Final = "CHECKPOINT#"
"""Starts the partition keys of checkpoint items."""

RUN_PREFIX: Final = f"{CHECKPOINT_PREFIX}run~"
"""Starts the partition keys of a backfill's or verification's items."""

BASELINE: Final = "_b"
"""The watermark of the last part of a baseline that an item has; it stays, and the next run's is later."""

REPAIRED: Final = "_r"
"""The watermark of the last repair of an item: repairs are numbered from 1 on."""

CROSSING: Final = "_crossing"
"""The type of the items in the outbox of thresholds, which no declaration can have as its name."""

CROSSING_PREFIX: Final = "CROSSING#"
"""Starts the partition keys of the outbox."""

COUNTED_IN: Final = "_in"
"""The names of the declarations in which a transaction has counted an event."""

QUOTA: Final = "_quota"
"""The type of items that hold what is reserved of a quota, which no declaration can have as its name."""

LEASES_PREFIX: Final = "LEASES#"
"""Starts the partition keys of what is reserved of quotas."""

MAX_LEASE_FIELDS: Final = 3
"""Most fields of a quota's group."""

QUARANTINE: Final = "quarantine"
"""The type of quarantine items, which no declaration may have as its name."""

QUARANTINE_PREFIX: Final = "QUARANTINE#"
"""Starts the partition keys of quarantine items."""

OWN_TYPES: Final = frozenset((CHECKPOINT, CROSSING, QUARANTINE, QUOTA))
"""Types of items that are no event's and no group's."""

MAX_PK_BYTES: Final = 2048
MAX_SK_BYTES: Final = 1024
"""Longest partition and sort key, in UTF-8 bytes."""

MAX_NUMBER_DIGITS: Final = 38
"""Most significant digits of a number."""

SEQUENCE_DIGITS: Final = 40
"""Width that sequence numbers (21 to 40 digits) are padded to, which makes string order number order."""


def is_reserved(attribute: str) -> bool:
    """Whether an attribute name belongs to the table itself."""
    return attribute in (PK, SK, TTL) or attribute.startswith(RESERVED_PREFIX)
