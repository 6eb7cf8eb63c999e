"""Names and limits of the table, each defined once for runtime and infrastructure.

The limits are DynamoDB's: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

from typing import Final

PK: Final = "pk"
SK: Final = "sk"
TTL: Final = "ttl"

RESERVED_PREFIX: Final = "_"
"""Attribute names that start so belong to the bookkeeping; events, groups and measures cannot use them."""

TYPE: Final = "_type"
"""Holds the name of the declaration an item was written by; the fold dispatches on it."""

ONCE_SUFFIX: Final = "#once"
"""Ends the type of an event that a transaction has counted: its insertion counts nothing more."""

BOARD: Final = "_board"
"""Partition key of the ranking index: the board a group is ranked on."""

SCORE: Final = "_score"
"""Sort key of the ranking index: the measure a group is ranked by."""

RANKING_INDEX: Final = "ranking"

WATERMARK_PREFIX: Final = "_w:"
"""Starts the attribute that holds how far one stream shard has been applied to an item."""

COUNTED_IN: Final = "_in"
"""Names the declarations in which a transaction has counted an event."""

QUARANTINE: Final = "quarantine"
"""The type of quarantine items, and a name no declaration may take."""

QUARANTINE_PREFIX: Final = "QUARANTINE#"
"""Starts the partition keys of quarantine items."""

MAX_PK_BYTES: Final = 2048
MAX_SK_BYTES: Final = 1024
MAX_NUMBER_DIGITS: Final = 38
SEQUENCE_DIGITS: Final = 40
"""Width sequence numbers are padded to: string order is then number order (they have 21 to 40 digits)."""

STREAM_RETENTION_HOURS: Final = 24


def is_reserved(attribute: str) -> bool:
    """Tell whether an attribute name belongs to the table itself.

    Parameters
    ----------
    attribute : str
        Attribute name.

    Returns
    -------
    bool
        True for the key, the TTL and the bookkeeping attributes.

    Examples
    --------
    >>> is_reserved("ttl"), is_reserved("_w:42"), is_reserved("url")
    (True, True, False)
    """
    return attribute in (PK, SK, TTL) or attribute.startswith(RESERVED_PREFIX)
