"""Repair: what a group lacks is added to it, once, while live updates go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dynamodb_counters._backfill.verdicts import EXPIRED, Verdict
from dynamodb_counters._declarations.groups import Key
from dynamodb_counters._fold.item_layout import GroupRef, ItemLayout
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.table_schema import PK, REPAIRED, SCORE, SK
from dynamodb_counters._table import Table


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
        Numbers that the items lack, by attribute; negative if they have too much.
    verdict : {"drift", "unknown", "waiting"}
        ``"unknown"``: uncertain, `reason` says why. ``"waiting"``: entries of the quarantine wait for it.
    reason : str
        Why it is unknown, or why more than this may be missing; "" if neither.
    """

    name: str
    group: Mapping[str, str]
    missing: Mapping[str, Number]
    verdict: Verdict
    reason: str = ""
    ref: GroupRef = ("", ())
    seen: Mapping[str, Any] | None = None
    """The mark of the last repair on the item that a repair writes."""


def typed_key(key: Mapping[str, str]) -> Key:
    return {PK: {"S": key[PK]}, SK: {"S": key[SK]}}


def repaired(
    table: Table, plan: Plan, run: str, differences: Iterable[Difference], *, unknown: bool = False
) -> tuple[int, int]:
    """Repair groups that drifted; return how many were repaired, and how many another repair was before.

    With `unknown`, groups that may count what has expired are repaired, too: they lose that.
    """
    groups: dict[GroupRef, list[Difference]] = {}
    for difference in differences:
        if difference.verdict == "drift" or (unknown and difference.reason == EXPIRED):
            groups.setdefault(difference.ref, []).append(difference)
    done = sum(_repair(table, plan.programs[ref[0]].layout, run, found) for ref, found in groups.items())
    return done, len(groups) - done


def _repair(table: Table, layout: ItemLayout, run: str, found: Sequence[Difference]) -> bool:
    """Repair a group by what was found of it, in one update."""
    difference = found[0]
    missing: dict[str, Number] = {SCORE: 0}
    for each in found:
        missing |= {name: missing.get(name, 0) + number for name, number in each.missing.items()}
    update = Update(layout, difference.ref[1], missing, "")
    update.set(REPAIRED, {"S": run})
    request = update.request(table.name)
    request["ExpressionAttributeNames"]["#repaired"] = REPAIRED
    request["ConditionExpression"] = "attribute_not_exists(#repaired)"
    if difference.seen is not None:
        request["ConditionExpression"] = "#repaired = :seen"
        request["ExpressionAttributeValues"][":seen"] = difference.seen
    with suppress(table.client.exceptions.ConditionalCheckFailedException):
        table.client.update_item(**request)
        return True
    return False
