"""Entries of the quarantine, and expiries, read by what is documented of them alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from simulation.memory.memory_stream import Record

Entry: TypeAlias = tuple[str, str, str]
"""An image that may be in quarantine: shard, sequence number, name, which ends in the row if it is one of a chunk."""

_ENTRY: Final = re.compile(r"^(.*?)#(\d{40})#((?:NewImage|OldImage)(?:#\d{1,7}(?![0-9a-f]))?)?")
_IMAGE: Final = re.compile(r"#(NewImage|OldImage)(#\d{1,7})?$")
_TTL_MATTERS: Final = 5 * 365 * 86_400


def is_waiting(item: Mapping[str, Any]) -> bool:
    """Whether an item is an entry of the quarantine that waits."""
    return (item.get("_type"), item.get("state")) == ({"S": "quarantine"}, {"S": "waiting"})


def is_image(sort_key: str) -> bool:
    """Whether a quarantine item's sort key is that of an image, or of an event, that is known not to be counted."""
    return _IMAGE.search(sort_key) is not None


def entry_of(sort_key: str) -> Entry:
    """The image that a quarantine item's sort key names."""
    found = _ENTRY.search(sort_key)
    return (found[1], found[2], found[3] or "") if found else ("", "", "")


def is_expiry(record: Record) -> bool:
    """Whether TTL has deleted the item."""
    change = record["dynamodb"]
    if record["eventName"] != "REMOVE":
        return False
    age = change["ApproximateCreationDateTime"] - float(change["OldImage"].get("ttl", {"N": "inf"})["N"])
    return "userIdentity" in record or 0 <= age < _TTL_MATTERS
