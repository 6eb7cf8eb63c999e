"""Old names of a declaration's arguments: accepted for now, with a DeprecationWarning that names the new one.

They are not part of the type, so type checkers report them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dynamodb_counters.errors import InvalidArgumentError

T = TypeVar("T")


def old_names(**new_names: str) -> Callable[[type[T]], type[T]]:
    """Decorate a dataclass so that arguments and attributes answer to old names: ``@old_names(old="new")``."""

    def decorate(cls: type[T]) -> type[T]:
        init = cls.__init__
        signature = inspect.signature(init)

        @wraps(init)
        def renaming_init(self: T, *arguments: Any, **named: Any) -> None:
            for old in new_names.keys() & named.keys():
                new, value = new_names[old], named.pop(old)
                if new in signature.bind_partial(self, *arguments, **named).arguments:
                    raise InvalidArgumentError(old, value, f"{new} alone, of which {old} is the old name")
                _warn(cls.__name__, old, new)
                named[new] = value
            init(self, *arguments, **named)

        setattr(cls, "__init__", renaming_init)  # noqa: B010 - mypy refuses the assignment
        for old, new in new_names.items():
            setattr(cls, old, _old_attribute(cls.__name__, old, new))
        return cls

    return decorate


def _old_attribute(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        _warn(owner, old, new)
        return getattr(self, new)

    return property(read, doc=f"Deprecated name of `{new}`.")


def _warn(owner: str, old: str, new: str) -> None:
    warnings.warn(f"{owner}: {old!r} is deprecated, use {new!r}", DeprecationWarning, stacklevel=3)
