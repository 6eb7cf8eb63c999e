"""Texts of derived fields, and texts that these can never be."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.derived_fields import derivation, expected_text
from dynamodb_counters._timeline.tiers import BY_NAME

_MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(st.sampled_from(sorted(BY_NAME)), _MOMENTS)
def test_each_bucket_of_a_time_is_a_text_of_its_field(tier: str, moment: datetime) -> None:
    made = derivation(tier)

    assert made is not None
    assert expected_text(f"at:{tier}", made.text({"S": moment.isoformat()})) is None


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("at:day", text) for text in ("", "x", "2026-11-2", "2026-11-31", "20261120", "2026-W47-5", "2026-11-20T")),
        *(("at:hour", text) for text in ("2026-11-20", "2026-11-20 10", "2026-11-20T24", "2026-11-20T10:00")),
        *(("at:minute", text) for text in ("2026-11-20T10:30:00", "2026-11-20T10:30Z", "9999-12-31T24:00")),
        *(("at:month", text) for text in ("2026", "2026-1", "2026-13", "2026-11-01")),
        *(("status:class", text) for text in ("", "2", "200", "0xx", "10xx", "2XX")),
        *(("ms:5,50", text) for text in ("", "7", "..5", "5..50", "50..500")),
    ],
)
def test_another_text_is_never_one_of_a_derived_field(field: str, text: str) -> None:
    assert expected_text(field, text) is not None


def test_words_say_which_texts_a_field_can_have() -> None:
    assert expected_text("at:hour", "10") == "a UTC hour such as '2026-11-20T00'"
    assert expected_text("at:day?never", "x") == "a UTC day such as '2026-11-20', or 'never'"
    assert expected_text("at:day?never", "never") is None


@pytest.mark.parametrize("field", ["url", "address.city", "tags[]", "plan?none"])
def test_another_field_can_be_any_text(field: str) -> None:
    assert expected_text(field, "anything") is None
