"""DynamoDB's update expressions, compiled once per text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from simulation.dynamodb.expression_tokens import Operand, Placeholders, Tokens, operand
from simulation.dynamodb.typed_values import InvalidValueError, Item, Value, add, stored

Step: TypeAlias = Callable[[Mapping[str, Any], Item, Placeholders], None]


@dataclass(frozen=True, slots=True)
class Update:
    """A compiled update expression: one step per attribute, and the tokens of the attributes it changes."""

    steps: tuple[Step, ...]
    targets: tuple[str, ...]

    def apply(self, old: Mapping[str, Any], placeholders: Placeholders) -> Item:
        """The new item; every operand is read from the old one."""
        names = [placeholders.name(token) for token in self.targets]
        if len(set(names)) < len(names):
            raise InvalidValueError("Invalid UpdateExpression: Two document paths overlap with each other")
        new = dict(old)
        for step in self.steps:
            step(old, new, placeholders)
        return new


@lru_cache(maxsize=4096)
def compile_update(text: str) -> Update:
    """Compile SET, ADD and REMOVE clauses."""
    return _Parser(text).update()


class _Parser(Tokens):
    def update(self) -> Update:
        steps: list[Step] = []
        targets: list[str] = []
        while self.more():
            clause = self.next().upper()
            while True:
                targets.append(self.next())
                steps.append(self._step(clause, targets[-1]))
                if not self.take(","):
                    break
        return Update(tuple(steps), tuple(targets))

    def _step(self, clause: str, target: str) -> Step:
        if clause == "REMOVE":
            return lambda _, new, given: _remove(new, given.name(target))
        if clause == "ADD":
            added = self.next()
            return lambda old, new, given: _add(old, new, given.name(target), given.value(added))
        if clause != "SET":
            raise InvalidValueError(f"Invalid UpdateExpression: Syntax error; token: {clause!r}")
        self.need("=")
        source = self._source()
        sign = "+" if self.take("+") else "-" if self.take("-") else ""
        if not sign:
            return lambda old, new, given: _set(new, given.name(target), source(old, given))
        other = self._source()
        return lambda old, new, given: _set(
            new, given.name(target), _sum(source(old, given), other(old, given), negated=sign == "-")
        )

    def _source(self) -> Operand:
        word = self.next()
        if word != "if_not_exists":
            return operand(word)
        self.need("(")
        path = operand(self.next())
        self.need(",")
        default = operand(self.next())
        self.need(")")
        return lambda item, given: path(item, given) or default(item, given)


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
