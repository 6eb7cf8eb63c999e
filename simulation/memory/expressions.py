"""DynamoDB's condition and update expressions, compiled once per text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from simulation.memory.typed_values import InvalidValueError, Item, Value, add, comparable, stored

EXPRESSIONS: Final = tuple(
    f"{kind}Expression" for kind in ("Condition", "Update", "KeyCondition", "Filter", "Projection")
)
"""The parameters that hold one."""

Test: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], bool]
Operand: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], Value | None]

_TOKEN: Final = re.compile(r"\s*(?:([#:]?[A-Za-z0-9_]+)|(<>|<=|>=|[=<>(),+-]))")


@dataclass(frozen=True, slots=True)
class Placeholders:
    names: Mapping[str, str]
    values: Mapping[str, Value]

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Placeholders:
        return cls(request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {})

    def name(self, token: str) -> str:
        if not token.startswith("#"):
            return token
        if token not in self.names:
            raise InvalidValueError(f"An expression attribute name used in the expression is not defined: {token}")
        return str(self.names[token])

    def value(self, token: str) -> Value:
        if token not in self.values:
            raise InvalidValueError(f"An expression attribute value used in the expression is not defined: {token}")
        return self.values[token]


@lru_cache(maxsize=4096)
def used(*texts: str) -> frozenset[str]:
    """Return the placeholders that some expressions use, with their ``#`` or ``:``."""
    return frozenset(token for text in texts for token in re.findall(r"[#:][A-Za-z0-9_]+", text))


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Test:
    """Return a function of an item (empty if there is none) and placeholders."""
    return _Parser(text).condition()


def matcher(request: Mapping[str, Any], name: str) -> Callable[[Item], bool]:
    """Return the test of items that one of a request's expressions is; all match if it has none."""
    if name not in request:
        return lambda _: True
    test, bindings = compile_condition(request[name]), Placeholders.of(request)
    return lambda item: test(item, bindings)


@lru_cache(maxsize=4096)
def compile_update(text: str) -> tuple[tuple[str, Operand], ...]:
    """Return the token of each changed attribute, and its new value (None: removed) by the old item."""
    return tuple(_Parser(text).changes())


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [word or sign for word, sign in _TOKEN.findall(text)]
        if "".join(self._tokens) != "".join(text.split()):
            raise InvalidValueError(f"Invalid expression: {text}")
        self._index = 0

    def condition(self) -> Test:
        test = self._disjunction()
        if self._more():
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {self._tokens[self._index]!r}")
        return test

    def changes(self) -> Iterable[tuple[str, Operand]]:
        while self._more():
            clause = self._next().upper()
            while True:
                target = self._next()
                yield target, self._new_value(clause, target)
                if not self._take(","):
                    break

    def _more(self) -> bool:
        return self._index < len(self._tokens)

    def _next(self) -> str:
        if not self._more():
            raise InvalidValueError("Invalid expression: Syntax error; token: <EOF>")
        self._index += 1
        return self._tokens[self._index - 1]

    def _take(self, token: str) -> bool:
        if self._more() and self._tokens[self._index].upper() == token:
            self._index += 1
            return True
        return False

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise InvalidValueError(f"Invalid expression: Syntax error; expected: {token!r}")

    def _operand(self) -> Operand:
        return _operand(self._next())

    def _joined(self, word: str, combine: Callable[[Iterable[bool]], bool], next_part: Callable[[], Test]) -> Test:
        parts = [next_part()]
        while self._take(word):
            parts.append(next_part())
        return parts[0] if len(parts) == 1 else lambda item, bindings: combine(part(item, bindings) for part in parts)

    def _disjunction(self) -> Test:
        return self._joined("OR", any, partial(self._joined, "AND", all, self._negation))

    def _negation(self) -> Test:
        if self._take("NOT"):
            inner = self._negation()
            return lambda item, bindings: not inner(item, bindings)
        if self._take("("):
            inner = self._disjunction()
            self._need(")")
            return inner
        return self._test()

    def _test(self) -> Test:
        word = self._next()
        if self._take("("):
            return self._function(word)
        operand, sign = _operand(word), self._next()
        other = self._operand()
        if sign == "BETWEEN":
            self._need("AND")
            low, high = _both(_ORDER[">="], operand, other), _both(_ORDER["<="], operand, self._operand())
            return lambda item, bindings: low(item, bindings) and high(item, bindings)
        if sign == "<>":
            equal = _both(_ORDER["="], operand, other)
            return lambda item, bindings: not equal(item, bindings)
        if sign not in _ORDER:
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {sign!r}")
        return _both(_ORDER[sign], operand, other)

    def _function(self, name: str) -> Test:
        path = self._next()
        if name in ("attribute_exists", "attribute_not_exists"):
            self._need(")")
            expected = name == "attribute_exists"
            return lambda item, bindings: (bindings.name(path) in item) is expected
        if name not in _HOLDS:
            raise InvalidValueError(f"Invalid expression: function {name} is not known here")
        self._need(",")
        test = _both(_HOLDS[name], _operand(path), self._operand())
        self._need(")")
        return test

    def _new_value(self, clause: str, target: str) -> Operand:
        if clause == "REMOVE":
            return lambda _, __: None
        if clause == "ADD":
            added = self._next()
            return lambda old, bindings: _sum(old.get(bindings.name(target), {"N": "0"}), bindings.value(added))
        if clause != "SET":
            raise InvalidValueError(f"Invalid UpdateExpression: Syntax error; token: {clause!r}")
        self._need("=")
        source = self._source()
        sign = "+" if self._take("+") else "-" if self._take("-") else ""
        if not sign:
            return lambda old, bindings: _present(source(old, bindings))
        other = self._source()
        return lambda old, bindings: _sum(source(old, bindings), other(old, bindings), negated=sign == "-")

    def _source(self) -> Operand:
        word = self._next()
        if word != "if_not_exists":
            return _operand(word)
        self._need("(")
        path = self._operand()
        self._need(",")
        default = self._operand()
        self._need(")")
        return lambda item, bindings: path(item, bindings) or default(item, bindings)


