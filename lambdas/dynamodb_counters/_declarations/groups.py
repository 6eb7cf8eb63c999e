"""Groups: their keys, and what their items say when read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import localcontext
from typing import Any, TypeAlias

from dynamodb_counters._declarations.aggregates import GAP, Aggregate, Window
from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._items.conversions import EXACT, Number, key_text, parse_number, whole
from dynamodb_counters._items.keys import expected_text, is_hashed, parts_of
from dynamodb_counters._items.schema import PK, SK
from dynamodb_counters.errors import InvalidArgumentError


def with_below(declaration: Aggregate | Window) -> Iterator[Aggregate | Window]:
    """A declaration, the aggregate whose groups it counts, and so on down."""
    yield declaration
    if isinstance(declaration.source, Aggregate):
        yield from with_below(declaration.source)


Key: TypeAlias = dict[str, dict[str, str]]

Given: TypeAlias = Mapping[str, object] | None
"""A group as a call states it in one mapping; None if it does so by keyword."""


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
        """One of the measures; those there are, if it is none."""
        if measure not in self.measures:
            raise InvalidArgumentError("measure", measure, f"one of {', '.join(map(repr, self.measures))}")
        return self.measures[measure]


def group_of(
    aggregate: Aggregate,
    values: Mapping[str, object],
    items: Iterable[Mapping[str, Any]],
    complete: bool = True,
) -> Group:
    """The group that typed items hold: one, or several of a sharded aggregate; empty ones count 0."""
    held = list(items)
    with localcontext(EXACT):
        numbers: dict[str, Number] = {
            name: whole(sum(parse_number(item[name]["N"]) for item in held if name in item))
            for name in aggregate._attributes
        }
    return Group(
        {name: key_text(name, values[name]) for name in aggregate.fields},
        {name: measure._read(name, numbers) for name, measure in aggregate.measures.items()},
        complete,
    )


def given(values: object, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Values as a call states them: by keyword, or in one mapping where a name is an option's or no identifier."""
    if values is None:
        return fields
    if fields:
        raise InvalidArgumentError("values", values, "keyword arguments or one mapping, not both")
    if not isinstance(values, Mapping):
        raise InvalidArgumentError("values", values, "a mapping of fields to values")
    return values


def require_values(fields: Iterable[str], values: Iterable[str], cure: str = "") -> None:
    """Refuse fields without a value."""
    fields = tuple(fields)
    for name in fields:
        if name not in values:
            raise InvalidArgumentError(name, None, f"a value for each of {', '.join(fields)}{cure}")


def fields_text(name: str, fields: Iterable[str]) -> str:
    return f"a field of {name!r}: {', '.join(fields) or 'it has none'}"


def canonical_fields(
    declared: Aggregate | Window, fields: Iterable[str], values: object, required: Iterable[str] = ()
) -> dict[str, str]:
    """The texts of fields as keys have them; refuse other fields, missing ones, and texts that they never have."""
    if not isinstance(values, Mapping):
        raise InvalidArgumentError("values", values, "a mapping of fields to values")
    known, texts = tuple(fields), dict[str, str]()
    for field, value in values.items():
        if field not in known:
            raise InvalidArgumentError(field, value, fields_text(declared.name, known))
        texts[field] = _canonical(declared, field, key_text(field, value))
    require_values(required, texts)
    return texts


def _canonical(declared: Aggregate | Window, field: str, text: str) -> str:
    expected = expected_text(field, text)
    if expected is not None:
        raise InvalidArgumentError(field, text, expected)
    path, derived, default = parts_of(field)
    is_gap = field == GAP and isinstance(declared.source, Aggregate) and declared.source._longest > 0
    if derived or text == default or is_gap:
        return text
    *_, counted = with_below(declared)
    source = counted.source
    return source._known.key_text(path, text) if isinstance(source, Event) else text


def values_of(aggregate: Aggregate | Window, item: Mapping[str, Any]) -> dict[str, str] | None:
    """The group of a typed item: field to text; None if the key is hashed and the item lacks the values."""
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
    """The key of a typed item as plain text."""
    return item[PK]["S"], item[SK]["S"]
