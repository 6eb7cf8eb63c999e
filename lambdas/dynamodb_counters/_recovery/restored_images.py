"""Which changes of a table are in a copy of it: each item shows it by its image. Pure.

The records of one key form a chain of images, each record's new one the next one's old one. The copy's item is one of
them: what led to it is in the copy, what followed is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._fold.records import NEW, OLD, Record, created_of

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
    """Images of items before their first change."""
    return {key: chain[0]["dynamodb"].get(OLD) for key, chain in chains_of(records).items()}


def compare(chains: Mapping[ItemKey, list[Record]], copied: Images, at: float | None = None) -> InCopy:
    """Find each key's item in its chain.

    An item may be there more than once; then `at`, or what is certain of other items, decides when the copy was made.
    """
    found = InCopy()
    places: dict[ItemKey, list[int]] = {}
    until = math.inf
    for key, chain in chains.items():
        item = _comparable(copied[key])
        places[key] = matches = [index for index in range(len(chain) + 1) if item in _images_at(chain, index)]
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


def _images_at(chain: list[Record], index: int) -> list[Any]:
    """Images of the item before a record of its chain: the one that the record found, and the one that the last left.

    They differ where records between the two are not here: long counted, or later than what was read.
    """
    found = [record["dynamodb"].get(OLD) for record in chain[index : index + 1]]
    left = [record["dynamodb"].get(NEW) for record in chain[max(index - 1, 0) : index]]
    return [_comparable(image) for image in (*found, *left)]


def _comparable(value: Any) -> Any:
    """An image with numbers by value and sets without order."""
    if isinstance(value, Mapping):
        return {name: _typed(name, part) for name, part in value.items()}
    return value


def _typed(name: str, value: Any) -> Any:
    if name == "N" and isinstance(value, str):
        return Decimal(value)
    if name in ("SS", "BS") and isinstance(value, list | tuple | set | frozenset):
        return frozenset(value)
    if name == "NS" and isinstance(value, list | tuple | set | frozenset):
        return frozenset(map(Decimal, value))
    if name == "L" and isinstance(value, list):
        return [_comparable(part) for part in value]
    return _comparable(value)
