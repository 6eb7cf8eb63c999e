"""Declarations in words: what each counts, in a line that a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._declarations.kinds import Read, group_fields, read_by
from dynamodb_counters._declarations.measures import Count, Histogram, Measure, Sum, TimeWeighted
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.thresholds import Threshold
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.decimals import format_number
from dynamodb_counters._items.derived_fields import LOG, parts_of

_COMPARED: Final = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "begins_with": "begins with"}
"""ASCII, because CloudFormation forgets other characters of a template's metadata."""

_UNITS: Final = (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def words_of(declaration: Declaration) -> str:
    """Source, group and measures of a declaration: ``event view by url: views (count), b (sum of n)``."""
    fields = group_fields(declaration)
    if isinstance(declaration, Aggregate) and declaration._longest:
        # Stretches of time are how it lies in the table.
        fields = tuple(field for field in fields if field != declaration._sk_template.fields[0])
    by = f"by {', '.join(fields)}" if fields else "in total"
    parts = [*_details(declaration)]
    if declaration.where is not None:
        parts.append(f"where {condition_words(declaration.where)}")
    if declaration.on_expiry != "keep":
        parts.append("less expired items" if declaration.on_expiry == "subtract" else "expired items in the tally")
    return f"{source_words(declaration.source)} {by}: {', '.join(parts)}"


def source_words(source: Event | Items | Aggregate) -> str:
    if isinstance(source, Items):
        forms = [f"{name} like {template.text}" for name, template in source._templates]
        tests = [condition_words(source.where)] if source.where is not None else []
        return f"items {source.name} ({' and '.join((*forms, *tests)) or 'all'})"
    return f"{'event' if isinstance(source, Event) else 'aggregate'} {base_name(source.name)}"


def measure_words(measure: Measure | TimeWeighted, name: str = "") -> str:
    """How a measure counts; its attribute, unless that is its name."""
    if isinstance(measure, Count):
        return "count"
    of = "" if measure.attribute == name else f" of {measure.attribute}"
    if measure.default is not None:
        of += f" or {format_number(measure.default)}"
    if isinstance(measure, Sum):
        return f"sum{of}" + (f", at most {measure.cap} each" if measure.cap is not None else "")
    if isinstance(measure, Histogram):
        return f"histogram{of}, {measure._kind.replace('_', ' ')} {', '.join(map(str, measure._bins))}"
    return f"level{of}" if isinstance(measure, TimeWeighted) else f"average{of}"


def threshold_words(threshold: Threshold) -> str:
    """Levels, and which crossings of them count."""
    levels = ", ".join(map(format_number, threshold.at))
    often = (", the highest" if threshold.burst == "highest" else "") + (", once" if threshold.once else "")
    return f"{threshold.measure} {threshold.direction.replace('both', 'up or down')} at {levels}{often}"


def condition_words(condition: Condition) -> str:
    """A condition as one would write it: ``status = 'paid' and no test``."""
    name, parts = condition.operator, condition.operands
    if name == "or" and len({(part.operator, part.attribute) for part in parts}) == 1 and parts[0].operator == "eq":
        return f"{parts[0].attribute} is one of {', '.join(_literal(part.operands[0]) for part in parts)}"
    if name in ("and", "or"):
        words = [condition_words(part) for part in parts]
        inner = [
            f"({one})" if part.operator in ("and", "or") and part.operator != name else one
            for part, one in zip(parts, words, strict=True)
        ]
        return f" {name} ".join(inner)
    if name == "not":
        denied = condition_words(parts[0])
        return f"no {parts[0].attribute}" if parts[0].operator == "exists" else f"not ({denied})"
    if name == "exists":
        return f"{condition.attribute} exists"
    return f"{condition.attribute} {_COMPARED[name]} {_literal(parts[0])}"


def length_words(length: timedelta) -> str:
    """A length of time in the greatest unit that divides it."""
    seconds = length.total_seconds()
    unit, unit_seconds = next((one for one in _UNITS if seconds and seconds % one[1] == 0), _UNITS[-1])
    times = seconds / unit_seconds
    return f"{times:g} {unit}{'' if times == 1 else 's'}"


def _literal(value: str | int | Decimal | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else format_number(value)


def _details(declaration: Declaration) -> Iterator[str]:
    if isinstance(declaration, Aggregate) and (read := read_by(declaration)) != "get":
        yield _own_words(declaration, read)
    if isinstance(declaration, Aggregate):
        for name, measure in declaration.measures.items() if read == "get" else ():
            yield f"{name} ({measure_words(measure, name)})"
        if declaration.ranking is not None:
            yield f"ranked by {declaration.ranking.measure}"
        if declaration.write_shards > 1:
            yield f"on {declaration.write_shards} write shards"
        if declaration.pages and read == "get":
            yield "in pages"
        if declaration.retention is not None:
            yield f"kept {length_words(declaration.retention)}"
        for each in declaration._thresholds:
            yield f"threshold {each.name} ({threshold_words(each)})"
        return
    tiers = " and ".join(f"{tier.name}s" for tier in declaration._kept_tiers)
    unit = length_words(declaration.precision).split()[-1]
    yield f"{measure_words(declaration.measure)} by {declaration.time} to the {unit} in {tiers}"
    yield f"kept {length_words(declaration.retention)}" if declaration.retention else "kept for good"


def _own_words(aggregate: Aggregate, read: Read) -> str:
    """The sums of an aggregate that only a read of its own understands."""
    first, *others = aggregate._sk_template.fields
    if read == "extremes":
        return f"extremes of {parts_of(first)[0]}{' with ' if others else ''}{', '.join(others)}"
    time, tier, _ = parts_of(first)
    timed = f" by {time} to the {tier}" if aggregate._shelved else ""
    if isinstance(aggregate.source, Aggregate):
        return f"active members{timed}, spans up to {aggregate.source._longest} {tier}s"
    path, derived, _ = parts_of(aggregate._sk_template.fields[-1])
    return f"distribution of {path}, error {derived.removeprefix(LOG)}{timed}"
