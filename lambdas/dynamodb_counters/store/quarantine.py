"""Quarantine: where records that cannot be folded are kept, each once, so that none is lost and none blocks a shard."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

from dynamodb_counters.errors import CommitError
from dynamodb_counters.fold import Unfoldable
from dynamodb_counters.schema import PK, QUARANTINE, SK, TTL, TYPE
from dynamodb_counters.store.accept import Outcome, insert
from dynamodb_counters.store.table import Table

PARTITIONS: Final = 8
"""Quarantine items are spread over so many partition keys: one shard's are together, many shards' are not."""


def keep(table: Table, shard: str, records: Iterable[Unfoldable], retention_seconds: float) -> int:
    """Keep records; one that is kept already stays as it is.

    Parameters
    ----------
    table : Table
        Where to.
    shard : str
        The shard they come from.
    records : iterable of Unfoldable
        What to keep.
    retention_seconds : float
        How long.

    Returns
    -------
    int
        How many were not kept before.

    Raises
    ------
    CommitError
        Some could not be written; the batch must be delivered again.
    """
    expires_at = int(table.clock() + retention_seconds)
    items = [_item(shard, record, expires_at) for record in records]
    outcomes = list(table.pool.map(lambda item: insert(table, item), items))
    refused = [outcome for outcome in outcomes if outcome.status in ("failed", "rejected")]
    if refused:
        raise CommitError([RuntimeError(f"quarantine refused a record: {outcome.reason}") for outcome in refused])
    return outcomes.count(Outcome("accepted"))


def quarantine_key(shard: str, sequence: str) -> dict[str, dict[str, str]]:
    """Give the key of a record in quarantine.

    Parameters
    ----------
    shard : str
        The shard it comes from.
    sequence : str
        Its padded sequence number.

    Returns
    -------
    dict
        Typed key.
    """
    partition = zlib.crc32(shard.encode()) % PARTITIONS
    return {PK: {"S": f"QUARANTINE#{partition}"}, SK: {"S": f"{shard}#{sequence}"}}


def _item(shard: str, record: Unfoldable, expires_at: int) -> dict[str, Any]:
    return {
        **quarantine_key(shard, record.sequence),
        TYPE: {"S": QUARANTINE},
        TTL: {"N": str(expires_at)},
        "reason": {"S": record.reason[:1000]},
        "record": {"S": json.dumps(record.record, default=str)},
    }
