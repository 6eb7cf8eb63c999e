"""Aggregates by brute force over the items there are: no fold, no deltas, nothing of the runtime's code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from dynamodb_counters import Aggregate, Average, Condition, Count, Event, Histogram, Items, Sum

Row = Mapping[str, Any]
Groups = dict[tuple[str, ...], dict[str, Any]]


def count(
    aggregate: Aggregate,
    live: Sequence[tuple[Event | Items, Row]],
    expired: Sequence[tuple[Event | Items, Row]],
) -> Groups:
    """Evaluate an aggregate over items that are there, and those that TTL deleted."""
    source = aggregate.source
    literal = isinstance(source, Aggregate)
    if isinstance(source, Aggregate):
        rows = [row for row in _rows(source, count(source, live, expired)) if row]
    else:
        assert isinstance(source, Event | Items)
        kept = expired if aggregate.on_expiry == "keep" else []
        rows = [row for origin, row in (*live, *kept) if _belongs(source, origin, row)]
    members: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if aggregate.where is None or holds(aggregate.where, row, literal):
            for group in _groups(fields(aggregate), row, literal):
                members[group].append(row)
    return {
        group: {name: _measure(measure, rows, literal) for name, measure in aggregate.measures.items()}
        for group, rows in members.items()
    }


def fields(aggregate: Aggregate) -> list[str]:
    """Give the names in braces, in their order."""
    return list(dict.fromkeys(re.findall(r"\{([^}]+)\}", f"{aggregate.pk} {aggregate.sk}")))


def attributes(aggregate: Aggregate) -> list[str]:
    """Give the names under which others see its numbers."""
    return [name for name, _ in _numbers(aggregate, None)]


def holds(condition: Condition, row: Row, literal: bool) -> bool:
    parts = condition.operands
    if condition.attribute is None:
        results = [holds(part, row, literal) for part in parts]
        return {"and": all(results), "or": any(results), "not": not results[0]}[condition.operator]
    value = _find(row, condition.attribute, literal)
    if condition.operator == "exists":
        return value is not None
    [operand] = parts
    if value is None or isinstance(value, str) != isinstance(operand, str):
        return condition.operator == "ne"
    if not isinstance(operand, str):
        value, operand = Fraction(value), Fraction(operand)
    orders: dict[str, bool] = {
        "eq": value == operand,
        "ne": value != operand,
        "lt": value < operand,
        "le": value <= operand,
        "gt": value > operand,
        "ge": value >= operand,
    }
    return orders[condition.operator]


def text(value: Any) -> str:
    """Write a value as it stands in a key."""
    if isinstance(value, str):
        return value
    number = Fraction(value)
    if number.denominator == 1:
        return str(number.numerator)
    return format(Decimal(number.numerator) / Decimal(number.denominator), "f")


def _belongs(source: Event | Items, origin: Event | Items, row: Row) -> bool:
    if isinstance(source, Event):
        return source.name == origin.name
    return isinstance(origin, Items) and (source.where is None or holds(source.where, row, literal=False))


def _find(row: Row, path: str, literal: bool) -> Any:
    if literal:
        return row.get(path)
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _groups(names: Iterable[str], row: Row, literal: bool) -> list[tuple[str, ...]]:
    choices: list[list[str]] = []
    for name in names:
        if name.endswith("[]") and not literal:
            choices.append(sorted({text(member) for member in _find(row, name[:-2], literal)}))
        elif literal:
            choices.append([text(_find(row, name, literal))])
        else:
            choices.append([_derived(row, name)])
    return list(product(*choices))


def _derived(row: Row, field: str) -> str:
    marked, _, default = field.partition("?")
    path, _, how = marked.partition(":")
    value = _find(row, path, literal=False)
    if value is None:
        return default
    if not how:
        return text(value)
    return f"{text(value)[0]}xx"


def _measure(measure: Any, rows: Sequence[Row], literal: bool) -> Any:
    if isinstance(measure, Count):
        return len(rows)
    found = (_find(row, measure.attribute, literal) for row in rows)
    values = [Fraction(measure.default if value is None else value) for value in found]
    if isinstance(measure, Sum):
        return sum(value if measure.cap is None else min(value, Fraction(measure.cap)) for value in values)
    if isinstance(measure, Average):
        return (sum(values), len(values))
    if measure.exactly:
        return {bound: values.count(Fraction(bound)) for bound in measure.exactly}
    limits = [*measure.bounds, float("inf")]
    below = {f"<{text(limits[0])}": sum(value < limits[0] for value in values)}
    return below | {low: sum(low <= value < high for value in values) for low, high in pairwise(limits)}


def _rows(aggregate: Aggregate, groups: Groups) -> Iterable[Row]:
    for group, measures in groups.items():
        numbers = dict(_numbers(aggregate, measures))
        # A group that came to nothing is none.
        if any(numbers.values()):
            yield {**dict(zip(fields(aggregate), group, strict=True)), **numbers}


def _numbers(aggregate: Aggregate, measures: Mapping[str, Any] | None) -> Iterable[tuple[str, Any]]:
    for name, measure in aggregate.measures.items():
        value = measures[name] if measures is not None else None
        if isinstance(measure, Average):
            total, number = value or (0, 0)
            yield from ((f"{name}.sum", total), (f"{name}.count", number))
        elif isinstance(measure, Histogram):
            below = [f"<{text(measure.bounds[0])}"] if measure.bounds else []
            bins = [*below, *measure.exactly, *measure.bounds]
            yield from ((f"{name}.{text(bound)}", value[bound] if value else 0) for bound in bins)
        else:
            yield name, value or 0
