"""Classification: which declarations count each record of a batch, and which records may have been counted. Pure.

A batch is cut where another deployment comes into force and where a run begins, for what comes before a run's cut is
counted before what comes after it is logged. Records of a part that may have been counted already, with nothing left
that says so, go to quarantine; what expires in it is noted, because no item shows it later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from dynamodb_counters._control.deployment_items import Era, History
from dynamodb_counters._control.run_logs import NO_CUTS, Cuts
from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.expiry import expired_until
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, single_image

_REASON: Final = "the record is older than what is known of its shard and its deployment: it may have been counted"


@dataclass(frozen=True, slots=True)
class Classified:
    """Consecutive changes that the same declarations count."""

    plan: Plan
    changes: Sequence[Change]
    fresh: Sequence[Change]
    """Those that were certainly not counted: to be folded."""
    doubtful: Sequence[Unfoldable]
    """The images of the others that would count for something."""
    expired: Mapping[str, float]
    """Declarations that go on counting what expires here, and the time from which their groups count none of it."""


def uncounted(changes: Sequence[Change], applied_through: str) -> Sequence[Change]:
    """The changes that a shard's checkpoint does not cover."""
    if applied_through < changes[0].sequence:
        return changes
    return [change for change in changes if applied_through < change.sequence]


def classify(
    changes: Sequence[Change],
    history: History,
    plan_of: Callable[[str], Plan | None],
    plan_in_force: Callable[[], Plan],
    *,
    now: float,
    cuts: Cuts = NO_CUTS,
    doubtful_before: float = -math.inf,
) -> list[Classified]:
    """Classify changes in order; those created earlier than `doubtful_before` may have been counted."""
    # So may those whose declarations cannot be read; the plan in force then says which would count.
    classes: list[Classified] = []
    for deployment, part in _by_deployment(changes, history, cuts, now):
        plan = plan_of(deployment)
        before = math.inf if plan is None else doubtful_before
        plan = plan or plan_in_force()
        fresh, doubtful = set_aside(plan, part, before)
        classes.append(Classified(plan, part, fresh, doubtful, expired_until(plan, part)))
    return classes


def set_aside(
    plan: Plan, changes: Sequence[Change], created_before: float
) -> tuple[Sequence[Change], Sequence[Unfoldable]]:
    """Split changes into those to fold, and the images of older ones that would count for something."""
    if not changes or (changes[0].created or created_before) >= created_before:
        return changes, ()
    fresh: list[Change] = []
    doubtful: list[Unfoldable] = []
    for change in changes:
        if (change.created or created_before) >= created_before:
            fresh.append(change)
            continue
        folded = fold(plan, [change])
        names = tuple(sorted({delta.layout.name for delta in folded.deltas}))
        whole = Unfoldable(change.sequence, f"{NEW}#DOUBTFUL", change.record, _REASON)
        if change.delta is not None:
            doubtful.append(whole)
        elif names:
            for name in (NEW, OLD):
                if change.record["dynamodb"].get(name) is not None:
                    record = single_image(change.record, name)
                    doubtful.append(replace(whole, image_name=f"{name}#DOUBTFUL", record=record, names=names))
        doubtful += [replace(image, reason=f"{_REASON}; {image.reason}") for image in folded.unfoldable]
    return fresh, doubtful


def _by_deployment(
    changes: Sequence[Change], history: History, cuts: Cuts, now: float
) -> Iterator[tuple[str, Sequence[Change]]]:
    if len(history.eras) == 1 and not cuts.of_runs:
        yield history.eras[0].deployment, changes
        return

    def side(change: Change) -> tuple[Era, int]:
        past = sum(cut <= change.sequence for cut in cuts.of_runs.values())
        return history.at(change.created or now, change.sequence, cuts.of_eras), past

    for (era, _), part in groupby(changes, side):
        yield era.deployment, list(part)
