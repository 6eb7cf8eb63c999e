"""DynamoDB's condition and update expressions, compiled once a text into functions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from tests.harness.values import InvalidValueError, Item, Value, add, comparable, stored

Test: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], bool]
Operand: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], Value | None]
Step: TypeAlias = Callable[[Mapping[str, Any], Item, "Placeholders"], None]

_TOKEN: Final = re.compile(r"\s*(?:([#:]?[A-Za-z0-9_]+)|(<>|<=|>=|[=<>(),+-]))")
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Placeholders:
    """What the placeholders of an expression stand for.

    Parameters
    ----------
    names : mapping
        ``#name`` to attribute name.
    values : mapping
        ``:name`` to typed value.
    """

    names: Mapping[str, str]
    values: Mapping[str, Value]

    def name(self, token: str) -> str:
        """Give the attribute a token names."""
        if not token.startswith("#"):
            return token
        if token not in self.names:
            raise InvalidValueError(f"An expression attribute name used in the expression is not defined: {token}")
        return str(self.names[token])

    def value(self, token: str) -> Value:
        """Give the value a token stands for."""
        if token not in self.values:
            raise InvalidValueError(f"An expression attribute value used in the expression is not defined: {token}")
        return self.values[token]


@dataclass(frozen=True, slots=True)
class Update:
    """A compiled update expression.

    Parameters
    ----------
    steps : tuple
        What it does, one an attribute.
    targets : tuple of str
        Tokens of the attributes it changes.
    """

    steps: tuple[Step, ...]
    targets: tuple[str, ...]

    def apply(self, old: Mapping[str, Any], placeholders: Placeholders) -> Item:
        """Make the new item. Every operand is read from the old one."""
        names = [placeholders.name(token) for token in self.targets]
        if len(set(names)) < len(names):
            raise InvalidValueError("Invalid UpdateExpression: Two document paths overlap with each other")
        new = dict(old)
        for step in self.steps:
            step(old, new, placeholders)
        return new


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Test:
    """Compile a condition expression.

    Parameters
    ----------
    text : str
        The expression.

    Returns
    -------
    callable
        Takes an item (empty if there is none) and placeholders.
    """
    parser = _Parser(text)
    test = parser.disjunction()
    parser.expect_end()
    return test


@lru_cache(maxsize=4096)
def compile_update(text: str) -> Update:
    """Compile an update expression of SET, ADD and REMOVE clauses.

    Parameters
    ----------
    text : str
        The expression.

    Returns
    -------
    Update
        Ready to apply.
    """
    return _Parser(text).update()


@lru_cache(maxsize=4096)
def used(*texts: str) -> frozenset[str]:
    """Give the placeholders some expressions use.

    Parameters
    ----------
    *texts : str
        Expressions.

    Returns
    -------
    frozenset of str
        With their ``#`` or ``:``.
    """
    return frozenset(token for text in texts for token in re.findall(r"[#:][A-Za-z0-9_]+", text))


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [word or sign for word, sign in _TOKEN.findall(text)]
        if "".join(self._tokens) != "".join(text.split()):
            raise InvalidValueError(f"Invalid expression: {text}")
        self._place = 0

    def expect_end(self) -> None:
        if self._place < len(self._tokens):
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {self._tokens[self._place]!r}")

    def disjunction(self) -> Test:
        parts = [self._conjunction()]
        while self._take("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda item, given: any(part(item, given) for part in parts)

    def _conjunction(self) -> Test:
        parts = [self._negation()]
        while self._take("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else lambda item, given: all(part(item, given) for part in parts)

    def _negation(self) -> Test:
        if self._take("NOT"):
            inner = self._negation()
            return lambda item, given: not inner(item, given)
        if self._take("("):
            inner = self.disjunction()
            self._need(")")
            return inner
        return self._test()

    def _test(self) -> Test:
        word = self._next()
        if self._take("("):
            return self._function(word)
        left = _operand(word)
        sign = self._next()
        if sign == "BETWEEN":
            low = _operand(self._next())
            self._need("AND")
            high = _operand(self._next())
            return lambda item, given: (
                _compare(operator.ge, left(item, given), low(item, given))
                and _compare(operator.le, left(item, given), high(item, given))
            )
        right = _operand(self._next())
        if sign == "<>":
            return lambda item, given: not _compare(operator.eq, left(item, given), right(item, given))
        if sign not in _ORDER:
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {sign!r}")
        order = _ORDER[sign]
        return lambda item, given: _compare(order, left(item, given), right(item, given))

    def _function(self, name: str) -> Test:
        path = self._next()
        if name in ("attribute_exists", "attribute_not_exists"):
            self._need(")")
            wanted = name == "attribute_exists"
            return lambda item, given: (given.name(path) in item) is wanted
        if name == "begins_with":
            self._need(",")
            left, right = _operand(path), _operand(self._next())
            self._need(")")
            return lambda item, given: _begins(left(item, given), right(item, given))
        raise InvalidValueError(f"Invalid expression: function {name} is not known here")

    def update(self) -> Update:
        steps: list[Step] = []
        targets: list[str] = []
        while self._place < len(self._tokens):
            clause = self._next().upper()
            while True:
                targets.append(self._next())
                steps.append(self._step(clause, targets[-1]))
                if not self._take(","):
                    break
        return Update(tuple(steps), tuple(targets))

    def _step(self, clause: str, target: str) -> Step:
        if clause == "REMOVE":
            return lambda _, new, given: _remove(new, given.name(target))
        if clause == "ADD":
            added = self._next()
            return lambda old, new, given: _add(old, new, given.name(target), given.value(added))
        if clause != "SET":
            raise InvalidValueError(f"Invalid UpdateExpression: Syntax error; token: {clause!r}")
        self._need("=")
        source = self._source()
        sign = "+" if self._take("+") else "-" if self._take("-") else ""
        if not sign:
            return lambda old, new, given: _set(new, given.name(target), source(old, given))
        other = self._source()
        return lambda old, new, given: _set(
            new, given.name(target), _sum(source(old, given), other(old, given), negated=sign == "-")
        )

    def _source(self) -> Operand:
        word = self._next()
        if word != "if_not_exists":
            return _operand(word)
        self._need("(")
        path = _operand(self._next())
        self._need(",")
        default = _operand(self._next())
        self._need(")")
        return lambda item, given: path(item, given) or default(item, given)

    def _next(self) -> str:
        if self._place >= len(self._tokens):
            raise InvalidValueError("Invalid expression: Syntax error; token: <EOF>")
        self._place += 1
        return str(self._tokens[self._place - 1])

    def _take(self, token: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place].upper() == token:
            self._place += 1
            return True
        return False

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise InvalidValueError(f"Invalid expression: Syntax error; expected: {token!r}")


def _operand(token: str) -> Operand:
    if token.startswith(":"):
        return lambda _, given: given.value(token)
    return lambda item, given: item.get(given.name(token))


def _compare(order: Callable[[Any, Any], bool], one: Value | None, two: Value | None) -> bool:
    if one is None or two is None:
        return False
    (kind, left), (other, right) = comparable(one), comparable(two)
    return kind == other and order(left, right)


def _begins(one: Value | None, two: Value | None) -> bool:
    return one is not None and two is not None and str(one.get("S", "")).startswith(str(two["S"])) and "S" in one


def _set(new: Item, name: str, value: Value | None) -> None:
    if value is None:
        raise InvalidValueError("The provided expression refers to an attribute that does not exist in the item")
    new[name] = stored(value)


def _add(old: Mapping[str, Any], new: Item, name: str, value: Value) -> None:
    before = old.get(name, {"N": "0"})
    if "N" not in before or "N" not in value:
        raise InvalidValueError("An operand in the update expression has an incorrect data type")
    new[name] = {"N": add(before["N"], value["N"])}


def _sum(one: Value | None, two: Value | None, *, negated: bool) -> Value:
    if one is None or two is None or "N" not in one or "N" not in two:
        raise InvalidValueError("An operand in the update expression has an incorrect data type")
    text = two["N"]
    return {"N": add(one["N"], (text[1:] if text.startswith("-") else f"-{text}") if negated else text)}


def _remove(new: Item, name: str) -> None:
    new.pop(name, None)
