"""Attributes of events: declared by types, and named wherever a declaration or an event lacks one."""

# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import annotated_types
import fastjsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import (
    ActiveMembers,
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
from dynamodb_counters._writes.event_items import typed_item
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


def test_limits_of_a_model_are_taken_over() -> None:
    class Model(pydantic.BaseModel):
        amount: Annotated[Decimal, pydantic.Field(ge=0, le=9)]
        name: str = pydantic.Field(min_length=1)

    assert Event("e", pk="E", sk="E", attributes=Model).attributes == {
        "amount": Attribute(Decimal, minimum=0, maximum=9),
        "name": Attribute(str, min_length=1),
    }


def test_limits_and_defaults_of_a_class_are_taken_over() -> None:
    @dataclass
    class Sent:
        score: Annotated[int | None, annotated_types.Ge(1)]
        tags: list[str] = field(default_factory=list)

    assert Event("e", pk="E", sk="E", attributes=Sent).attributes == {
        "score": Attribute(int, minimum=1, required=False),
        "tags": Attribute(list[str], required=False),
    }


WRONG_DECLARATIONS: dict[str, tuple[Callable[[], object], str]] = {
    "a part of a map": (lambda: _aggregate(sk="{address.cty}"), "sk='address.cty': expected attributes of 'address': city, zip"),
    "a part of what is no map": (lambda: _aggregate(sk="{name.x}"), "sk='name.x': expected a part of a map; 'name' is a string"),
    "a list's member": (lambda: _aggregate(pk="{name[]}"), "pk='name[]': expected a list; 'name' is a string"),
    "a whole list": (lambda: _aggregate(pk="{tags}"), "pk='tags': expected a string or number; 'tags' is a list"),
    "a time": (lambda: _aggregate(pk="{plan:day}"), "pk='plan:day': expected a time; 'plan' is one of 'free', 'pro'"),
    "a class of a text": (lambda: _aggregate(pk="{name:class}"), "pk='name:class': expected a number; 'name' is a string"),
    "a range of a time": (lambda: _aggregate(pk="{at:10,100}"), "pk='at:10,100': expected a number; 'at' is an ISO 8601 time"),
    "a group that events may lack": (lambda: _aggregate(pk="{grade}"), "pk='grade': expected where=Attr('grade').exists(), or a default"),
    "a class that events may lack": (lambda: _aggregate(pk="{rare.code:class}"), "pk='rare.code:class': expected where=Attr('rare').exists(), or a default"),
    "a group whose map alone is there": (lambda: _aggregate(pk="{rare.code}", where=Attr("rare").exists()), "pk='rare.code': expected where=Attr('rare.code').exists(), or a default"),
    "a list that events may lack": (lambda: _aggregate(pk="{notes[]}"), "pk='notes[]': expected where=Attr('notes').exists(), or a default"),
    "a sum that events may lack": (lambda: _aggregate(measures={"n": Sum("score")}), "measures='score': expected where=Attr('score').exists(), or a default"),
    "a sum where another is there": (lambda: _aggregate(measures={"n": Sum("score")}, where=Attr("score").exists() | Attr("name").exists()), "measures='score': expected where="),
    "a sum where it may be another": (lambda: _aggregate(measures={"n": Sum("score")}, where=Attr("score").ne(1)), "measures='score': expected where="),
    "a default that is no number": (lambda: Sum("score", default=_any("0")), "default='0': expected an int or Decimal"),
    "a member that events may lack": (lambda: Distinct("d", ORDER, pk="D", sk="D", member="grade"), "member='grade': expected where=Attr('grade').exists(), or a default"),
    "a window's time that events may lack": (lambda: Window("w", ORDER, pk="W", time="seen"), "time='seen': expected where=Attr('seen').exists(), or a default"),
    "a window's sum that events may lack": (lambda: Window("w", ORDER, pk="W", time="at", measure=Sum("score")), "measure='score': expected where=Attr('score').exists(), or a default"),
    "a window's group that events may lack": (lambda: Window("w", ORDER, pk="{grade}", time="at"), "pk='grade': expected where="),
    "a sum of nothing": (lambda: _aggregate(measures={"n": Sum("amont")}), "measures='amont': expected attributes of 'order'"),
    "a sum of text": (lambda: _aggregate(measures={"n": Average("name")}), "measures='name': expected a number; 'name' is a string"),
    "a filter": (lambda: _aggregate(where=Attr("stauts").exists()), "where='stauts': expected attributes of 'order'"),
    "a filter of another kind": (lambda: _aggregate(where=Attr("amount").gt("5")), "where='5': expected what 'amount' can be compared with: it is a number"),
    "a filter of truth on a number": (lambda: _aggregate(where=Attr("amount").eq(True)), "where=True: expected what 'amount' can be compared with: it is a number"),
    "a filter that always holds": (lambda: _aggregate(where=Attr("plan").ne("gold")), "where='gold': expected what 'plan' can be: one of 'free', 'pro'"),
    "a filter that never holds": (lambda: _aggregate(where=~Attr("plan").is_in(["free", "gold"])), "where='gold': expected what 'plan' can be: one of 'free', 'pro'"),
    "a member": (lambda: Distinct("d", ORDER, pk="D", sk="D", member="user"), "member='user': expected attributes of 'order'"),
    "a window's group": (lambda: Window("w", ORDER, pk="{usr}", time="at"), "pk='usr': expected attributes of 'order'"),
    "a window's time": (lambda: Window("w", ORDER, pk="W", time="time"), "time='time': expected attributes of 'order'"),
    "a window's time that is a text": (lambda: Window("w", ORDER, pk="W", time="name"), "time='name': expected a time; 'name' is"),
    "a day of a text": (lambda: _aggregate(pk="{name:day}"), "pk='name:day': expected a time; 'name' is a string"),
    "members' time that is a text": (
        lambda: ActiveMembers("m", ORDER, member="id", time="name"),
        "time='name': expected a time; 'name' is a string",
    ),
    "a window's time without an offset": (lambda: Window("w", ORDER, pk="W", time="born"), "time='born': expected a time; 'born' is an ISO 8601 date"),
    "a window's sum": (lambda: Window("w", ORDER, pk="W", time="at", measure=Sum("at")), "measure='at': expected a number; 'at' is an ISO 8601 time"),
    "a window's filter": (lambda: Window("w", ORDER, pk="W", time="at", where=Attr("x").exists()), "where='x': expected attributes of 'order'"),
    "an event's key": (lambda: replace(ORDER, sk="{line}"), "sk='line': expected attributes of 'order'"),
    "an event's version": (lambda: replace(ORDER, version="rev"), "version='rev': expected attributes of 'order'"),
    "an event's version without an order": (lambda: replace(ORDER, version="test"), "version='test': expected a string or number; 'test' is true or false"),
    "a type of two kinds": (lambda: Attribute(int | str), "type=int | str: expected str, int"),
    "no mapping": (lambda: Event("e", pk="E", sk="E", attributes=_any(["id"])), "attributes=['id']: expected a mapping"),
    "a reserved name": (lambda: Event("e", pk="E", sk="E", attributes={"ttl": int}), "attributes='ttl': expected an attribute name that is not reserved"),
    "a limit of text": (lambda: Attribute(str, minimum=1), "minimum=1: expected None for str, not int or Decimal"),
    "a choice of another type": (lambda: Attribute(str, one_of=["a", 1]), "one_of=1: expected values of the type str"),
    "a text as choices": (lambda: Attribute(str, one_of="ab"), "one_of='ab': expected a sequence of values"),
    "members of no type": (lambda: Attribute(list[str], of=()), "type=(): expected str, int"),
    "an unknown format": (lambda: Attribute(str, format=_any("e-mail")), "format='e-mail': expected one of 'date'"),
    "a negative length": (lambda: Attribute(str, min_length=-1), "min_length=-1: expected an int of 0 or more"),
    "a limit that is not exact": (lambda: Attribute(Decimal, maximum=_any(0.1)), "maximum=0.1: expected an int or Decimal"),
    "required by text": (lambda: Attribute(str, required=_any("yes")), "required='yes': expected True or False"),
}  # fmt: skip


def _any(value: Any) -> Any:
    return value


def _aggregate(**changes: Any) -> Aggregate:
    return Aggregate("a", ORDER, **{"pk": "A", "sk": "ALL", "measures": {"n": Count()}, **changes})


@pytest.mark.parametrize("mistake", WRONG_DECLARATIONS)
def test_unknown_attributes_are_refused_at_declaration(mistake: str) -> None:
    make, message = WRONG_DECLARATIONS[mistake]

    with pytest.raises(InvalidArgumentError) as refused:
        make()

    assert str(refused.value).startswith(f"invalid {message}")


def test_attributes_that_fit_can_be_declared() -> None:
    where = Attr("plan").eq("pro") & Attr("amount").gt(1) & Attr("pk").begins_with("ORDER") & Attr("extra.x").gt(1)
    measures = {"n": Count(), "sum": Sum("amount"), "deep": Sum("extra.deep.number")}

    assert _aggregate(
        pk="{address.city}#{at:day}", sk="{tags[]}", measures=measures, where=where, write_shards=2
    ).fields
    assert Window("w", ORDER, pk="{plan}", time="at", measure=Sum("amount"), where=where).fields == ("plan",)
    assert Distinct("d", ORDER, pk="D", sk="D", member="name").total.fields == ()
    either = Attr("test").eq(True) | Attr("plan").begins_with("f") | Attr("plan").lt("gold")
    assert _aggregate(where=either).where == either


def test_parts_of_what_may_be_anything_can_be_declared() -> None:
    event = Event("e", key="id", attributes={"id": str, "map": dict, "any": object, "many": object})
    measures = {"map": Sum("map.n", default=0), "any": Sum("any.n", default=0)}

    assert Aggregate("a", event, by=("any.x", "many[]"), measures=measures).measures == measures


def test_attributes_that_events_may_lack_can_be_counted_with_a_default_or_where_they_are() -> None:
    there = Attr("score").exists() & (Attr("grade").eq("a") | ~Attr("amount").gt(1) & Attr("grade").begins_with("b"))
    defaulted = {"sum": Sum("score", default=0), "deep": Average("rare.code", default=Decimal("0.5"))}

    assert _aggregate(pk="{grade?none}#{rare.code:10,20?none}", measures=defaulted).fields
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


WRONG_EVENTS: dict[str, tuple[dict[str, Any], str]] = {
    "uuid": ({"id": "7"}, "id='7': expected a UUID of 36 characters"),
    "time": ({"at": "2026-11-20T10:30:00"}, "at='2026-11-20T10:30:00': expected an ISO 8601 time with an offset"),
    "least": ({"amount": -1}, "amount=-1: expected a number of at least 0 of at most 99.5"),
    "most": ({"amount": Decimal("99.6")}, "amount=99.6: expected a number"),
    "text for a number": ({"amount": "5"}, "amount='5': expected a number"),
    "choice": ({"plan": "gold"}, "plan='gold': expected one of 'free', 'pro'"),
    "short": ({"name": "a"}, "name='a': expected a string"),
    "long": ({"name": "abcd"}, "name='abcd': expected a string"),
    "member": ({"tags": ["a", 1]}, "tags[1]=1: expected a string"),
    "members": ({"tags": ["a", "b", "c"]}, "tags=['a', 'b', 'c']: expected a list of at most 2 members, each a string"),
    "no list": ({"tags": "a"}, "tags='a': expected a list"),
    "no map": ({"address": "Oslo"}, "address='Oslo': expected a map"),
    "nested": ({"address": {"zip": "1"}}, "address.city=None: expected a string: it is required"),
    "date": ({"born": "20.11.2026"}, "born='20.11.2026': expected an ISO 8601 date"),
    "bool": ({"test": "true"}, "test='true': expected true or false"),
    "null": ({"name": None}, "name=None: expected a string"),
}


@pytest.mark.parametrize("mistake", WRONG_EVENTS)
def test_an_event_that_does_not_fit_is_rejected_by_attribute(mistake: str) -> None:
    changes, message = WRONG_EVENTS[mistake]

    with pytest.raises(InvalidArgumentError) as refused:
        typed_item(ORDER, {**GOOD, **changes})

    assert str(refused.value).startswith(f"invalid {message}")


@pytest.mark.parametrize("name", ["id", "at", "amount", "plan", "name", "tags", "address"])
def test_a_missing_attribute_is_named(name: str) -> None:
    values = {other: value for other, value in GOOD.items() if other != name}

    with pytest.raises(InvalidArgumentError, match=f"invalid {name}=None: expected .*: it is required"):
        typed_item(ORDER, values)


def test_values_that_fit_are_taken() -> None:
    for changes in ({}, {"born": None}, {"born": "2000-02-29"}, {"tags": {"a", "b"}}, {"undeclared": 1}, {"amount": 0}):
        assert typed_item(ORDER, {**GOOD, **changes})["id"] == {"S": GOOD["id"]}


def test_attributes_travel_only_where_events_are_checked() -> None:
    decoded: tuple[object, ...] = decode(encode((ORDER,), attributes=True))
    assert decoded == (ORDER,)
    # Otherwise another choice would be another deployment of what counts.
    assert decode(encode((_aggregate(),))) == (replace(_aggregate(), source=replace(ORDER, attributes=None)),)


_PLAIN: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "ab", "b"])
)
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

    assert _accepts(lambda: validate(dict(values))) == _accepts(lambda: typed_item(event, values))


