"""Numbers in memory are exact and refused as DynamoDB refuses them: 38 digits, 1E-130 to 9.9E+125."""

from __future__ import annotations

import pytest

from simulation.memory.typed_values import InvalidValueError, add, canonical


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1" * 39, "38 digits"),
        ("-0." + "1" * 39, "38 digits"),
        ("1E126", "overflow"),
        ("1E-131", "underflow"),
        ("NaN", "numeric value"),
        ("-Infinity", "numeric value"),
        ("one", "numeric value"),
        ("", "numeric value"),
    ],
)
def test_numbers_that_dynamodb_cannot_store_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        canonical(text)


@pytest.mark.parametrize(
    ("one", "two", "total"),
    [("9" * 38, "1", "1" + "0" * 38), ("1E125", "-1E125", "0"), ("0.1", "0.2", "0.3"), ("1E-130", "-0", f"0.{1:0130}")],
)
def test_sums_are_exact(one: str, two: str, total: str) -> None:
    assert add(one, two) == total


@pytest.mark.parametrize(("one", "two"), [("9" * 38, "0.1"), ("1E125", "1E-130"), ("9E125", "9E125")])
def test_sums_that_dynamodb_cannot_store_are_refused(one: str, two: str) -> None:
    with pytest.raises(InvalidValueError):
        add(one, two)


def test_a_number_has_one_form() -> None:
    assert [canonical(text) for text in ("1E+2", "0.10")] == ["100", "0.1"]
