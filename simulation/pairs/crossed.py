"""The outbox of thresholds as it must be, from the stream's records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.groups import base_name, generation_number
from simulation.oracle.crossings import Crossed, crossed, held
from simulation.pairs.truth import Truth


def wrong(truth: Truth) -> list[str]:
    """Crossings that the outbox lacks, or has once too often."""
    there, due = Counter(map(held, truth.items_of("_crossing"))), Counter[Crossed]()
    for record, folded in truth.judged():
        due.update(_of(record, folded))
    return [f"lacks the crossing {each}" for each in due - there] + [f"has the {each}" for each in there - due]


def _of(record: Mapping[str, Any], folded: Mapping[str, Declaration]) -> list[Crossed]:
    """The crossings of a record; a generation that another one comes before is silent."""
    name = (record["dynamodb"].get("NewImage") or {}).get("_type", {}).get("S", "")
    declaration = folded.get(name)
    if not isinstance(declaration, Aggregate):
        return []
    same = (generation_number(each) for each in folded if base_name(each) == base_name(name))
    return crossed(record, declaration._thresholds) if min(same) == generation_number(name) else []
