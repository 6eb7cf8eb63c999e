"""Stream records as DynamoDB writes them: an item store that remembers what its stream would carry."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Image = dict[str, dict[str, Any]]
Record = dict[str, Any]

NOW = 1_790_000_000
"""When records are created, unless a test says otherwise."""

TTL_IDENTITY = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def image(kind: str, **values: str | int | Decimal) -> Image:
    """Make an item image: strings become ``S``, numbers ``N``."""
    typed = {name: {"S": value} if isinstance(value, str) else {"N": str(value)} for name, value in values.items()}
    return {"_type": {"S": kind}, **typed}


def record(
    sequence: int | str,
    new: Mapping[str, Any] | None = None,
    old: Mapping[str, Any] | None = None,
    *,
    created: float | None = NOW,
    expired: bool = False,
) -> Record:
    """Make a stream record; what kind it is follows from its images."""
    change = {
        "SequenceNumber": str(sequence),
        "StreamViewType": "NEW_AND_OLD_IMAGES",
        "SizeBytes": 1,
        "ApproximateCreationDateTime": created,
        "NewImage": new,
        "OldImage": old,
    }
    return {
        "eventID": f"id-{sequence}",
        "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
        "eventSource": "aws:dynamodb",
        "dynamodb": {name: value for name, value in change.items() if value is not None},
        **({"userIdentity": TTL_IDENTITY} if expired else {}),
    }


class Shard:
    """Items, and the records their changes leave in one shard."""

    def __init__(self) -> None:
        self.items: dict[str, Image] = {}
        self.records: list[Record] = []

    def __repr__(self) -> str:
        return f"Shard(records={self.records}, items={self.items})"

    def write(self, key: str, new: Image | None, *, expired: bool = False) -> None:
        """Put an item; or delete the one that is there, perhaps as the TTL process does."""
        old = self.items.pop(key, None)
        if new is not None:
            self.items[key] = new
        if new != old:
            # Numbers grow by a digit on the way, as they do in real streams.
            sequence = 10**20 - 5 + 3 * len(self.records)
            self.records.append(record(sequence, new, old, expired=expired))
