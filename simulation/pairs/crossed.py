"""The outbox of thresholds as it must be, from the stream's records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dynamodb_counters._assumptions import RUN_OPEN_AFTER
from dynamodb_counters._declarations import Threshold
from simulation.oracle.crossings import Crossed, crossed, held
from simulation.pairs.declared import thresholds_of
from simulation.pairs.truth import Truth


def wrong(truth: Truth) -> list[str]:
    """Crossings that the outbox lacks, or has once too often."""
    there, due, possible = Counter(map(held, truth.items_of("_crossing"))), Counter[Crossed](), Counter[Crossed]()
    for position, record in truth.history:
        name = (record["dynamodb"].get("NewImage") or {}).get("_type", {}).get("S", "")
        if thresholds := thresholds_of(name):
            # While a name was emptied, or a threshold was registered, it depends on the delivery.
            possible.update(crossed(record, thresholds))
            due.update(crossed(record, _watching(truth, name, position.created)))
    return [f"lacks the crossing {each}" for each in due - there] + [f"has the {each}" for each in there - possible]


def _watching(truth: Truth, name: str, created: float) -> Iterator[Threshold]:
    watched = truth.entries.get(name)
    if watched is None or watched.state != "complete":
        return
    # Numbers of a name that is being filled are partial.
    begin = watched.at + RUN_OPEN_AFTER if watched.run else 0
    for entry in truth.thresholds:
        if entry.watches == name and created >= max(begin, entry.since):
            yield entry.declaration
