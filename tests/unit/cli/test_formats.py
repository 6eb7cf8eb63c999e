"""Numbers, spans, reasons and typed attributes, as all commands write and read them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from dynamodb_counters import Event
from dynamodb_counters.cli.output import number, reason_text, span
from dynamodb_counters.cli.session import typed


def test_a_number_has_separators_and_few_decimals() -> None:
    shown = [number(value) for value in (12345, Decimal("0.10"), Decimal(10) / 3, None)]
    assert shown == ["12,345", "0.1", "3.3333", "-"]


def test_a_span_has_its_two_greatest_units() -> None:
    shown = [span(length) for length in (59, 3600, 90_061, timedelta(days=7))]
    assert shown == ["59 s", "1 h", "1 d 1 h", "7 d"]


def test_a_reason_that_all_names_share_is_shown_once() -> None:
    assert reason_text("shops: 'price' is missing; towns: 'price' is missing") == "'price' is missing"


def test_an_attribute_is_typed_by_its_declaration() -> None:
    event = Event("view", key="url", attributes={"url": str, "ms": int})
    assert typed(event, {"url": "1", "ms": "1"}) == {"url": "1", "ms": Decimal(1)}
