"""Repair: what a group lacks is added to it, once, while live updates go on, unless something waits for the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import localcontext
from typing import Any

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._backfill.verdicts import EXPIRED, Verdict
from dynamodb_counters._commit.intake import held_by
from dynamodb_counters._commit.item_deltas import ItemDelta, joined, place_of
from dynamodb_counters._control.run_items import Run, Sums
from dynamodb_counters._control.run_logs import sums_of
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.origins import Origins
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import inserted
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import EXACT, Number
from dynamodb_counters._items.table_schema import REPAIRED, SCORE
from dynamodb_counters._pages import PageLevels
from dynamodb_counters._quarantine.quarantine_items import STATE, UNREADABLE, WAITING, changed_at
from dynamodb_counters._quarantine.redrive_entries import stored_entries
from dynamodb_counters._table import Table
from dynamodb_counters._writes.update_conditions import conditional, item_of


@dataclass(frozen=True, slots=True)
class Difference:
    """A group whose items say something else than its source."""

    name: str
    group: Mapping[str, str]
    """Field to text; for a window also the tier and the start of the bucket."""
    missing: Mapping[str, Number]
    """Numbers that the items lack, by attribute; negative if they have too much."""
    verdict: Verdict
    reason: str = ""
    """Why it is unknown, or why more than this may be missing."""
    ref: GroupRef = ("", ())
    seen: Mapping[str, Any] | None = None
    """The mark of the last repair on the item that a repair writes."""


def quarantined_groups(table: Table, origins: Origins, plan: Plan, run: Run) -> Counter[GroupRef]:
    """How many entries wait for each group, or did after a run's cut: a redrive decides if the group lacks them."""
    # To be asked after the groups were read: whatever they lack because it is in quarantine is there by then.
    found: Counter[GroupRef] = Counter()
    for item in stored_entries(table):
        if item.get(STATE, {}).get("S") == WAITING or changed_at(item) >= run.since - SKEW:
            found.update(ref for ref in awaited(origins, plan, item, run.since) if ref[0] in run.names)
    return found


def awaited(origins: Origins, plan: Plan, entry: Image, at: float) -> Sums:
    """How much an entry of the quarantine would add, as the scan counts its item."""
    try:
        return sums_of(fold(plan, [held_by(entry, inserted({}, at), origins)]))
    except UNREADABLE:
        return {}


def repaired(
    table: Table, plan: Plan, run: str, differences: Iterable[Difference], *, unknown: bool = False
) -> tuple[int, int]:
    """Repair groups that drifted; return how many were repaired, and how many another repair was before."""
    # With `unknown`, groups that may count what has expired are repaired, too: they lose that.
    missing: dict[GroupRef, Delta] = {}
    seen: dict[GroupRef, Mapping[str, Any] | None] = {}
    for difference in differences:
        if difference.verdict == "drift" or (unknown and difference.reason == EXPIRED):
            ref, seen[difference.ref] = difference.ref, difference.seen
            delta = missing.setdefault(ref, Delta(plan.programs[ref[0]].layout, ref[1], "", ""))
            with localcontext(EXACT):
                delta.measures |= {name: delta.measures.get(name, 0) + n for name, n in difference.missing.items()}
    done, left, levels = 0, sorted(missing.values(), key=place_of), PageLevels.of_table(table)
    while left:
        elsewhere: list[Delta] = []
        for item in joined(left, levels):
            refusal = _refusal(table, run, item, seen[item.refs[0]])
            if refusal is None:
                done += len(item.deltas)
            elif item.page is not None and not levels.learn(item.layout.name, item.page, refusal):
                elsewhere += item.deltas
        left = sorted(elsewhere, key=place_of)
    return done, len(missing) - done


def _refusal(table: Table, run: str, item: ItemDelta, seen: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Repair the groups of an item, in one update; the item as it is if it refuses that."""
    if item.layout.ranking is not None:
        item.deltas[0].measures.setdefault(SCORE, 0)
    update = item.update("")
    update.set(REPAIRED, {"S": run})
    condition, values = "attribute_not_exists(#repaired)", {}
    if seen is not None:
        condition, values = "#repaired = :seen", {":seen": seen}
    request = conditional(update.request(table.name), condition, {"#repaired": REPAIRED}, values)
    try:
        table.client.update_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    except table.client.exceptions.ConditionalCheckFailedException as error:
        return item_of(error)
    return None
