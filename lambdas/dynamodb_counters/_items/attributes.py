"""Reading an attribute of an item image: by name, through maps, through lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.decimals import Number, format_number, parse_number, require_storable
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS
from dynamodb_counters._timeline.tiers import BY_NAME
from dynamodb_counters.errors import MalformedImageError

Image: TypeAlias = Mapping[str, Mapping[str, Any]]
"""An item as it stands in a stream record: attribute name to ``{type: value}``."""

TypedValue: TypeAlias = Mapping[str, Any]

LIST_MARK: Final = "[]"
TIER_MARK: Final = ":"
"""Between a time and the tier it stands for in a key: ``{at:day}``."""


def reader(path: str, *, literal: bool = False) -> Callable[[Image], TypedValue | None]:
    """Make a function that finds an attribute.

    Parameters
    ----------
    path : str
        Attribute name, or names joined by dots that lead through maps.
    literal : bool, optional
        Whether the path is one name, dots and all, as aggregates have them. Default False.

    Returns
    -------
    callable
        Takes an image, gives the typed value or None.

    Examples
    --------
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


def number_reader(path: str, *, literal: bool = False) -> Callable[[Image], Number]:
    """Make a function that reads a number.

    Parameters
    ----------
    path : str
        As for `reader`.
    literal : bool, optional
        As for `reader`.

    Returns
    -------
    callable
        Takes an image, gives the number; raises `MalformedImageError` where there is none.
    """
    find = reader(path, literal=literal)

    def read_any(image: Image) -> Number:
        text = _present(find(image), path).get("N")
        if text is None:
            raise MalformedImageError(f"attribute {path!r} is no number")
        # An engine that keeps what DynamoDB refuses must not bring the fold's arithmetic down.
        return require_storable(path, parse_number(text))

    if not literal and "." in path:
        return read_any

    def read(image: Image) -> Number:
        # Nearly always a short whole number: this runs for every sum and record.
        try:
            text = image[path]["N"]
            return int(text) if len(text) <= MAX_NUMBER_DIGITS else read_any(image)
        except (KeyError, ValueError):
            return read_any(image)

    return read


def text_reader(path: str, *, literal: bool = False) -> Callable[[Image], str]:
    """Make a function that reads what stands for an attribute in a key.

    Parameters
    ----------
    path : str
        As for `reader`.
    literal : bool, optional
        As for `reader`.

    Returns
    -------
    callable
        Takes an image, gives the text of a string or number; raises `MalformedImageError` for anything else.

    Examples
    --------
    >>> text_reader("at:day")({"at": {"S": "2026-11-20T23:30:00-01:00"}})
    '2026-11-21'
    """
    if TIER_MARK in path and not literal:
        return _bucket_reader(path)
    find = reader(path, literal=literal)

    def read_any(image: Image) -> str:
        return _text(_present(find(image), path), path)

    if not literal and "." in path:
        return read_any

    def read(image: Image) -> str:
        # Nearly always a string: this runs for every field of every aggregate and record.
        try:
            text: str = image[path]["S"]
        except KeyError:
            return read_any(image)
        return text

    return read


def texts_reader(path: str) -> Callable[[Image], list[str]]:
    """Make a function that reads the members of a list or set.

    Parameters
    ----------
    path : str
        As for `reader`, followed by ``[]``.

    Returns
    -------
    callable
        Takes an image, gives the text of each different member; raises `MalformedImageError` for anything else.

    Examples
    --------
    >>> texts_reader("tags[]")({"tags": {"L": [{"S": "a"}, {"S": "b"}, {"S": "a"}]}})
    ['a', 'b']
    """
    find = reader(path.removesuffix(LIST_MARK))

    def read(image: Image) -> list[str]:
        value = _present(find(image), path)
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


def _bucket_reader(path: str) -> Callable[[Image], str]:
    time, _, name = path.partition(TIER_MARK)
    find, tier = reader(time), BY_NAME[name]

    def read(image: Image) -> str:
        return tier.text(tier.place(event_seconds(_present(find(image), time)))[0])

    return read


def _present(value: TypedValue | None, path: str) -> TypedValue:
    if value is None:
        raise MalformedImageError(f"attribute {path!r} is missing")
    return value


def _text(value: TypedValue, path: str) -> str:
    if "S" in value:
        return str(value["S"])
    if "N" in value:
        return format_number(parse_number(value["N"]))
    raise MalformedImageError(f"attribute {path!r} is neither a string nor a number, which a key needs")