def test_the_json_schema_says_what_each_type_allows() -> None:
    attributes = attributes_of(
        {
            "tags": Attribute(list[str], min_length=1, max_length=2),
            "name": Attribute(str, max_length=3, required=False),
            "file": bytes,
            "any": Attribute(object, required=False),
        }
    )
    same = {
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "file": {"type": "string"},
        "any": {},
    }
    name = {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]}
    schema = json_schema(attributes)
    assert (schema["required"], schema["properties"]) == (["tags", "file"], {**same, "name": name})


def _accepts(call: Callable[[], object]) -> bool:
    try:
        call()
    except (InvalidArgumentError, fastjsonschema.JsonSchemaValueException):
        return False
    return True


def test_a_refused_number_is_shown_as_it_was_sent() -> None:
    whole = Event("e", pk="E#{ms}", sk="E", attributes={"ms": int})
    with counters_in_memory([Aggregate("n", whole)]) as counters:
        with pytest.raises(InvalidArgumentError, match=r"^invalid ms=1\.5: expected a whole number$"):
            counters.accept(whole, {"ms": Decimal("1.5")})
        with pytest.raises(InvalidArgumentError, match=r"^invalid ms=\[1\.5\]: expected a whole number$"):
            counters.accept(whole, {"ms": [Decimal("1.5")]})
