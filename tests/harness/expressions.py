"""What condition and update expressions have in common: tokens, operands, placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from tests.harness.values import InvalidValueError, Value

Operand: TypeAlias = Callable[[Mapping[str, Any], "Placeholders"], Value | None]

_TOKEN: Final = re.compile(r"\s*(?:([#:]?[A-Za-z0-9_]+)|(<>|<=|>=|[=<>(),+-]))")


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


def operand(token: str) -> Operand:
    """Compile what a token stands for.

    Parameters
    ----------
    token : str
        A value's placeholder, or an attribute's name or placeholder.

    Returns
    -------
    callable
        Takes an item and placeholders.
    """
    if token.startswith(":"):
        return lambda _, given: given.value(token)
    return lambda item, given: item.get(given.name(token))


class Tokens:
    """An expression, read token by token.

    Parameters
    ----------
    text : str
        The expression.
    """

    def __init__(self, text: str) -> None:
        self._tokens = [word or sign for word, sign in _TOKEN.findall(text)]
        if "".join(self._tokens) != "".join(text.split()):
            raise InvalidValueError(f"Invalid expression: {text}")
        self._place = 0

    def more(self) -> bool:
        """Tell whether there are tokens left."""
        return self._place < len(self._tokens)

    def next(self) -> str:
        """Take the next token, whatever it is."""
        if not self.more():
            raise InvalidValueError("Invalid expression: Syntax error; token: <EOF>")
        self._place += 1
        return str(self._tokens[self._place - 1])

    def take(self, token: str) -> bool:
        """Take the next token if it is this one, and tell whether it was."""
        if self.more() and self._tokens[self._place].upper() == token:
            self._place += 1
            return True
        return False

    def need(self, token: str) -> None:
        """Take the next token, which must be this one."""
        if not self.take(token):
            raise InvalidValueError(f"Invalid expression: Syntax error; expected: {token!r}")

    def expect_end(self) -> None:
        """Refuse what is left."""
        if self.more():
            raise InvalidValueError(f"Invalid expression: Syntax error; token: {self._tokens[self._place]!r}")
