"""Records that wait for repair, in quarantine and in the on-failure bucket, looked at on a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dynamodb_counters._items.bookkeeping import read_units
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import PK, TTL
from dynamodb_counters._quarantine.quarantine_items import PARTITIONS, RECORD, STATE, UNREADABLE, WAITING, unpack
from dynamodb_counters._table import Table

PREFIX: Final = "aws/lambda/"
"""Lambda's objects: the prefix, the mapping's id, the shard, the date, the time and something random."""

MOST_READ_UNITS: Final = 500
"""No further page is read after so many: what waits then is a lower bound."""

_PAGE: Final = 50
_MOST_PAGES: Final = 10


@dataclass(slots=True)
class Waiting:
    """How much waits, and the age of the oldest in seconds."""

    count: int = 0
    oldest: float = 0.0


def waiting_in_quarantine(table: Table, retention_seconds: float) -> Waiting:
    """Count the entries that are not redriven: all of them, unless that would cost too much."""
    now, found = table.clock(), Waiting()
    for item in _entries(table):
        expires_at = float(item.get(TTL, {}).get("N", 0))
        if item.get(STATE) == {"S": WAITING} and expires_at > now:
            found.count += 1
            found.oldest = max(found.oldest, now - _created(item, expires_at - retention_seconds))
    return found


def waiting_in_bucket(s3: Any, bucket: str, now: float) -> Waiting:
    """Count Lambda's objects; at most 10,000."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX)
    objects = [found for page in islice(pages, _MOST_PAGES) for found in page.get("Contents", ())]
    ages = [now - found["LastModified"].timestamp() for found in objects]
    return Waiting(len(objects), max(ages, default=0.0))


def _entries(table: Table) -> Iterator[Image]:
    units = 0.0
    for pk in PARTITIONS:
        pages = table.client.get_paginator("query").paginate(
            TableName=table.name,
            KeyConditionExpression=f"{PK} = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
            PaginationConfig={"PageSize": _PAGE},
        )
        for page in pages:
            yield from page["Items"]
            units += read_units(page["Items"])
            if units >= MOST_READ_UNITS:
                return


def _created(item: Mapping[str, Any], otherwise: float) -> float:
    """When the entry's record was created: it may be kept for less than the quarantine's retention."""
    try:
        return float(unpack(item[RECORD])["dynamodb"]["ApproximateCreationDateTime"])
    except UNREADABLE:
        return otherwise
