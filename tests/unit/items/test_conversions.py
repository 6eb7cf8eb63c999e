"""Values with a clear meaning are converted, alike in attributes, keys and derived fields; what has none is refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Counter, Counters, Event, RejectedEventError, Sum
from dynamodb_counters._items.conversions import converted, key_text
from dynamodb_counters._items.derived_fields import derivation, expected_text
from dynamodb_counters._timeline.tiers import BY_NAME
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_MOMENTS = st.datetimes(timezones=st.just(UTC))


class _Color(Enum):
    RED = "red"
    DEPTH = 7


class _Text(str, Enum):  # noqa: UP042 - such enums print as their names
    RED = "red"


class _Name(StrEnum):
    RED = "red"


class _Level(IntEnum):
    HIGH = 3


class _NumPyLike(float):
    def __repr__(self) -> str:
        return f"float64({float(self)})"


_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ID = UUID("6F9619FF-8B86-D011-B42D-00CF4FC964FF")

_CLEAR: list[tuple[Any, dict[str, str]]] = [
    (_NOON, {"S": "2026-11-20T12:00:00Z"}),
    (_NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), {"S": "2026-11-20T12:00:00Z"}),
    (_NOON + timedelta(microseconds=1), {"S": "2026-11-20T12:00:00.000001Z"}),
    (date(2026, 11, 20), {"S": "2026-11-20"}),
    (_ID, {"S": "6f9619ff-8b86-d011-b42d-00cf4fc964ff"}),
    (_Color.RED, {"S": "red"}),
    (_Color.DEPTH, {"N": "7"}),
    (_Text.RED, {"S": "red"}),
    (_Name.RED, {"S": "red"}),
    (_Level.HIGH, {"N": "3"}),
    (3.0, {"N": "3"}),
    (-0.0, {"N": "0"}),
    (9.99, {"N": "9.99"}),
    (2.0**53 - 1, {"N": "9007199254740991"}),
    (1e22, {"N": str(10**22)}),
    (_NumPyLike(0.5), {"N": "0.5"}),
]


@pytest.mark.parametrize(("value", "typed"), _CLEAR)
def test_values_with_a_clear_meaning_are_stored_and_stand_in_keys(value: Any, typed: dict[str, str]) -> None:
    [(kind, text)] = typed.items()

    assert typed_item(None, {"a": value}) == {"a": typed}
    assert typed_item(None, {"a": [{"b": (value,)}]}) == {"a": {"L": [{"M": {"b": {"L": [typed]}}}]}}
    assert typed_item(None, {"a": {value}}) == {"a": {f"{kind}S": [text]}}
    assert key_text("a", value) == text
    assert type(key_text("a", value)) is str
    assert f"{key_text('a', value)}" == text


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (datetime(2026, 11, 20), "a datetime with a time zone, such as datetime.now"),  # noqa: DTZ001
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "a moment in the years 1 to 9999"),
        (math.nan, "a finite number"),
        (-math.inf, "a finite number"),
        (0.1 + 0.2, "a float of at most 15 digits, which is exact: round it, or pass a Decimal or int"),
        (2.0**53, "a float of at most 15 digits"),
        (1e300, "a magnitude"),
    ],
)
def test_ambiguous_values_are_refused_with_advice(value: Any, advice: str) -> None:
    for wrapped in (value, [value]):
        with pytest.raises(InvalidArgumentError, match=f"^invalid price=.*: expected {advice}") as refused:
            typed_item(None, {"price": wrapped})
        assert refused.value.argument == "price"


@given(st.decimals(-(10**15) + 1, 10**15 - 1, places=3).filter(lambda number: abs(number) < 10**12))
def test_a_float_that_was_written_as_a_decimal_is_that_decimal(number: Decimal) -> None:
    assert converted("n", float(number)) == number


@given(st.floats(1e-120, 1e120) | st.floats(-1e120, -1e-120) | st.integers(-(2**60), 2**60).map(float))
def test_a_float_that_is_taken_is_the_number_it_prints_as(number: float) -> None:
    try:
        found = converted("n", number)
    except InvalidArgumentError:
        assert len(Decimal(repr(number)).normalize().as_tuple().digits) > 15
    else:
        assert found == Decimal(repr(number))
        assert float(found) == number


_SALE = Event("sale", pk="DAY#{day}", sk="ID#{id}")
_TOTALS = Aggregate("totals", _SALE, pk="DAY#{day}", sk="TOTAL", measures={"n": Count(), "price": Sum("price")})

_SOLD = Counter("sold", by="day")


@pytest.fixture
def counters() -> Counters:
    table: Any = MemoryTable(VirtualClock(), 1, 1)
    return Counters(table.name, client=table)


def test_every_door_knows_an_event_by_the_same_key(counters: Counters) -> None:
    typed = {"day": date(2026, 11, 20), "id": _ID, "price": 9.99}
    plain = {"day": "2026-11-20", "id": str(_ID), "price": Decimal("9.99")}

    assert counters.accept(_SALE, typed).status == "accepted"
    assert counters.accept(_SALE, plain).status == "duplicate"
    assert counters.accept_many(_SALE, [typed, plain]).duplicates == [0, 1]
    assert list(counters.events(_SALE, {"day": date(2026, 11, 20)})) == [plain]
    assert counters.retract(_SALE, {"day": date(2026, 11, 20), "id": _ID})
    assert counters.record_once(_SALE, typed, [_TOTALS]).status == "accepted"
    assert counters.get(_TOTALS, {"day": date(2026, 11, 20)}).measures == {"n": 1, "price": Decimal("9.99")}
    for day in (date(2026, 11, 20), "2026-11-20"):
        sold = counters.increment(_SOLD, {"day": day})
    assert sold == {"sold": 2}


def test_a_refused_value_is_named_by_its_attribute(counters: Counters) -> None:
    with pytest.raises(RejectedEventError, match=r"^invalid price=nan: expected a finite number$") as refused:
        counters.accept(_SALE, {"day": 1, "id": 1, "price": math.nan})

    assert (refused.value.argument, refused.value.expected) == ("price", "a finite number")


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
