"""Groups: their keys, and what their items say when read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import localcontext
from typing import Any, TypeAlias, cast

from dynamodb_counters._declarations.aggregates import GAP, Aggregate, Window
from dynamodb_counters._declarations.checks import require
from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._items.conversions import EXACT, Number, key_text, parse_number, whole
from dynamodb_counters._items.keys import expected_text, is_hashed, parts_of
from dynamodb_counters._items.schema import PK, SK

Key: TypeAlias = dict[str, dict[str, str]]
Given: TypeAlias = Mapping[str, object] | None  # A group that a call states in one mapping; None: by keyword.


def with_below(declaration: Aggregate | Window) -> Iterator[Aggregate | Window]:
    """Yield a declaration, the aggregate whose groups it counts, and so on down."""
    yield declaration
    if isinstance(declaration.source, Aggregate):
        yield from with_below(declaration.source)


@dataclass(frozen=True, slots=True)
class Group:
    """One group of an aggregate, as it is now.

    Parameters
    ----------
    values : mapping of str to str
        The group: field to text.
    measures : mapping of str to int, Decimal, mapping or None
        All measures by name: 0 if nothing was counted, None for an average of nothing; a histogram maps bins to counts.
    complete : bool, optional
        Whether all there is has been counted: not before a backfill has ended, or a deployment counts. Default True.
    """

    values: Mapping[str, str]
    measures: Mapping[str, Any]
    complete: bool = True

    def __getitem__(self, measure: str) -> Any:
        """Return a measure; InvalidArgumentError, which lists them, for another name."""
        require(measure in self.measures, "measure", measure, f"one of {', '.join(map(repr, self.measures))}")
        return self.measures[measure]


def group_of(
    aggregate: Aggregate, values: Mapping[str, object], items: Iterable[Mapping[str, Any]], complete: bool = True
) -> Group:
    """Return the group in typed items: one, or several of a sharded aggregate; empty ones count 0."""
    items, numbers = list(items), dict[str, Number]()
    with localcontext(EXACT):
        for name in aggregate._attributes:
            numbers[name] = whole(sum(parse_number(item[name]["N"]) for item in items if name in item))
    group = {name: key_text(name, values[name]) for name in aggregate.fields}
    return Group(group, {name: measure._read(name, numbers) for name, measure in aggregate.measures.items()}, complete)


def given(values: Any, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return values as a call states them: by keyword, or in one mapping, as a name may be an option's, or any text."""
    if values is None:
        return fields
    require(not fields, "values", values, "keyword arguments or one mapping, not both")
    require(isinstance(values, Mapping), "values", values, "a mapping of fields to values")
    return cast("Mapping[str, object]", values)


def require_values(fields: Collection[str], values: Collection[str], cure: str = "") -> None:
    for name in fields:
        require(name in values, name, None, f"a value for each of {', '.join(fields)}{cure}")


def fields_text(name: str, fields: Iterable[str]) -> str:
    return f"a field of {name!r}: {', '.join(fields) or 'it has none'}"


def canonical_fields(
    declaration: Aggregate | Window, fields: Iterable[str], values: Any, required: Iterable[str] = ()
) -> dict[str, str]:
    """Return the texts of fields as keys have them; refuse other fields, missing ones, and texts that none has."""
    require(isinstance(values, Mapping), "values", values, "a mapping of fields to values")
    *_, root = with_below(declaration)
    source, names, texts = root.source, tuple(fields), dict[str, str]()
    for field, value in values.items():
        require(field in names, field, value, fields_text(declaration.name, names))
        texts[field] = text = key_text(field, value)
        expected = expected_text(field, text)
        require(expected is None, field, text, str(expected))
        path, derivation, default = parts_of(field)
        is_gap = field == GAP and isinstance(declaration.source, Aggregate) and declaration.source._longest > 0
        if isinstance(source, Event) and not derivation and text != default and not is_gap:
            texts[field] = source._vocabulary.key_text(path, text)
    require_values(tuple(required), texts)
    return texts


def values_of(aggregate: Aggregate | Window, item: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the group of a typed item, field to text; None if the key is hashed and the item lacks the values."""
    values: dict[str, str] = {}
    for name, template in ((PK, aggregate._pk_template), (SK, aggregate._sk_template)):
        key = item[name]["S"]
        if not is_hashed(key):
            values |= template.parse(key)
    values |= {name: item[name]["S"] for name in aggregate.fields if name not in values and name in item}
    return {name: values[name] for name in aggregate.fields} if values.keys() >= set(aggregate.fields) else None


def group_key(aggregate: Aggregate, values: Mapping[str, object]) -> tuple[str, ...]:
    require_values(aggregate.fields, values, "; groups() lists them")
    return tuple(key_text(name, values[name]) for name in aggregate.fields)


def typed_key(key: Mapping[str, str]) -> Key:
    return {PK: {"S": key[PK]}, SK: {"S": key[SK]}}


def identity(item: Mapping[str, Any]) -> tuple[str, str]:
    return item[PK]["S"], item[SK]["S"]
