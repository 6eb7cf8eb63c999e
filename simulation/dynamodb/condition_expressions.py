"""DynamoDB's condition expressions, compiled once per text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from simulation.dynamodb.expression_tokens import Placeholders, Tokens, operand
from simulation.dynamodb.typed_values import InvalidValueError, Value, comparable

Test: TypeAlias = Callable[[Mapping[str, Any], Placeholders], bool]

ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Test:
    """A function of an item (empty if there is none) and placeholders."""
    parser = _Parser(text)
    test = parser.disjunction()
    parser.expect_end()
    return test


class _Parser(Tokens):
    def disjunction(self) -> Test:
        parts = [self._conjunction()]
        while self.take("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda item, given: any(part(item, given) for part in parts)

    def _conjunction(self) -> Test:
        parts = [self._negation()]
        while self.take("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else lambda item, given: all(part(item, given) for part in parts)

    def _negation(self) -> Test:
        if self.take("NOT"):
            inner = self._negation()
            return lambda item, given: not inner(item, given)
        if self.take("("):
            inner = self.disjunction()
            self.need(")")
            return inner
        return self._test()

    def _test(self) -> Test:
        word = self.next()
        if self.take("("):
            return self._function(word)
        left = operand(word)
        sign = self.next()
        if sign == "BETWEEN":
            low = operand(self.next())
            self.need("AND")
            high = operand(self.next())
            return lambda item, given: (
                _compare(operator.ge, left(item, given), low(item, given))
                and _compare(operator.le, left(item, given), high(item, given))
            )
        right = operand(self.next())
        if sign == "<>":
            return lambda item, given: not _compare(operator.eq, left(item, given), right(item, given))
        if sign not in ORDER:
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {sign!r}")
        order = ORDER[sign]
        return lambda item, given: _compare(order, left(item, given), right(item, given))

    def _function(self, name: str) -> Test:
        path = self.next()
        if name in ("attribute_exists", "attribute_not_exists"):
            self.need(")")
            wanted = name == "attribute_exists"
            return lambda item, given: (given.name(path) in item) is wanted
        if name == "begins_with":
            self.need(",")
            left, right = operand(path), operand(self.next())
            self.need(")")
            return lambda item, given: _begins(left(item, given), right(item, given))
        raise InvalidValueError(f"Invalid expression: function {name} is not known here")


def _compare(order: Callable[[Any, Any], bool], one: Value | None, two: Value | None) -> bool:
    if one is None or two is None:
        return False
    if "S" in one and "S" in two:
        return order(one["S"], two["S"])
    (kind, left), (other, right) = comparable(one), comparable(two)
    return kind == other and order(left, right)


def _begins(one: Value | None, two: Value | None) -> bool:
    return one is not None and two is not None and str(one.get("S", "")).startswith(str(two["S"])) and "S" in one
