"""Records that may have been counted already, with nothing left that would tell: quarantine takes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, single_image

_REASON = "the record is older than what is known of its shard and its deployment: it may have been counted"


def set_aside(plan: Plan, changes: Sequence[Change], created_before: float) -> tuple[list[Change], list[Unfoldable]]:
    """Split changes into those to fold, and the images of older ones that would count for something."""
    if not changes or (changes[0].created or created_before) >= created_before:
        return list(changes), []
    fresh: list[Change] = []
    doubtful: list[Unfoldable] = []
    for change in changes:
        if (change.created or created_before) >= created_before:
            fresh.append(change)
            continue
        folded = fold(plan, [change])
        if folded.deltas:
            images = [NEW] if change.delta is not None else [name for name in (NEW, OLD) if name in _images(change)]
            for name in images:
                record = change.record if change.delta is not None else single_image(change.record, name)
                doubtful.append(Unfoldable(change.sequence, name, record, _REASON))
        doubtful += [image for image in folded.unfoldable if not folded.deltas]
    return fresh, doubtful


def _images(change: Change) -> Collection[str]:
    return [name for name, image in change.record["dynamodb"].items() if image is not None]
