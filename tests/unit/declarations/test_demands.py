"""What a class or model demands of an event is demanded, or its declaration is refused by attribute and constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Optional, TypedDict

import annotated_types
import pydantic.dataclasses
import pytest

from dynamodb_counters import Event, InvalidArgumentError
from dynamodb_counters._writes.event_items import typed_item


def _model(kind: Any, **config: Any) -> type:
    return pydantic.create_model("Model", __config__=_any(config), x=(kind, ...))


def _any(value: Any) -> Any:
    return value


def _dataclass(kind: Any) -> type:
    return make_dataclass("Class", [("x", kind)])


def _pydantic_dataclass(kind: Any, **more: Any) -> type:
    return pydantic.dataclasses.dataclass(
        type("Class", (), {"__annotations__": {"x": kind}, "x": pydantic.Field(**more)})
    )


def _typed_dict(kind: Any) -> type:
    return _any(TypedDict)("Typed", {"x": kind})  # type: ignore[no-any-return]


class Validated(pydantic.BaseModel):
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def even(cls, value: int) -> int:
        return value // 2 * 2


class Whole(pydantic.BaseModel):
    x: int

    @pydantic.model_validator(mode="after")
    def check(self) -> Whole:
        return self


@dataclass
class Node:
    x: list[Node]


_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ABOVE = Annotated[int, annotated_types.Gt(0)]

# What is demanded, the constraint's name in a refusal, a value that fits and one that does not.
DEMANDS: dict[str, tuple[Any, str, Any, Any]] = {
    "gt": (_ABOVE, "gt", 1, 0),
    "lt": (Annotated[Decimal, annotated_types.Lt(1)], "lt", Decimal("0.9"), 1),
    "ge and gt": (Annotated[int, annotated_types.Ge(0), annotated_types.Gt(1)], "gt", 2, 1),
    "interval": (Annotated[int, annotated_types.Interval(gt=1, le=3)], "gt", 2, 1),
    "multiple_of": (Annotated[int, annotated_types.MultipleOf(3)], "multiple_of", -6, 4),
    "cents": (Annotated[Decimal, annotated_types.MultipleOf(0.01)], "multiple_of", Decimal("0.29"), Decimal("0.295")),
    "positive": (pydantic.PositiveInt, "gt", 1, -100),
    "negative": (pydantic.NegativeFloat, "lt", -1, 0),
    "a field's limit": (Annotated[int, pydantic.Field(ge=0)], "ge", 0, -100),
    "a limit of what may be null": (Optional[_ABOVE], "gt", 1, 0),  # noqa: UP045 - an Annotated within
    "a limit of members": (list[_ABOVE], "gt", [1], [1, 0]),
    "a limit of a time": (Annotated[datetime, annotated_types.Ge(_NOON)], "minimum", None, "2026-11-20T10:00:00Z"),
    "a limit of anything": (Annotated[Any, annotated_types.Ge(1)], "minimum", None, 0),
    "pattern": (Annotated[str, pydantic.Field(pattern="^a")], "pattern", "a", "b"),
    "digits": (Annotated[Decimal, pydantic.Field(max_digits=3)], "max_digits", 1, 1234),
    "predicate": (Annotated[str, annotated_types.Predicate(str.islower)], "Predicate", "a", "A"),
    "function": (Annotated[int, pydantic.AfterValidator(abs)], "AfterValidator", 1, "a"),
    "stripped": (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], "strip_whitespace", "a", 1),
    "tuple": (tuple[int, str], "tuple", [1, "a"], [1, 2]),
    "tuple of one": (tuple[int], "tuple", [1], [1, 2]),
    "values of a map": (dict[str, int], "dict", {"a": 1}, {"a": "b"}),
    "names of a map": (dict[Annotated[str, annotated_types.Len(1, 1)], int], "dict", {"a": 1}, {"ab": 1}),
}  # fmt: skip
_MAKERS = (_model, _dataclass, _pydantic_dataclass, _typed_dict, lambda kind: {"x": kind})


@pytest.mark.parametrize("make", _MAKERS)
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_constraint_is_demanded_or_its_declaration_is_refused(demand: str, make: Callable[[Any], Any]) -> None:
    kind, constraint, good, bad = DEMANDS[demand]
    _demanded(make(kind), constraint, {"x": good}, {"x": bad})


@pytest.mark.parametrize("inner", [False, True])
def test_a_model_that_forbids_more_attributes_gets_no_more(inner: bool) -> None:
    model = _model(int, extra="forbid")
    declared, good = ({"m": model}, {"m": {"x": 1}}) if inner else (model, {"x": 1})
    more: dict[str, Any] = {"m": {"x": 1, "y": 2}} if inner else {"x": 1, "y": 2}

    _demanded(declared, "extra", good, more, named="y")


def test_a_typed_dict_that_forbids_more_attributes_gets_no_more() -> None:
    declared = _typed_dict(int)
    declared.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")  # type: ignore[attr-defined]

    _demanded(declared, "extra", {"x": 1}, {"x": 1, "y": 2}, named="y")


def test_what_no_schema_can_say_of_a_class_is_refused_by_name() -> None:
    for declared, named in (
        (Validated, "even"),
        (Whole, "check"),
        (_model(str, str_min_length=1), "str_min_length"),
        (_model(str, str_max_length=1), "str_max_length"),
        (_model(str, str_max_length=0), "str_max_length"),
        (type("Hooked", (pydantic.BaseModel,), {"model_post_init": _any}), "model_post_init"),
        (make_dataclass("Hooked", ["x"], namespace={"__post_init__": print}), "__post_init__"),
        (pydantic.RootModel[int], "RootModel"),
        (_model(Annotated[int, pydantic.Field(validation_alias="y")]), "alias of 'x'"),
        (make_dataclass("Plain", [("x", int, pydantic.Field(ge=0))]), "Field of 'x'"),
        (Node, "attributes of 'x'.*=.*Node.*contain itself"),
    ):
        with pytest.raises(InvalidArgumentError, match=named):
            Event("e", pk="E", sk="E", attributes=declared)


def test_a_field_of_a_pydantic_dataclass_is_required_within_its_limits() -> None:
    event = Event("e", pk="E", sk="E", attributes=_pydantic_dataclass(int, ge=0))
    for bad in ({}, {"x": -5}):
        with pytest.raises(InvalidArgumentError, match="x"):
            typed_item(event, bad)


def test_what_only_describes_is_no_constraint() -> None:
    event = Event(
        "e",
        pk="E",
        sk="E",
        attributes=_model(Annotated[int, "a number", pydantic.Field(description="it", strict=True)]),
    )

    assert typed_item(event, {"x": 1})["x"] == {"N": "1"}


def _demanded(
    declared: Any, constraint: str, good: Mapping[str, Any], bad: Mapping[str, Any], named: str = "x"
) -> None:
    try:
        event = Event("e", pk="E", sk="E", attributes=declared)
    except InvalidArgumentError as error:
        refusal = str(error)
    else:
        typed_item(event, good)
        with pytest.raises(InvalidArgumentError, match=rf"^invalid ([a-z]\.)?{named}(\[\d\])?="):
            typed_item(event, bad)
        return
    assert constraint in refusal
    assert "'x'" in refusal or named != "x"
