"""Whether a typed item has the attributes that its event declares, and the canonical text of each value."""

from __future__ import annotations

import operator
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
from dynamodb_counters._items.event_times import canonical_time
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


def canonical_values(attributes: Mapping[str, Attribute], item: Image, within: str = "") -> dict[str, TypedValue]:
    """The values of a typed item that differ from the Python value's; refuse an item that lacks what is declared."""
    found: dict[str, TypedValue] = {}
    for name, attribute in attributes.items():
        value, path = item.get(name), f"{within}{name}"
        if value is None or (not attribute.required and "NULL" in value):
            if attribute.required:
                raise InvalidArgumentError(path, None, f"{expectation(attribute)}: it is required")
            continue
        canonical = _canonical(path, attribute, value)
        if canonical is not value:
            found[name] = canonical
    return found


def canonical_text(attribute: Attribute, text: str) -> str | None:
    """The text that a value of the attribute has in a key, for any of its texts; None for what is none."""
    if attribute.type not in (int, Decimal):
        return _text(attribute, text) if attribute.type is str else text
    try:
        number = parse_number(text)
    except (ValueError, ArithmeticError):
        return None
    return format_number(number) if _is_number(attribute, number) else None


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


def _canonical(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    """The value as it is stored: itself unless it has a text of its own."""
    kind, _ = _KINDS.get(attribute.type, _NUMBER)
    if kind == "S" and kind in value:
        text = _text(attribute, value[kind])
        if text is not None:
            return value if text == value[kind] else {kind: text}
    elif attribute.type is list and (kind in value or not _SETS.isdisjoint(value)):
        return _canonical_list(path, attribute, value)
    elif kind == "M" and kind in value:
        inner = canonical_values(attribute.attributes or {}, value[kind], f"{path}.")
        return {kind: {**value[kind], **inner}} if inner else value
    elif attribute.type is object or (
        kind in value and (kind != "N" or _is_number(attribute, parse_number(value[kind])))
    ):
        return value
    raise InvalidArgumentError(path, plain_value(value), expectation(attribute))


def _canonical_list(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    [(kind, members)] = value.items()
    if not _has_length(attribute, members):
        raise InvalidArgumentError(path, plain_value(value), " ".join(["a list", *_length_words(attribute)]))
    if attribute.of is None:
        return value
    typed = members if kind == "L" else [{kind[0]: member} for member in members]
    found = [_canonical(f"{path}[{index}]", attribute.of, member) for index, member in enumerate(typed)]
    if all(map(operator.is_, found, typed)):
        return value
    # A set holds no text twice.
    return {kind: found if kind == "L" else list(dict.fromkeys(member[kind[0]] for member in found))}


def _is_number(attribute: Attribute, number: Number) -> bool:
    return (
        (attribute.type is not int or number == int(number))
        and (attribute.minimum is None or number >= attribute.minimum)
        and (attribute.maximum is None or number <= attribute.maximum)
        and (not attribute.one_of or number in attribute.one_of)
    )


def _text(attribute: Attribute, text: str) -> str | None:
    """The canonical text; None for one that is not allowed."""
    is_allowed = (
        (not attribute.one_of or text in attribute.one_of)
        and _has_length(attribute, text)
        and (attribute.pattern is None or re.search(attribute.pattern, text) is not None)
    )
    return None if not is_allowed else text if attribute.format is None else _FORMATS[attribute.format][0](text)


def _has_length(attribute: Attribute, value: Any) -> bool:
    least, most = attribute.min_length, attribute.max_length
    return (least is None or len(value) >= least) and (most is None or len(value) <= most)


def _parsed(parse: Callable[[str], str]) -> Callable[[str], str | None]:
    def parsed(text: str) -> str | None:
        try:
            return parse(text)
        except ValueError:
            return None

    return parsed


def _matched(pattern: str) -> Callable[[str], str | None]:
    match = re.compile(pattern).fullmatch
    return lambda text: text if match(text) else None


def _ipv6(text: str) -> str:
    address = IPv6Address(text)
    # Versions of Python print an IPv4 address within another way.
    is_ipv4 = address.ipv4_mapped is not None and address.scope_id is None
    return f"::ffff:{address.ipv4_mapped}" if is_ipv4 else str(address)


_UUID: Final = _matched(f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")

_FORMATS: Final[dict[str, tuple[Callable[[str], str | None], str]]] = {
    "date": (_parsed(lambda text: date.fromisoformat(text).isoformat()), "an ISO 8601 date such as '2026-11-20'"),
    "date-time": (
        _parsed(canonical_time),
        "an ISO 8601 time with an offset and no leap second, such as '2026-11-20T10:30:00Z'",
    ),
    "email": (_matched(r"[^@\s]{1,64}@[^@\s]{1,255}"), "an email address"),
    "ipv4": (_parsed(lambda text: str(IPv4Address(text))), "an IPv4 address"),
    "ipv6": (_parsed(_ipv6), "an IPv6 address"),
    "uri": (_matched(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "a URI with its scheme"),
    "uuid": (lambda text: text.lower() if _UUID(text) else None, "a UUID of 36 characters"),
}
"""By format: the canonical text of one that has it, None for others; and its words."""
