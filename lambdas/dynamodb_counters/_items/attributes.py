"""Reading an attribute of an item image: by name, through maps, through lists.

A path is an attribute name, or names joined by dots that lead through maps. It is one `literal` name, dots and all,
where an aggregate's items are read. Readers raise `MalformedImageError` for an image without a usable attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.decimals import Number, format_number, parse_number, require_storable
from dynamodb_counters._items.derived_fields import DEFAULT_MARK, DERIVED_MARK, derivation, parts_of
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS
from dynamodb_counters.errors import MalformedImageError

Image: TypeAlias = Mapping[str, Mapping[str, Any]]
"""An item as a stream record holds it: attribute name to ``{type: value}``."""

TypedValue: TypeAlias = Mapping[str, Any]

LIST_MARK: Final = "[]"


def is_plain(field: str) -> bool:
    """Whether a field is an attribute of the item as it is."""
    return not any(mark in field for mark in (".", LIST_MARK, DERIVED_MARK, DEFAULT_MARK))


def reader(path: str, *, literal: bool = False) -> Callable[[Image], TypedValue | None]:
    """A function that finds an attribute's typed value, or None.

    >>> reader("address.city")({"address": {"M": {"city": {"S": "Oslo"}}}})
    {'S': 'Oslo'}
    """
    first, *rest = [path] if literal else path.split(".")
    if not rest:
        return lambda image: image.get(first)

    def read(image: Image) -> TypedValue | None:
        value = image.get(first)
        for name in rest:
            value = value.get("M", {}).get(name) if value is not None else None
        return value

    return read


def number_reader(path: str, *, literal: bool = False, default: Number | None = None) -> Callable[[Image], Number]:
    find = reader(path, literal=literal)

    def read_any(image: Image) -> Number:
        value = find(image)
        if default is not None and is_absent(value):
            return default
        text = present(value, path).get("N")
        if text is None:
            raise MalformedImageError(f"attribute {path!r} is not a number")
        # Emulators store numbers that DynamoDB refuses; the fold's arithmetic could not take them.
        return require_storable(path, parse_number(text))

    if not literal and "." in path:
        return read_any

    def read(image: Image) -> Number:
        # Hot path, runs for every sum and record: nearly always a short whole number.
        try:
            text = image[path]["N"]
            return int(text) if len(text) <= MAX_NUMBER_DIGITS else read_any(image)
        except (KeyError, ValueError):
            return read_any(image)

    return read


def text_reader(path: str, *, literal: bool = False) -> Callable[[Image], str]:
    """A function that reads the text a string or number has in a key, or what is derived of it.

    >>> text_reader("at:day")({"at": {"S": "2026-11-20T23:30:00-01:00"}}), text_reader("plan?none")({})
    ('2026-11-21', 'none')
    """
    if not literal and (DERIVED_MARK in path or DEFAULT_MARK in path):
        return _derived_reader(path)
    find = reader(path, literal=literal)

    def read_any(image: Image) -> str:
        return _text(present(find(image), path), path)

    if not literal and "." in path:
        return read_any

    def read(image: Image) -> str:
        # Hot path, runs for every field, aggregate and record: nearly always a string.
        try:
            text: str = image[path]["S"]
        except KeyError:
            return read_any(image)
        return text

    return read


def texts_reader(path: str) -> Callable[[Image], list[str]]:
    """A function that reads the text of each different member of a list or set; the path ends in ``[]``.

    >>> texts_reader("tags[]")({"tags": {"L": [{"S": "a"}, {"S": "b"}, {"S": "a"}]}})
    ['a', 'b']
    """
    find = reader(path.removesuffix(LIST_MARK))

    def read(image: Image) -> list[str]:
        value = present(find(image), path)
        if "L" in value:
            texts = [_text(member, path) for member in value["L"]]
        elif "SS" in value:
            texts = list(value["SS"])
        elif "NS" in value:
            texts = [format_number(parse_number(text)) for text in value["NS"]]
        else:
            raise MalformedImageError(f"attribute {path!r} is neither a list nor a set of strings or numbers")
        return list(dict.fromkeys(texts))

    return read


def _derived_reader(field: str) -> Callable[[Image], str]:
    path, name, default = parts_of(field)
    find, derived = reader(path), derivation(name)

    def read(image: Image) -> str:
        value = find(image)
        if default is not None and is_absent(value):
            return default
        there = present(value, path)
        return _text(there, path) if derived is None else derived.text(there)

    return read


def is_absent(value: TypedValue | None) -> bool:
    """Whether an item lacks an attribute: it is missing, or null."""
    return value is None or "NULL" in value


def present(value: TypedValue | None, path: str) -> TypedValue:
    if value is None:
        raise MalformedImageError(f"attribute {path!r} is missing")
    return value


def _text(value: TypedValue, path: str) -> str:
    if "S" in value:
        return str(value["S"])
    if "N" in value:
        return format_number(parse_number(value["N"]))
    raise MalformedImageError(f"attribute {path!r} is neither a string nor a number, which a key needs")
