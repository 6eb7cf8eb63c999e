"""Parts that make declarations values: mappings that never change, and a repr that leaves out nothing that is said."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Frozen(dict[K, V]):
    """A dict that refuses changes, and has a hash."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("declarations do not change: make another one by dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def shown(declaration: Any) -> str:
    """The repr: fields that few have are in it where they are set."""
    values = [(each, getattr(declaration, each.name)) for each in fields(declaration)]
    said = [f"{each.name}={value!r}" for each, value in values if each.repr or value != each.default]
    return f"{type(declaration).__name__}({', '.join(said)})"
