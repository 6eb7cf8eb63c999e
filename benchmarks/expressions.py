"""The part of DynamoDB's expressions that the compared designs use, compiled once a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, dict[str, Any]]
Names: TypeAlias = Mapping[str, str]
Values: TypeAlias = Mapping[str, Mapping[str, Any]]
Condition: TypeAlias = Callable[[Item, Names, Values], bool]
Update: TypeAlias = Callable[[Item, Names, Values], None]
_Operand: TypeAlias = Callable[[Item, Names, Values], Mapping[str, Any] | None]

_TOKEN = re.compile(r"[#:]?[A-Za-z_][\w:-]*|<|=|[(),]")
_CLAUSE = re.compile(r"\b(SET|ADD|REMOVE)\b")
_BETWEEN_PARTS = re.compile(r",(?![^(]*\))")


def number(text: str) -> int | Decimal:
    """Read a number exactly."""
    return int(text) if text.lstrip("-").isdigit() else Decimal(text)


@lru_cache(maxsize=1024)
def compile_condition(text: str) -> Condition:
    """Compile a condition of comparisons, ``attribute_(not_)exists``, AND, OR and parentheses."""
    tokens = _TOKEN.findall(text)
    found = _either(tokens)
    if tokens:
        raise ValueError(f"cannot read {tokens} in {text!r}")
    return found


@lru_cache(maxsize=1024)
def compile_update(text: str) -> Update:
    """Compile an update of SET, ADD and REMOVE clauses; it changes the item it is given."""
    parts = _CLAUSE.split(text)
    steps = [
        _STEPS[kind](part.strip())
        for kind, body in zip(parts[1::2], parts[2::2], strict=True)
        for part in _BETWEEN_PARTS.split(body)
    ]

    def update(item: Item, names: Names, values: Values) -> None:
        for step in steps:
            step(item, names, values)

    return update


def _either(tokens: list[str]) -> Condition:
    parts = [_both(tokens)]
    while tokens and tokens[0].upper() == "OR":
        tokens.pop(0)
        parts.append(_both(tokens))
    return lambda item, names, values: any(part(item, names, values) for part in parts)


def _both(tokens: list[str]) -> Condition:
    parts = [_single(tokens)]
    while tokens and tokens[0].upper() == "AND":
        tokens.pop(0)
        parts.append(_single(tokens))
    return lambda item, names, values: all(part(item, names, values) for part in parts)


def _single(tokens: list[str]) -> Condition:
    first = tokens.pop(0)
    if first == "(":
        inner = _either(tokens)
        tokens.pop(0)
        return inner
    if first in ("attribute_exists", "attribute_not_exists"):
        name, wanted = tokens[1], first == "attribute_exists"
        del tokens[:3]
        return lambda item, names, _: (names.get(name, name) in item) is wanted
    compare, right = tokens.pop(0), tokens.pop(0)

    def holds(item: Item, names: Names, values: Values) -> bool:
        found = item.get(names.get(first, first))
        if found is None:
            return False
        one, other = _comparable(found), _comparable(values[right])
        return bool(one < other if compare == "<" else one == other)

    return holds


def _comparable(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return number(content) if kind == "N" else content


def _set(text: str) -> Update:
    target, _, expression = (part.strip() for part in text.partition("="))
    terms = [_operand(term.strip()) for term in expression.split(" + ")]

    def step(item: Item, names: Names, values: Values) -> None:
        found = [term(item, names, values) for term in terms]
        if None in found:
            raise ValueError("The provided expression refers to an attribute that does not exist in the item")
        present = [value for value in found if value is not None]
        item[names.get(target, target)] = (
            dict(present[0]) if len(present) == 1 else {"N": str(sum(number(value["N"]) for value in present))}
        )

    return step


def _operand(text: str) -> _Operand:
    if text.startswith("if_not_exists"):
        name, default = (part.strip() for part in text[len("if_not_exists(") : -1].split(","))
        return lambda item, names, values: item.get(names.get(name, name), values[default])
    if text.startswith(":"):
        return lambda _, __, values: values[text]
    return lambda item, names, _: item.get(names.get(text, text))


def _add(text: str) -> Update:
    name, value = text.split()

    def step(item: Item, names: Names, values: Values) -> None:
        attribute = names.get(name, name)
        known = item.get(attribute)
        added = number(values[value]["N"])
        item[attribute] = {"N": str(added if known is None else number(known["N"]) + added)}

    return step


def _remove(text: str) -> Update:
    def step(item: Item, names: Names, _: Values) -> None:
        item.pop(names.get(text, text), None)

    return step


_STEPS: Mapping[str, Callable[[str], Update]] = {"SET": _set, "ADD": _add, "REMOVE": _remove}
