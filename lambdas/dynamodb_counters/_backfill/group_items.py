"""The groups that items hold: back from an item to its group, and what it has counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamodb_counters._declarations import BUCKET_FIELD, TIER_FIELD, Aggregate, Declaration
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.item_layout import GroupKey
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import Number, parse_number
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import PK, SK, TAKEN_PREFIX
from dynamodb_counters._timeline.tiers import BY_LETTER, TOTAL
from dynamodb_counters.errors import UnparsableKeyError


def group_of_item(declaration: Declaration, item: Image) -> GroupKey | None:
    """The group of an item; None if its key does not tell, as that of another declaration."""
    try:
        if isinstance(declaration, Aggregate):
            values = values_of(declaration, item)
            return None if values is None else tuple(values[field] for field in declaration.fields)
        if is_hashed(item[PK]["S"]):
            fields = {field: item[field]["S"] for field in declaration.fields}
        else:
            fields = declaration.pk_template.parse(item[PK]["S"])
        place = declaration.sk_template.parse(item[SK]["S"])
        tier = BY_LETTER[place[TIER_FIELD]]
        return (*(fields[field] for field in declaration.fields), tier.letter, tier.parse(place[BUCKET_FIELD]))
    except (LookupError, ValueError, UnparsableKeyError):
        return None


def counted(declaration: Declaration, group: GroupKey, items: list[Image]) -> dict[str, Number]:
    """What a group's items have counted, by attribute, what resets have taken included."""
    names = declaration.attributes if isinstance(declaration, Aggregate) else (TOTAL, *BY_LETTER[group[-2]].slots)
    sums: dict[str, Number] = {}
    for item in items:
        for name in names:
            for held in (name, TAKEN_PREFIX + name):
                sums[name] = sums.get(name, 0) + _number(item, held)
    return {name: number for name, number in sums.items() if number}


def _number(item: Mapping[str, Any], name: str) -> Number:
    try:
        return parse_number(item[name]["N"])
    except (LookupError, ValueError):
        return 0
