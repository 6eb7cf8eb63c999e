"""Groups for which something waits in quarantine: whether they lack it or not, a redrive of it decides."""

from __future__ import annotations

from collections import Counter

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._commit.intake import held_by
from dynamodb_counters._control.run_items import Run
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.origins import Origins
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import inserted
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._quarantine.quarantine_items import STATE, UNREADABLE, WAITING, changed_at
from dynamodb_counters._quarantine.redrive_entries import stored_entries
from dynamodb_counters._table import Table
from dynamodb_counters.errors import StreamUnknownError


def quarantined_groups(table: Table, origins: Origins, plan: Plan, run: Run) -> Counter[GroupRef]:
    """How many entries wait for each group, or did after a run's cut: what became of those may not be counted yet.

    To be asked after the groups were read: whatever they lack because it is in quarantine is there by then.
    """
    found: Counter[GroupRef] = Counter()
    for item in stored_entries(table):
        if item.get(STATE, {}).get("S") == WAITING or changed_at(item) >= run.since - SKEW:
            found.update(ref for ref in _groups(origins, plan, item, run.since) if ref[0] in run.names)
    return found


def _groups(origins: Origins, plan: Plan, item: Image, at: float) -> set[GroupRef]:
    """The groups in which an entry counts as the scan counts its item."""
    try:
        change = held_by(item, inserted({}, at), origins)
    except (*UNREADABLE, StreamUnknownError):
        return set()
    return {delta.ref for delta in fold(plan, [change]).deltas if any(delta.measures.values())}
