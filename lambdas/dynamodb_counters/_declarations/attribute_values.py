"""Whether a typed item has the attributes that its event declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.attributes import Image, TypedValue
from dynamodb_counters._items.conversions import plain_value
from dynamodb_counters._items.decimals import Number, format_number, parse_number
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters.errors import InvalidArgumentError

_HEX: Final = "[0-9A-Fa-f]"
_KINDS: Final[dict[Any, tuple[str, str]]] = {
    str: ("S", "a string"),
    int: ("N", "a whole number"),
    bool: ("BOOL", "true or false"),
    bytes: ("B", "binary"),
    dict: ("M", "a map"),
    list: ("L", "a list"),
    object: ("", "any value"),
}
_NUMBER: Final = ("N", "a number")
_SETS: Final = frozenset(("SS", "NS", "BS"))


def require_attributes(attributes: Mapping[str, Attribute], item: Image, within: str = "") -> None:
    """Refuse a typed item that lacks what its event declares; an InvalidArgumentError names the attribute."""
    for name, attribute in attributes.items():
        value, path = item.get(name), f"{within}{name}"
        if value is None or (not attribute.required and "NULL" in value):
            if attribute.required:
                raise InvalidArgumentError(path, None, f"{expectation(attribute)}: it is required")
            continue
        _require(path, attribute, value)


def expectation(attribute: Attribute) -> str:
    """Values that are allowed, in words."""
    if attribute.one_of:
        choices = (repr(one) if isinstance(one, str) else format_number(one) for one in attribute.one_of)
        return "one of " + ", ".join(choices)
    if attribute.format is not None:
        return _FORMATS[attribute.format][1]
    if attribute.type is list:
        return "a list" if attribute.of is None else f"a list, each {expectation(attribute.of)}"
    parts = [_KINDS.get(attribute.type, _NUMBER)[1]]
    if attribute.pattern is not None:
        parts.append(f"that matches {attribute.pattern!r}")
    for limit, word in ((attribute.minimum, "least"), (attribute.maximum, "most")):
        if limit is not None:
            parts.append(f"of at {word} {format_number(limit)}")
    return " ".join((*parts, *_length_words(attribute)))


def _length_words(attribute: Attribute) -> list[str]:
    limits = ((attribute.min_length, "least"), (attribute.max_length, "most"))
    unit = "members" if attribute.type is list else "characters"
    return [f"of at {word} {limit} {unit}" for limit, word in limits if limit is not None]


def _require(path: str, attribute: Attribute, value: TypedValue) -> None:
    if not _is_allowed(attribute, value):
        raise InvalidArgumentError(path, plain_value(value), expectation(attribute))
    if attribute.type is list:
        [(kind, members)] = value.items()
        if not _has_length(attribute, members):
            raise InvalidArgumentError(path, plain_value(value), " ".join(["a list", *_length_words(attribute)]))
        for index, member in enumerate(members if attribute.of is not None else ()):
            _require(f"{path}[{index}]", attribute.of, member if kind == "L" else {kind[0]: member})
    elif attribute.type is dict and attribute.attributes is not None:
        require_attributes(attribute.attributes, value["M"], f"{path}.")


def _is_allowed(attribute: Attribute, value: TypedValue) -> bool:
    kind, _ = _KINDS.get(attribute.type, _NUMBER)
    if kind not in value:
        return attribute.type is object or (attribute.type is list and not _SETS.isdisjoint(value))
    if kind == "N":
        return _is_number(attribute, parse_number(value["N"]))
    return kind != "S" or _is_text(attribute, value["S"])


def _is_number(attribute: Attribute, number: Number) -> bool:
    return (
        (attribute.type is not int or number == int(number))
        and (attribute.minimum is None or number >= attribute.minimum)
        and (attribute.maximum is None or number <= attribute.maximum)
        and (not attribute.one_of or number in attribute.one_of)
    )


def _is_text(attribute: Attribute, text: str) -> bool:
    return (
        (not attribute.one_of or text in attribute.one_of)
        and _has_length(attribute, text)
        and (attribute.pattern is None or re.search(attribute.pattern, text) is not None)
        and (attribute.format is None or _FORMATS[attribute.format][0](text) is not None)
    )


def has_text(attribute: Attribute, text: str) -> bool:
    """Whether a value of the attribute has this text in a key."""
    if attribute.type not in (int, Decimal):
        return attribute.type is not str or _is_text(attribute, text)
    try:
        number = parse_number(text)
    except (ValueError, ArithmeticError):
        return False
    return format_number(number) == text and _is_number(attribute, number)


def _has_length(attribute: Attribute, value: Any) -> bool:
    least, most = attribute.min_length, attribute.max_length
    return (least is None or len(value) >= least) and (most is None or len(value) <= most)


def _parsed(parse: Callable[[str], object]) -> Callable[[str], object]:
    def parsed(text: str) -> object:
        try:
            return parse(text)
        except ValueError:
            return None

    return parsed


_FORMATS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "date": (_parsed(date.fromisoformat), "an ISO 8601 date such as '2026-11-20'"),
    "date-time": (
        _parsed(lambda text: event_seconds({"S": text})),
        "an ISO 8601 time with an offset, such as '2026-11-20T10:30:00Z'",
    ),
    "email": (re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}").fullmatch, "an email address"),
    "ipv4": (_parsed(IPv4Address), "an IPv4 address"),
    "ipv6": (_parsed(IPv6Address), "an IPv6 address"),
    "uri": (re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+").fullmatch, "a URI with its scheme"),
    "uuid": (re.compile(f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}").fullmatch, "a UUID of 36 characters"),
}
"""By format: what a text is that has it, None for others; and its words."""
