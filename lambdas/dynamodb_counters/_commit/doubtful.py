"""Records that may have been counted already, with nothing left that would tell: quarantine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
        names = tuple(sorted({delta.layout.name for delta in folded.deltas}))
        for name in [NEW] if change.delta is not None else _images(change) if names else ():
            record = change.record if change.delta is not None else single_image(change.record, name)
            doubtful.append(
                Unfoldable(
                    change.sequence, f"{name}#DOUBTFUL", record, _REASON, () if change.delta is not None else names
                )
            )
        doubtful += [replace(image, reason=f"{_REASON}; {image.reason}") for image in folded.unfoldable]
    return fresh, doubtful


def _images(change: Change) -> list[str]:
    images = change.record["dynamodb"]
    return [name for name in (NEW, OLD) if images.get(name) is not None]
