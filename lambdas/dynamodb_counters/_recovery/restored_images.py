"""Which changes of a table are in a copy of it: each item shows it by its image. Pure.

The records of one key form a chain of images, each record's new one the next one's old one. The copy's item is one of
them: what led to it is in the copy, what followed is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._fold.records import NEW, OLD, Record, created_of
from dynamodb_counters._writes.conflicts import is_same

_APPROXIMATELY: Final = 2.0
"""Seconds by which a record's time of creation, itself in whole seconds, may differ from that of the copy."""

ItemKey: TypeAlias = tuple[str, str]

Images: TypeAlias = Mapping[ItemKey, Mapping[str, Any] | None]
"""Items by key; None where there is none."""


@dataclass(slots=True)
class InCopy:
    """Evidence in a copy of the original's records."""

    included: dict[ItemKey, int] = field(default_factory=dict)
    """How many of a key's records led to its item."""
    unknown: list[ItemKey] = field(default_factory=list)
    """Keys whose item is none of the original's images."""
    ambiguous: dict[ItemKey, tuple[int, int]] = field(default_factory=dict)
    """Keys with several places that fit: the first and the last of them. The last one is included."""
    moment: float = 0.0
    """When the copy was made, or a little earlier: its latest change, in seconds since 1970."""


def key_of(record: Record) -> ItemKey:
    return identity(record["dynamodb"]["Keys"])


def chains_of(records: Iterable[Record]) -> dict[ItemKey, list[Record]]:
    """Records by key, given in an order that keeps each key's."""
    chains: dict[ItemKey, list[Record]] = {}
    for record in records:
        chains.setdefault(key_of(record), []).append(record)
    return chains


def first_images(records: Iterable[Record]) -> dict[ItemKey, Mapping[str, Any] | None]:
    return {key: chain[0]["dynamodb"].get(OLD) for key, chain in chains_of(records).items()}


def compare(chains: Mapping[ItemKey, list[Record]], copied: Images, at: float | None = None) -> InCopy:
    """Find each key's item in its chain."""
    # An item may be there more than once; then `at`, or what is certain of others, decides when the copy was made.
    found = InCopy()
    places: dict[ItemKey, list[int]] = {}
    until = math.inf
    for key, chain in chains.items():
        places[key] = matches = [index for index in range(len(chain) + 1) if _shows(chain, index, copied[key])]
        if not matches:
            found.unknown.append(key)
            continue
        if matches[0] > 0:
            found.moment = max(found.moment, created_of(chain[matches[0] - 1]))
        if matches[-1] < len(chain):
            until = min(until, created_of(chain[matches[-1]]))
    since = found.moment
    if at is not None:
        since, until = at - _APPROXIMATELY, at + _APPROXIMATELY
    for key, matches in places.items():
        chain = chains[key]
        fitting = [
            index
            for index in matches
            if (index == 0 or created_of(chain[index - 1]) <= until)
            and (index == len(chain) or created_of(chain[index]) >= since)
        ]
        if matches:
            found.included[key] = (fitting or matches)[-1]
        if len(fitting) > 1:
            found.ambiguous[key] = fitting[0], fitting[-1]
    return found


def _shows(chain: list[Record], index: int, item: Mapping[str, Any] | None) -> bool:
    """Whether this was the item before a record of its chain: the record found it, or the last one left it."""
    # The two differ where records between them are not here: long counted, or later than what was read.
    found = [record["dynamodb"].get(OLD) for record in chain[index : index + 1]]
    left = [record["dynamodb"].get(NEW) for record in chain[max(index - 1, 0) : index]]
    return any(image == item or (image and item and is_same({"M": image}, {"M": item})) for image in (*found, *left))
