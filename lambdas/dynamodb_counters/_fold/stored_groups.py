"""The groups that stored items are of: back from an item's key to its group."""

from __future__ import annotations

from dynamodb_counters._declarations import BUCKET_FIELD, TIER_FIELD, Aggregate, Declaration
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.item_layout import GroupKey
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._timeline.tiers import BY_LETTER
from dynamodb_counters.errors import UnparsableKeyError


def group_of_item(declaration: Declaration, item: Image) -> GroupKey | None:
    """The group of an item; None if its key does not show it, as that of another declaration."""
    try:
        if isinstance(declaration, Aggregate):
            values = values_of(declaration, item)
            return None if values is None else tuple(values[field] for field in declaration.fields)
        if is_hashed(item[PK]["S"]):
            fields = {field: item[field]["S"] for field in declaration.fields}
        else:
            fields = declaration._pk_template.parse(item[PK]["S"])
        place = declaration._sk_template.parse(item[SK]["S"])
        tier = BY_LETTER[place[TIER_FIELD]]
        return (*(fields[field] for field in declaration.fields), tier.letter, tier.parse(place[BUCKET_FIELD]))
    except (LookupError, ValueError, UnparsableKeyError):
        return None
