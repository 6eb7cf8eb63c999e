"""Conflicts: an event whose key is taken by another payload, as opposed to a repetition of what is stored."""

from __future__ import annotations

from typing import Any

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.conditions import Image, TypedValue
from dynamodb_counters._items.conversions import parse_number, plain_value
from dynamodb_counters._items.table_schema import is_reserved
from dynamodb_counters._writes.outcomes import DUPLICATE, Outcome, OutcomeStatus

_MOST_NAMES = 10


def repetition(event: Event, image: Image, stored: Image) -> Outcome:
    """Outcome of an event whose key is taken by `stored`: a conflict, unless the payloads are equal."""
    version = event.version
    # An older version is a repetition: it is what came late of a source that corrects itself.
    if version is not None and not (version in stored and is_same(image[version], stored[version])):
        return DUPLICATE
    different = differing(event, image, stored)
    if not different:
        return DUPLICATE
    held = {name: plain_value(value) for name, value in stored.items() if not is_reserved(name)}
    return Outcome(OutcomeStatus.CONFLICT, f"the stored event of this key differs in {listed(different)}", held)


def differing(event: Event, image: Image, other: Image) -> list[str]:
    """The names of the attributes in which two events of one key differ, whatever the table has added to them."""
    # In a key, 1 and "1" are the same.
    names = sorted(name for name in image.keys() | other.keys() if not is_reserved(name) and name not in event.fields)
    return [name for name in names if not is_same(image.get(name, {}), other.get(name, {}))]


def is_newer(one: TypedValue, other: TypedValue) -> bool:
    """Whether a version is greater, as DynamoDB compares: strings with strings, numbers with numbers."""
    if "S" in one and "S" in other:
        return bool(one["S"] > other["S"])
    return "N" in one and "N" in other and parse_number(one["N"]) > parse_number(other["N"])


def listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")


def is_same(one: TypedValue, other: TypedValue) -> bool:
    """Whether typed values are equal, numbers by value and sets without order."""
    if one == other or one.keys() != other.keys():
        return one == other
    [(kind, content)] = one.items()
    known: Any = other[kind]
    match kind:
        case "L":
            return len(content) == len(known) and all(map(is_same, content, known))
        case "M":
            return content.keys() == known.keys() and all(is_same(part, known[name]) for name, part in content.items())
    # DynamoDB keeps 1.50 as 1.5.
    return bool(plain_value(one) == plain_value(other))
