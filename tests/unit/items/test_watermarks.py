"""Watermarks are compact, and DynamoDB orders them as the numbers they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.bookkeeping import Watermark, item_bytes, packed, sequence_of
from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS

_SEQUENCES = st.integers(0, 10**SEQUENCE_DIGITS - 1).map(lambda number: f"{number:0{SEQUENCE_DIGITS}}")
_SHARD = "shardId-00000001414576573621-f55eea83"


@given(_SEQUENCES, _SEQUENCES)
def test_the_order_of_bytes_is_that_of_sequence_numbers(one: str, two: str) -> None:
    assert (packed(one) < packed(two)) == (one < two)
    assert sequence_of({"B": packed(one)}) == one


def test_a_watermark_takes_28_bytes_at_most_with_the_numbers_of_today() -> None:
    watermark = Watermark(_SHARD)

    assert item_bytes(dict(zip([watermark.name], watermark.values(f"{10**24:040}"), strict=True))) <= 28
