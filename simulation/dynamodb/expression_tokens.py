"""What condition and update expressions have in common: tokens, operands, placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from simulation.dynamodb.typed_values import InvalidValueError, Value

Operand: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], Value | None]

_TOKEN: Final = re.compile(r"\s*(?:([#:]?[A-Za-z0-9_]+)|(<>|<=|>=|[=<>(),+-]))")


@dataclass(frozen=True, slots=True)
class Placeholders:
    """What ``#name`` and ``:value`` stand for in an expression."""

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
    """The placeholders that some expressions use, with their ``#`` or ``:``."""
    return frozenset(token for text in texts for token in re.findall(r"[#:][A-Za-z0-9_]+", text))


def operand(token: str) -> Operand:
    """Compile a value's placeholder, or an attribute's name or placeholder."""
    if token.startswith(":"):
        return lambda _, given: given.value(token)
    return lambda item, given: item.get(given.name(token))


class Tokens:
    """An expression, read token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = [word or sign for word, sign in _TOKEN.findall(text)]
        if "".join(self._tokens) != "".join(text.split()):
            raise InvalidValueError(f"Invalid expression: {text}")
        self._index = 0

    def more(self) -> bool:
        return self._index < len(self._tokens)

    def next(self) -> str:
        if not self.more():
            raise InvalidValueError("Invalid expression: Syntax error; token: <EOF>")
        self._index += 1
        return str(self._tokens[self._index - 1])

    def take(self, token: str) -> bool:
        """Take the next token if it is this one; return whether it was."""
        if self.more() and self._tokens[self._index].upper() == token:
            self._index += 1
            return True
        return False

    def need(self, token: str) -> None:
        if not self.take(token):
            raise InvalidValueError(f"Invalid expression: Syntax error; expected: {token!r}")

    def expect_end(self) -> None:
        if self.more():
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {self._tokens[self._index]!r}")
