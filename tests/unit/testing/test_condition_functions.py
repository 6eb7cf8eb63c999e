"""Functions of conditions hold where DynamoDB's do."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.memory.expressions import Placeholders, compile_condition


@pytest.mark.parametrize(
    ("function", "item", "value", "holds"),
    [
        ("begins_with", {"S": "abc"}, {"S": "ab"}, True),
        ("begins_with", {"S": "abc"}, {"S": "bc"}, False),
        ("contains", {"S": "abc"}, {"S": "bc"}, True),
        ("contains", {"S": "abc"}, {"S": "d"}, False),
        ("attribute_type", {"S": "abc"}, {"S": "S"}, True),
        ("attribute_type", {"S": "abc"}, {"S": "a"}, False),
    ],
)
def test_a_function_holds(function: str, item: Any, value: Any, *, holds: bool) -> None:
    given = Placeholders.of({"ExpressionAttributeNames": {"#a": "a"}, "ExpressionAttributeValues": {":v": value}})
    assert compile_condition(f"{function}(#a, :v)")({"a": item}, given) is holds
