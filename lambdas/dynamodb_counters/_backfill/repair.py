"""Repair: what a group lacks is added to it, once, beside live updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dynamodb_counters._declarations.groups import Key
from dynamodb_counters._fold.item_layout import GroupRef, ItemLayout
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.table_schema import PK, REPAIRED, SK
from dynamodb_counters._table import Table

Verdict = Literal["drift", "unknown"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A group whose items say something else than its source.

    Parameters
    ----------
    name : str
        The declaration.
    group : mapping of str to str
        The group: field to text; for a window also the tier and the start of the bucket.
    missing : mapping of str to int or Decimal
        What the items lack, by attribute; negative if they have too much.
    verdict : {"drift", "unknown"}
        ``"unknown"``: the source cannot tell, `reason` says why.
    reason : str
        Why it is unknown; "" otherwise.
    """

    name: str
    group: Mapping[str, str]
    missing: Mapping[str, Number]
    verdict: Verdict
    reason: str = ""
    ref: GroupRef = ("", ())
    seen: Mapping[str, Any] | None = None
    """The mark of the last repair on the item that a repair writes."""


def repair_key(layout: ItemLayout, ref: GroupRef) -> Key:
    """The key of the item of a group that a repair writes."""
    key = layout.key(ref[1], "")
    return {PK: {"S": key[PK]}, SK: {"S": key[SK]}}


def repaired(table: Table, plan: Plan, run: str, differences: Iterable[Difference]) -> tuple[int, int]:
    """Repair what drifted; return how many were repaired, and how many another repair was before."""
    drifted = [difference for difference in differences if difference.verdict == "drift"]
    done = sum(_repair(table, plan.programs[difference.ref[0]].layout, run, difference) for difference in drifted)
    return done, len(drifted) - done


def _repair(table: Table, layout: ItemLayout, run: str, difference: Difference) -> bool:
    update = Update(layout, difference.ref[1], difference.missing, "")
    update.set(REPAIRED, {"S": run})
    request = update.request(table.name)
    request["ExpressionAttributeNames"]["#repaired"] = REPAIRED
    request["ConditionExpression"] = "attribute_not_exists(#repaired)"
    if difference.seen is not None:
        request["ConditionExpression"] = "#repaired = :seen"
        request["ExpressionAttributeValues"][":seen"] = difference.seen
    try:
        table.client.update_item(**request)
    except table.client.exceptions.ConditionalCheckFailedException:
        return False
    return True
