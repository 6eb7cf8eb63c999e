"""Values are typed without boto3's serializer as it would type them: the same values, the same refusals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.conversions import require_storable
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError

_NUMBERS = (
    st.integers()
    | st.integers(-(10**40), 10**40)
    | st.decimals()
    | st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent),
        st.integers(-(10**39), 10**39),
        st.integers(-170, 130),
    )
)
_SCALARS = _NUMBERS | st.text(max_size=5) | st.none() | st.booleans() | st.binary(max_size=3)
_VALUES = st.recursive(
    _SCALARS | st.sets(st.integers(0, 3), min_size=1) | st.sets(st.text(max_size=2), min_size=1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3),
    max_leaves=8,
)


class _Serializer(TypeSerializer):
    """The serializer takes numbers that DynamoDB does not, and refuses a 0 with an exponent far from 0."""

    def _serialize_n(self, value: Any) -> str:
        number = require_storable("a", value)
        return str(super()._serialize_n(number) if number else 0)  # type: ignore[misc]


@given(_VALUES)
def test_values_are_typed_as_by_the_serializer(value: Any) -> None:
    try:
        expected = _Serializer().serialize(value)
    except Exception:  # noqa: BLE001
        with pytest.raises(InvalidArgumentError):
            typed_item(None, {"a": value})
    else:
        assert typed_item(None, {"a": value}) == {"a": expected}


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}, lambda value: (value,)])
def test_nesting_ends_at_thirty_two_levels(wrap: Any) -> None:
    value: Any = 1
    for _ in range(31):
        value = wrap(value)
    assert typed_item(None, {"a": value})
    with pytest.raises(InvalidArgumentError, match="at most 32 nested levels"):
        typed_item(None, {"a": wrap(value)})
