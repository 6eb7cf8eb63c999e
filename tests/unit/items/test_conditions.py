"""Conditions mean what DynamoDB's expressions mean, checked against a plain evaluator of those rules.

Only null differs: it is missing.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conditions import Attr, Condition, compile_condition
from dynamodb_counters.errors import InvalidArgumentError

Image = dict[str, dict[str, Any]]

_STRINGS = st.sampled_from(["", "a", "ab", "b", "Z", "é", "\ue000", "\U0001f600", "1", "10", "true"])
_NUMBERS = st.sampled_from([0, 1, 10, -1, Decimal("1.5"), Decimal("1.50"), Decimal("1E+1"), 10**37, Decimal("-0.001")])
_ORDERED = st.one_of(_STRINGS, _NUMBERS)
_ATTRIBUTES = st.one_of(
    _STRINGS.map(lambda text: {"S": text}),
    _NUMBERS.map(lambda number: {"N": str(number)}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.sampled_from([{"NULL": True}, {"L": []}, {"M": {}}, {"SS": ["a"]}, {"B": "YQ=="}]),
)
_IMAGES = st.dictionaries(st.sampled_from(["a", "b"]), _ATTRIBUTES)
_NULL: dict[str, Any] = {"NULL": True}


def _holds(condition: Condition, image: Image) -> bool:
    name, parts = condition.operator, condition.operands
    if condition.attribute is None:
        results = [_holds(part, image) for part in parts]
        return {"and": all(results), "or": any(results), "not": not results[0]}[name]
    [(kind, raw)] = image.get(condition.attribute, _NULL).items()
    if name == "exists":
        return kind != "NULL"
    sides = _like(kind, raw, *parts)
    if sides is None:
        return name == "ne"
    return sides[0].startswith(sides[1]) if name == "begins_with" else bool(getattr(operator, name)(*sides))


def _like(kind: str, raw: Any, value: object) -> tuple[Any, Any] | None:
    """Give both sides in one comparable form, or None where DynamoDB would not compare them."""
    if kind == "BOOL" and isinstance(value, bool):
        return raw, value
    if kind == "S" and isinstance(value, str):
        return raw.encode(), value.encode()
    if kind == "N" and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Fraction(raw), Fraction(value)
    return None


_ATTRS = st.builds(Attr, st.sampled_from(["a", "b"]))
_CONDITIONS = st.recursive(
    st.one_of(
        _ATTRS.map(Attr.exists),
        st.builds(Attr.begins_with, _ATTRS, _STRINGS),
        *(st.builds(equals, _ATTRS, _ORDERED | st.booleans()) for equals in (Attr.eq, Attr.ne)),
        *(st.builds(compare, _ATTRS, _ORDERED) for compare in (Attr.lt, Attr.le, Attr.gt, Attr.ge)),
    ),
    lambda inner: st.one_of(
        st.builds(Condition.__and__, inner, inner), st.builds(Condition.__or__, inner, inner), inner.map(operator.inv)
    ),
)


@given(_CONDITIONS, st.lists(_IMAGES, min_size=1, max_size=8))
def test_a_condition_holds_exactly_where_dynamodb_says_if_null_is_missing(
    condition: Condition, images: list[Image]
) -> None:
    predicate = compile_condition(condition)

    for image in images:
        assert predicate(image) is _holds(condition, image), (condition, image)


def test_other_methods_combine_these() -> None:
    a = Attr("a")

    assert a.between(1, 2) == a.ge(1) & a.le(2)
    assert a.is_in([1, "x"]) == a.eq(1) | a.eq("x")
    assert a.not_exists() == ~a.exists()
    assert [a.eq(1).operator, a.ne(1).operator, a.lt(1).operator, a.le(1).operator] == ["eq", "ne", "lt", "le"]
    assert [a.gt(1).operator, a.ge(1).operator, (~a.eq(1)).operator] == ["gt", "ge", "not"]
    assert [(a.eq(1) & a.eq(2)).operator, (a.eq(1) | a.eq(2)).operator] == ["and", "or"]


@pytest.mark.parametrize(
    ("call", "value", "argument"),
    [
        *((Attr, name, "name") for name in ("", None, 5, b"a")),
        *((Attr("a").eq, value, "value") for value in (1.5, None, b"x", 10**39 + 1)),
        *((Attr("a").lt, value, "value") for value in (True, None)),
        *((Attr("a").is_in, values, "values") for values in (None, "abc", 5, ())),
        (Attr("a").is_in, [1.5], "value"),
        *((Attr("a").begins_with, prefix, "prefix") for prefix in (None, 1, b"x")),
        (compile_condition, Condition("like", "a", ("x",)), "operator"),
        (compile_condition, Condition("eq", None, ("x",)), "operator"),
        (compile_condition, Condition("xor", None), "operator"),
    ],
)
def test_what_no_condition_can_be_is_refused(call: Any, value: Any, argument: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid {argument}="):
        call(value)


@pytest.mark.parametrize("other", [True, None, "a", 1])
def test_a_condition_combines_with_conditions_only(other: Any) -> None:
    for combine in (operator.and_, operator.or_):
        with pytest.raises(TypeError):
            combine(Attr("a").exists(), other)
    with pytest.raises(InvalidArgumentError):
        bool(Attr("a").exists())
