"""Attributes as Python types describe them: builtins, generics, enums, dataclasses, TypedDicts, pydantic models."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from dynamodb_counters.errors import InvalidArgumentError

_SCALARS: Final[dict[Any, tuple[type, str | None]]] = {
    **{kind: (kind, None) for kind in (str, int, Decimal, bool, bytes, dict, object)},
    float: (Decimal, None),
    datetime: (str, "date-time"),
    date: (str, "date"),
    Any: (object, None),
}
"""Type and format of the attribute."""

_LISTS: Final = (list, set, tuple, frozenset)
_LIMITS: Final = {"ge": "minimum", "le": "maximum"} | {name: name for name in ("min_length", "max_length", "pattern")}
"""How pydantic and annotated-types call what an attribute has, too."""


def described(kind: Any) -> dict[str, Any] | None:  # noqa: PLR0911
    """Arguments of an `Attribute` that a type says; None if it says nothing of what DynamoDB stores."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        found = described(arguments[0])
        return found and found | _limits(arguments[1:])
    if origin in (typing.Union, types.UnionType):
        others = [each for each in arguments if each is not types.NoneType]
        found = described(others[0]) if len(others) == 1 else None
        return found and found | {"required": False}
    if origin is typing.Literal:
        return _choice(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice([member.value for member in kind])
    if kind in _LISTS or origin in _LISTS:
        return {"type": list, "of": arguments[0] if arguments else None}
    if origin in (dict, Mapping):
        return {"type": dict}
    # By its name: the module also makes random ones, which nothing here may.
    if isinstance(kind, type) and (kind.__module__, kind.__name__) == ("uuid", "UUID"):
        return {"type": str, "format": "uuid"}
    try:
        scalar = _SCALARS.get(kind)
    except TypeError:
        return None
    if scalar is not None:
        return dict(zip(("type", "format"), scalar, strict=True))
    return {"type": dict, "attributes": kind} if fields_of(kind) is not None else None


def fields_of(kind: Any) -> dict[str, dict[str, Any]] | None:
    """The fields of a dataclass, TypedDict or pydantic model, as arguments of an `Attribute`; None of anything else."""
    if not isinstance(kind, type):
        return None
    models: Any = getattr(kind, "model_fields", None)
    if isinstance(models, Mapping):
        return {
            each.alias or name: {"type": each.annotation, "required": each.is_required(), **_limits(each.metadata)}
            for name, each in models.items()
        }
    if is_dataclass(kind):
        hints = _hints(kind)
        return {
            each.name: {"type": hints[each.name], "required": each.default is each.default_factory is MISSING}
            for each in fields(kind)
        }
    if typing.is_typeddict(kind):
        required: frozenset[str] = kind.__required_keys__  # type: ignore[attr-defined]
        return {name: _of_typed_dict(hint, required=name in required) for name, hint in _hints(kind).items()}
    return None


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidArgumentError("attributes", kind, f"a class whose annotations can be resolved ({error})") from None


def _of_typed_dict(hint: Any, *, required: bool) -> dict[str, Any]:
    # `__required_keys__` does not know what textual annotations say, as with `from __future__ import annotations`.
    while (origin := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
        required = origin is typing.Required
        [hint] = typing.get_args(hint)
    return {"type": hint, "required": required}


def _choice(values: Iterable[Any]) -> dict[str, Any] | None:
    found = tuple(values)
    for kind in (str, int):
        if found and all(isinstance(value, kind) and not isinstance(value, bool) for value in found):
            return {"type": kind, "one_of": found}
    return None


def _limits(metadata: Iterable[Any]) -> dict[str, Any]:
    found = {}
    for each in metadata:
        for theirs, ours in _LIMITS.items():
            value = getattr(each, theirs, None)
            if value is not None and not callable(value):
                found[ours] = Decimal(str(value)) if isinstance(value, float) else value
    return found
