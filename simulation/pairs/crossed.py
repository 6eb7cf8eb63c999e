"""The outbox of thresholds as it must be, from the stream's records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.generations import base_name, generation_number
from simulation.oracle.crossings import Crossed, crossed, held
from simulation.pairs.held import held_groups
from simulation.pairs.subjects import Group
from simulation.pairs.truth import Truth


def wrong(truth: Truth) -> list[str]:
    """Crossings that the outbox lacks, or has once too often."""
    there, due = Counter(map(held, truth.items_of("_crossing"))), Counter[Crossed]()
    for record, folded in truth.judged():
        due.update(_of(record, folded))
    return [f"lacks the crossing {each}" for each in due - there] + [f"has the {each}" for each in there - due]


def wrong_limits(truth: Truth) -> list[str]:
    """Groups whose generation has not been carried the limit that the one before has."""
    found = []
    for after in (truth.folded[name] for name in truth.read_names()):
        before = after._carries
        if isinstance(after, Aggregate) and isinstance(before, Aggregate) and {*after.fields} == {*before.fields}:
            carried = {group: carried for group, (_, carried) in _limits(truth, after).items()}
            for group, (own, earlier) in _limits(truth, before).items():
                due, there = earlier if own is None else own, carried.get(group, Decimal(0))
                found += [f"{after.name} {group}: carries the limit {there}, not {due}"] if there != due else []
    return found


def _limits(truth: Truth, declaration: Aggregate) -> dict[Group, tuple[Decimal | None, Decimal]]:
    """By group, in the order of its fields' names: the limit set in its generation, and that of the one before."""
    found: dict[Group, tuple[Decimal | None, Decimal]] = {}
    for item in truth.items_of(declaration.name):
        for each in held_groups(declaration, item):
            own, carried = each.limits
            group = tuple(text for _, text in sorted(zip(declaration.fields, each.group, strict=True)))
            found[group] = own, carried or Decimal(0)
    return found


def _of(record: Mapping[str, Any], folded: Mapping[str, Declaration]) -> list[Crossed]:
    """The crossings of a record; a generation that another one comes before is silent."""
    name = (record["dynamodb"].get("NewImage") or {}).get("_type", {}).get("S", "")
    declaration = folded.get(name)
    if not isinstance(declaration, Aggregate):
        return []
    same = (generation_number(each) for each in folded if base_name(each) == base_name(name))
    return crossed(record, declaration._thresholds) if min(same) == generation_number(name) else []