def require_update(request: Mapping[str, Any]) -> None:
    """Refuse an update for what it says, whatever item it meets."""
    bindings = Placeholders.of(request)
    for value in bindings.values.values():
        stored(value)
    names = [name for name, _ in _changes(request, bindings)]
    if len(set(names)) < len(names):
        raise InvalidValueError("Invalid UpdateExpression: Two document paths overlap with each other")


def _changes(request: Mapping[str, Any], bindings: Placeholders) -> list[tuple[str, Operand]]:
    return [(bindings.name(token), value) for token, value in compile_update(request["UpdateExpression"])]


def apply_update(request: Mapping[str, Any], keys: tuple[str, ...], old: Item) -> Item:
    """Return the item a request makes of another; every operand is read from the old one."""
    bindings = Placeholders.of(request)
    new = dict(old)
    changes = _changes(request, bindings)
    if any(name in keys for name, _ in changes):
        raise InvalidValueError("Cannot update attribute. This attribute is part of the key")
    for name, value in changes:
        if (result := value(old, bindings)) is None:
            new.pop(name, None)
        else:
            new[name] = result
    return new


def _operand(token: str) -> Operand:
    if token.startswith(":"):
        return lambda _, bindings: bindings.value(token)
    return lambda item, bindings: item.get(bindings.name(token))


def _both(holds: Callable[[Value, Value], bool], operand: Operand, other: Operand) -> Test:
    def test(item: Mapping[str, Any], bindings: Placeholders) -> bool:
        first, second = operand(item, bindings), other(item, bindings)
        return first is not None and second is not None and holds(first, second)

    return test


def _compare(order: Callable[[Any, Any], bool], first: Value, second: Value) -> bool:
    if "S" in first and "S" in second:
        return order(first["S"], second["S"])
    (kind, content), (other, operand) = comparable(first), comparable(second)
    return kind == other and order(content, operand)


def _contains(first: Value, second: Value) -> bool:
    (kind, content), (other, operand) = comparable(first), comparable(second)
    if kind == "L":
        return (other, operand) in content
    return (kind == f"{other}S" or kind == other in ("S", "B")) and operand in content


_SIGNS: Final = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ORDER: Final = {sign: partial(_compare, order) for sign, order in _SIGNS.items()}
_HOLDS: Final[Mapping[str, Callable[[Value, Value], bool]]] = {
    "begins_with": lambda value, start: [*value] == [*start] and next(iter(value.values())).startswith(*start.values()),
    "contains": _contains,
    "attribute_type": lambda value, kind: [*value] == [kind.get("S")],
}


def _present(value: Value | None) -> Value:
    if value is None:
        raise InvalidValueError("The provided expression refers to an attribute that does not exist in the item")
    return stored(value)


def _sum(first: Value | None, second: Value | None, *, negated: bool = False) -> Value:
    if first is None or second is None or "N" not in first or "N" not in second:
        raise InvalidValueError("An operand in the update expression has an incorrect data type")
    text = second["N"]
    return {"N": add(first["N"], (text[1:] if text.startswith("-") else f"-{text}") if negated else text)}
