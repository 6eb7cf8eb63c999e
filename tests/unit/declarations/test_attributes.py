"""Attributes of events: declared by types or classes, and demanded of what is sent, or refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from itertools import product
from typing import Annotated, Any, Final, List, Literal, NotRequired, Optional, TypedDict  # noqa: UP035
from uuid import UUID

import annotated_types
import fastjsonschema
import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Attr,
    Attribute,
    Average,
    Count,
    Distinct,
    Event,
    InvalidArgumentError,
    Sum,
    Window,
)
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.event_attributes import attributes_of, json_schema
from dynamodb_counters._writes.accept import typed_item
from dynamodb_counters.testing import QuarantinedRecordsError
from simulation.counters_in_memory import counters_in_memory


class Plan(Enum):
    FREE = "free"
    PRO = "pro"


@dataclass
class Address:
    city: str
    zip: str | None = None


class OrderDict(TypedDict):
    id: UUID
    amount: Decimal
    plan: NotRequired[Literal["free", "pro"]]


@dataclass
class OrderClass:
    id: UUID
    amount: Decimal
    plan: Plan = Plan.FREE


class OrderModel(pydantic.BaseModel):
    id: UUID
    amount: Decimal
    plan: Plan = Plan.FREE


ATTRIBUTES: dict[str, Any] = {
    "id": UUID,
    "at": datetime,
    "amount": Attribute(Decimal, minimum=0, maximum=Decimal("99.5")),
    "plan": Plan,
    "name": Attribute(str, min_length=2, max_length=3),
    "tags": Attribute(list[str], max_length=2),
    "address": Address,
    "born": date | None,
    "test": Attribute(bool, required=False),
    "extra": Attribute(dict, required=False),
    "grade": Attribute(str, required=False),
    "score": Attribute(int, required=False),
    "seen": datetime | None,
    "rare": Attribute(dict, required=False, attributes={"code": Attribute(int, required=False)}),
    "notes": Attribute(list[str], required=False),
    "lines": Attribute(list, of=Attribute(dict, attributes={"weight": Attribute(int, required=False)}), required=False),
}
ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", attributes=ATTRIBUTES)
GOOD: dict[str, Any] = {
    "id": "12345678-1234-1234-1234-123456789012",
    "at": "2026-11-20T10:30:00+01:00",
    "amount": 5,
    "plan": "pro",
    "name": "ab",
    "tags": ["a"],
    "address": {"city": "Oslo"},
}


@pytest.mark.parametrize("declared", [OrderDict, OrderClass, OrderModel])
def test_classes_say_the_same_as_a_mapping(declared: type) -> None:
    plan = Attribute(str, one_of=["free", "pro"], required=False)
    by_mapping = Event("order", pk="ORDER#{id}", sk="O", attributes={"id": UUID, "amount": Decimal, "plan": plan})

    assert Event("order", pk="ORDER#{id}", sk="O", attributes=declared) == by_mapping


def test_limits_and_defaults_of_a_class_are_taken_over() -> None:
    parent: Any = pydantic.dataclasses.dataclass(_dataclass(int))
    child = make_dataclass("Child", [("y", str, "")], bases=(parent,))
    optional: Any = field(default_factory=list)
    declared: list[tuple[Any, dict[str, Attribute]]] = [
        (child, {"x": Attribute(int), "y": Attribute(str, required=False)}),
        (_model(Annotated[Decimal, pydantic.Field(ge=0, le=9)]), {"x": Attribute(Decimal, minimum=0, maximum=9)}),
        (pydantic.create_model("M", x=(str, pydantic.Field(min_length=1))), {"x": Attribute(str, min_length=1)}),
        (_dataclass(Annotated[int | None, annotated_types.Ge(1)]), {"x": Attribute(int, minimum=1, required=False)}),
        (make_dataclass("Sent", [("x", list[str], optional)]), {"x": Attribute(list[str], required=False)}),
        (_pydantic_dataclass(int, ge=0), {"x": Attribute(int, minimum=0)}),
        (_model(Annotated[int, "a number", pydantic.Field(description="it", strict=True)]), {"x": Attribute(int)}),
        (_model(List), {"x": Attribute(list)}),  # noqa: UP006
    ]
    for kind, attributes in declared:
        assert Event("e", pk="E", sk="E", attributes=kind).attributes == attributes


def _any(value: Any) -> Any:
    return value


def _aggregate(**changes: Any) -> Aggregate:
    return Aggregate("a", ORDER, **{"pk": "A", "sk": "ALL", "measures": {"n": Count()}, **changes})


def test_attributes_that_fit_can_be_declared() -> None:
    where = Attr("plan").eq("pro") & Attr("amount").gt(1) & Attr("pk").begins_with("ORDER") & Attr("extra.x").gt(1)
    where &= Attr("at").ge("2026-11") & Attr("id").eq(GOOD["id"])
    measures = {"n": Count(), "sum": Sum("amount"), "deep": Sum("extra.deep.number")}

    by = "{address.city}#{at:day}", "{tags[]}"
    assert _aggregate(pk=by[0], sk=by[1], measures=measures, where=where, write_shards=2).fields
    assert Window("w", ORDER, pk="{plan}", time="at", measure=Sum("amount"), where=where).fields == ("plan",)
    assert Distinct("d", ORDER, pk="D", sk="D", member="name").total.fields == ()
    anything = Event("e", key="id", attributes={"id": str, "map": dict, "any": object, "many": object})
    assert Aggregate("a", anything, by=("any.x", "many[]"), n=Sum("map.n", default=0), m=Sum("any.n", default=0)).fields
    either = Attr("test").eq(True) | Attr("plan").begins_with("f") | Attr("plan").lt("gold")
    assert _aggregate(where=either).where == either


def test_attributes_that_events_may_lack_can_be_counted_with_a_default_or_where_they_are() -> None:
    there = Attr("score").exists() & (Attr("grade").eq("a") | ~Attr("amount").gt(1) & Attr("grade").begins_with("b"))
    defaulted = {"sum": Sum("score", default=0), "deep": Average("rare.code", default=Decimal("0.5"))}

    assert _aggregate(pk="{grade?none}#{rare.code:class?none}", measures=defaulted).fields
    assert _aggregate(pk="{grade}", measures={"sum": Sum("score")}, where=there).fields == ("grade",)
    assert _aggregate(pk="{notes[]}", where=Attr("notes").exists()).fields
    assert Window("w", ORDER, pk="{grade}", time="at", measure=Sum("score"), where=there).fields == ("grade",)
    assert Window("w", ORDER, pk="{grade?none}", time="seen", where=Attr("seen").begins_with("2")).fields
    assert Distinct("d", ORDER, pk="D", sk="D", member="grade?none").total.fields == ()


def test_attributes_of_the_key_and_the_version_are_always_there() -> None:
    optional = {"id": str | None, "revision": int | None}
    event = Event("e", key="id", version="revision", attributes=optional)

    assert Aggregate("a", event, by="id", last=Sum("revision")).fields == ("id",)
    assert replace(ORDER, version="plan").version == "plan"


WRONG_EVENTS: list[tuple[dict[str, Any], str]] = [
    ({"id": "7"}, "id='7': expected a UUID of 36 characters"),
    ({"at": "2026-11-20T10:30:00"}, "at='2026-11-20T10:30:00': expected an ISO 8601 time with an offset"),
    ({"amount": -1}, "amount=-1: expected a number of at least 0 of at most 99.5"),
    ({"amount": Decimal("99.6")}, "amount=99.6: expected a number"),
    ({"amount": "5"}, "amount='5': expected a number"),
    ({"plan": "gold"}, "plan='gold': expected one of 'free', 'pro'"),
    ({"name": "a"}, "name='a': expected a string"),
    ({"name": "abcd"}, "name='abcd': expected a string"),
    ({"tags": ["a", 1]}, "tags[1]=1: expected a string"),
    ({"tags": ["a", "b", "c"]}, "tags=['a', 'b', 'c']: expected a list of at most 2 members, each a string"),
    ({"tags": "a"}, "tags='a': expected a list"),
    ({"address": "Oslo"}, "address='Oslo': expected a map"),
    ({"address": {"zip": "1"}}, "address.city=None: expected a string: it is required"),
    ({"born": "20.11.2026"}, "born='20.11.2026': expected an ISO 8601 date"),
    ({"test": "true"}, "test='true': expected true or false"),
    ({"score": Decimal("1.5")}, "score=1.5: expected a whole number"),
    ({"score": [Decimal("1.5")]}, "score=[1.5]: expected a whole number"),
    ({"name": None}, "name=None: expected a string"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_EVENTS)
def test_an_event_that_does_not_fit_is_rejected_by_attribute(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{re.escape(f'invalid {message}')}"):
        typed_item(ORDER, {**GOOD, **changes})


def test_values_that_fit_are_taken() -> None:
    for changes in ({}, {"born": None}, {"born": "2000-02-29"}, {"tags": {"a", "b"}}, {"undeclared": 1}, {"amount": 0}):
        assert typed_item(ORDER, {**GOOD, **changes})["id"] == {"S": GOOD["id"]}


def test_attributes_travel_only_where_events_are_checked() -> None:
    decoded: tuple[object, ...] = decode(encode((ORDER,), attributes=True))
    assert decoded == (ORDER,)
    # Otherwise another choice would be another deployment of what counts.
    assert decode(encode((_aggregate(),))) == (replace(_aggregate(), source=replace(ORDER, attributes=None)),)


_PLAIN: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "ab", "b"])
_KINDS = st.one_of(
    st.sampled_from([str, int, Decimal, bool, list[str], list, dict, object, Literal["a", "b"], str | None]),
    st.sampled_from([Attribute(int, minimum=0, maximum=2), Attribute(str, max_length=1, required=False)]),
)


@given(
    st.dictionaries(st.sampled_from("xyz"), _KINDS),
    st.dictionaries(st.sampled_from("xyz"), _PLAIN | st.lists(_PLAIN, max_size=2)),
)
def test_the_json_schema_accepts_what_the_door_accepts(attributes: dict[str, Any], values: dict[str, Any]) -> None:
    event = Event("e", pk="E", sk="E", attributes=attributes)
    validate = fastjsonschema.compile(json.loads(json.dumps(event.json_schema)))
    try:
        typed_item(event, values)
    except InvalidArgumentError:
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            validate(dict(values))
    else:
        validate(dict(values))


def test_the_json_schema_says_what_each_type_allows() -> None:
    tags, name = Attribute(list[str], min_length=1, max_length=2), Attribute(str, max_length=3, required=False)
    attributes = {"tags": tags, "name": name, "file": bytes, "any": Attribute(object, required=False)}
    assert json_schema(attributes_of(attributes)) == {
        "type": "object",
        "required": ["tags", "file"],
        "properties": {
            "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
            "name": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
            "file": {"type": "string"},
            "any": {},
        },
    }


def _model(kind: Any, validators: Any = None, **config: Any) -> type:
    return pydantic.create_model("Model", __config__=_any(config), __validators__=validators, x=(kind, ...))


def _dataclass(kind: Any) -> type:
    return make_dataclass("Class", [("x", kind)])


def _pydantic_dataclass(kind: Any, **more: Any) -> type:
    model = type("Class", (), {"__annotations__": {"x": kind}, "x": pydantic.Field(**more)})
    return pydantic.dataclasses.dataclass(model)


def _typed_dict(kind: Any, **config: Any) -> type:
    model: Any = _any(TypedDict)("Typed", {"x": kind})
    model.__pydantic_config__ = config
    return model  # type: ignore[no-any-return]


@dataclass
class Node:
    x: list[Node]


_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ABOVE = Annotated[int, annotated_types.Gt(0)]

# What is demanded, the constraint's name in a refusal, a value that fits and one that does not.
DEMANDS: dict[str, tuple[Any, str, Any, Any]] = {
    "ge and gt": (Annotated[int, annotated_types.Ge(0), annotated_types.Gt(1)], "gt", 2, 1),
    "interval": (Annotated[int, annotated_types.Interval(gt=1, le=3)], "gt", 2, 1),
    "multiple_of": (Annotated[int, annotated_types.MultipleOf(3)], "multiple_of", -6, 4),
    "positive": (pydantic.PositiveInt, "gt", 1, -100),
    "a field's limit": (Annotated[int, pydantic.Field(ge=0)], "ge", 0, -100),
    "a limit of what may be null": (Optional[_ABOVE], "gt", 1, 0),  # noqa: UP045 - an Annotated within
    "a limit within another": (Annotated[Optional[Annotated[int, annotated_types.Ge(0)]], annotated_types.Ge(-5)], "minimum", 1, -3),  # noqa: E501, UP045
    "a limit of members": (list[_ABOVE], "gt", [1], [1, 0]),
    "a limit of a time": (Annotated[datetime, annotated_types.Ge(_NOON)], "minimum", None, "2026-11-20T10:00:00Z"),
    "a limit of anything": (Annotated[Any, annotated_types.Ge(1)], "minimum", None, 0),
    "pattern": (Annotated[str, pydantic.Field(pattern="^a")], "pattern", "a", "b"),
    "digits": (Annotated[Decimal, pydantic.Field(max_digits=3)], "max_digits", 1, 1234),
    "predicate": (Annotated[str, annotated_types.Predicate(str.islower)], "Predicate", "a", "A"),
    "function": (Annotated[int, pydantic.AfterValidator(abs)], "AfterValidator", 1, "a"),
    "stripped": (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], "strip_whitespace", "a", 1),
    "tuple": (tuple[int, str], "tuple", [1, "a"], [1, 2]),
    "values of a map": (dict[str, int], "dict", {"a": 1}, {"a": "b"}),
}  # fmt: skip
_MAKERS = (_model, _dataclass, _pydantic_dataclass, _typed_dict, lambda kind: {"x": kind})


@pytest.mark.parametrize("make", _MAKERS)
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_constraint_is_demanded_or_its_declaration_is_refused(demand: str, make: Callable[[Any], Any]) -> None:
    kind, constraint, good, bad = DEMANDS[demand]
    try:
        event = Event("e", pk="E", sk="E", attributes=make(kind))
    except InvalidArgumentError as error:
        refusal = str(error)
    else:
        typed_item(event, {"x": good})
        with pytest.raises(InvalidArgumentError, match=r"^invalid x(\[\d\])?="):
            typed_item(event, {"x": bad})
        return
    assert constraint in refusal
    assert "'x'" in refusal


def test_what_no_schema_can_say_of_a_class_is_refused_by_name() -> None:
    for declared, named in (
        (_model(int, {"even": pydantic.field_validator("x")(_any)}), "even"),
        (_model(int, extra="forbid"), "'extra'"),
        ({"m": _model(int, extra="forbid")}, "'extra'"),
        (_typed_dict(int, extra="forbid"), "'extra'"),
        (_model(int, {"check": pydantic.model_validator(mode="after")(_any)}), "check"),
        (_model(str, str_min_length=1), "str_min_length"),
        *((_model(str, str_max_length=most), "str_max_length") for most in (0, 1)),
        (type("Hooked", (pydantic.BaseModel,), {"model_post_init": _any}), "model_post_init"),
        (make_dataclass("Hooked", ["x"], namespace={"__post_init__": print}), "__post_init__"),
        (pydantic.RootModel[int], "RootModel"),
        (_model(Annotated[int, pydantic.Field(validation_alias="y")]), "alias of 'x'"),
        (make_dataclass("Plain", [("x", int, pydantic.Field(ge=0))]), "Field of 'x'"),
        (Node, "attributes of 'x'.*=.*Node.*contain itself"),
    ):
        with pytest.raises(InvalidArgumentError, match=named):
            Event("e", pk="E", sk="E", attributes=_any(declared))


EVENT: Final = Event("event", key="id")
WINDOW: Final = Window("window", EVENT, time="at")


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        (WINDOW, None, "window: null is not a time: expected a string or a number"),
        (WINDOW, [1], "window: [1] is not a time"),
        (WINDOW, False, "window: False is not a time"),
        (WINDOW, "2016-12-31T23:59:60Z", "'2016-12-31T23:59:60Z' is a leap second"),
        (Aggregate("a", EVENT, by="at:class"), None, "a: null is no number from 100 to below 1000"),
        (Aggregate("a", EVENT, by="at:log0.1"), {"x": None}, "a: {'x': None} is no number"),
    ],
)
def test_a_quarantined_value_is_named_as_it_was_sent(declared: Any, value: Any, message: str) -> None:
    with pytest.raises(QuarantinedRecordsError) as error, counters_in_memory([declared]) as counters:
        counters.accept(EVENT, {"id": "1", "at": value})
    assert message in str(error.value)


def test_an_instance_of_the_declared_class_is_refused_with_what_to_pass() -> None:
    event, values = Event("address", key="city", attributes=Address), Address("Oslo")
    wrong: list[Any] = [values, OrderModel(id=UUID(int=1), amount=Decimal(1))]
    with counters_in_memory([Aggregate("all", event)]) as counters:
        for call, instance in product((counters.accept, counters.retract), wrong):
            with pytest.raises(ValueError, match=r"such as dataclasses.asdict\(…\) or a model's model_dump\(\)"):
                call(event, instance)
        assert counters.accept(event, asdict(values)).status == "accepted"
