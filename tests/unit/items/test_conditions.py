"""Conditions mean what DynamoDB's expressions mean, checked against a plain evaluator of those rules.

Only null differs: it is missing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conditions import Attr, Condition, compile_condition
from dynamodb_counters.errors import InvalidArgumentError

Image = dict[str, dict[str, Any]]
Oracle = Callable[[Image], bool]
Tested = tuple[Condition, Oracle]

_NAMES = st.sampled_from(["a", "b"])
_STRINGS = st.sampled_from(["", "a", "ab", "b", "Z", "é", "\ue000", "\U0001f600", "1", "10", "true"])
_NUMBERS = st.sampled_from([0, 1, 10, -1, Decimal("1.5"), Decimal("1.50"), Decimal("1E+1"), 10**37, Decimal("-0.001")])
_VALUES = st.one_of(_STRINGS, _NUMBERS, st.booleans())

_ATTRIBUTES = st.one_of(
    _STRINGS.map(lambda text: {"S": text}),
    _NUMBERS.map(lambda number: {"N": str(number)}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.sampled_from([{"NULL": True}, {"L": []}, {"M": {}}, {"SS": ["a"]}, {"B": "YQ=="}]),
)
_IMAGES = st.dictionaries(_NAMES, _ATTRIBUTES)


def _like(attribute: dict[str, Any] | None, value: object) -> tuple[Any, Any] | None:
    """Give both sides in one comparable form, or None where DynamoDB would not compare them."""
    if attribute is None:
        return None
    [(kind, raw)] = attribute.items()
    if kind == "BOOL" and isinstance(value, bool):
        return raw, value
    if kind == "S" and isinstance(value, str):
        return raw.encode(), value.encode()
    if kind == "N" and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Fraction(raw), Fraction(value)
    return None


def _comparison(name: str, attribute: str, value: Any) -> Tested:
    def oracle(image: Image) -> bool:
        sides = _like(image.get(attribute), value)
        if sides is None:
            return name == "ne"
        return bool(getattr(operator, name)(*sides))

    return getattr(Attr(attribute), name)(value), oracle


def _between(attribute: str, low: Any, high: Any) -> Tested:
    def oracle(image: Image) -> bool:
        least, most = _like(image.get(attribute), low), _like(image.get(attribute), high)
        return least is not None and most is not None and least[1] <= least[0] and most[0] <= most[1]

    return Attr(attribute).between(low, high), oracle


def _is_in(attribute: str, values: list[Any]) -> Tested:
    def oracle(image: Image) -> bool:
        sides = [_like(image.get(attribute), value) for value in values]
        return any(side is not None and side[0] == side[1] for side in sides)

    return Attr(attribute).is_in(values), oracle


def _begins_with(attribute: str, prefix: str) -> Tested:
    return Attr(attribute).begins_with(prefix), lambda image: any(
        text.startswith(prefix) for kind, text in image.get(attribute, {}).items() if kind == "S"
    )


_NULL: dict[str, Any] = {"NULL": True}

_ORDERED = st.one_of(_STRINGS, _NUMBERS)
_LEAVES: st.SearchStrategy[Tested] = st.one_of(
    st.builds(_comparison, st.sampled_from(["eq", "ne"]), _NAMES, _VALUES),
    st.builds(_comparison, st.sampled_from(["lt", "le", "gt", "ge"]), _NAMES, _ORDERED),
    st.builds(_between, _NAMES, _ORDERED, _ORDERED),
    st.builds(_is_in, _NAMES, st.lists(_VALUES, min_size=1, max_size=3)),
    st.builds(_begins_with, _NAMES, _STRINGS),
    _NAMES.map(lambda name: (Attr(name).exists(), lambda image: "NULL" not in image.get(name, _NULL))),
    _NAMES.map(lambda name: (Attr(name).not_exists(), lambda image: "NULL" in image.get(name, _NULL))),
)


def _and(one: Tested, two: Tested) -> Tested:
    return one[0] & two[0], lambda image: one[1](image) and two[1](image)


def _or(one: Tested, two: Tested) -> Tested:
    return one[0] | two[0], lambda image: one[1](image) or two[1](image)


def _not(one: Tested) -> Tested:
    return ~one[0], lambda image: not one[1](image)


_CONDITIONS = st.recursive(
    _LEAVES, lambda inner: st.one_of(st.builds(_and, inner, inner), st.builds(_or, inner, inner), inner.map(_not))
)


@given(_CONDITIONS, st.lists(_IMAGES, min_size=1, max_size=8))
def test_a_condition_holds_exactly_where_dynamodb_says_if_null_is_missing(tested: Tested, images: list[Image]) -> None:
    condition, oracle = tested
    predicate = compile_condition(condition)

    for image in images:
        assert predicate(image) is oracle(image), (condition, image)


@pytest.mark.parametrize("name", ["", None, 5, b"a"])
def test_an_attribute_without_a_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="name=") as refused:
        Attr(name)

    assert refused.value.argument == "name"


_INCOMPARABLE = [1.5, None, b"x", 10**39 + 1]


@pytest.mark.parametrize(
    ("method", "value", "argument"),
    [
        *((method, value, "value") for method in ("eq", "ne", "lt", "le", "gt", "ge") for value in _INCOMPARABLE),
        *(("is_in", values, "values") for values in (None, "abc", 5)),
        ("is_in", [], "values"),
        ("is_in", [1.5], "value"),
        *(("begins_with", prefix, "prefix") for prefix in (None, 1, b"x")),
    ],
)
def test_a_value_that_cannot_be_compared_with_is_refused(method: str, value: Any, argument: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        getattr(Attr("a"), method)(value)

    assert refused.value.argument == argument


@pytest.mark.parametrize("other", [True, None, "a", 1])
def test_a_condition_combines_with_conditions_only(other: Any) -> None:
    with pytest.raises((InvalidArgumentError, TypeError)):
        Attr("a").exists() & other
    with pytest.raises((InvalidArgumentError, TypeError)):
        Attr("a").exists() | other


@pytest.mark.parametrize(
    "condition", [Condition("like", "a", ("x",)), Condition("eq", None, ("x",)), Condition("xor", None)]
)
def test_an_unknown_operator_is_refused(condition: Condition) -> None:
    with pytest.raises(InvalidArgumentError, match="operator="):
        compile_condition(condition)
