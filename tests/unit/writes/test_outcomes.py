"""Events that are not accepted cannot be overlooked: outcomes tell duplicates, conflicts and refusals apart."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Count,
    Counters,
    Event,
    InvalidArgumentError,
    Outcome,
    Outcomes,
    OutcomeStatus,
    Packed,
    RejectedEventError,
    UnavailableError,
)
from dynamodb_counters._items.conversions import require_storable
from dynamodb_counters._writes.accept import differing
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE
from simulation.clock import EPOCH
from tests.unit.writes.clients import ScriptedClient, failure
from tests.unit.writes.conftest import Site

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_HIT = Event("hit", pk="URL#{url}", sk="{at}#{id}", retention=timedelta(days=1), packed=Packed(time="at"))
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="N", measures={"n": Count()})
_ONE = {"url": "/", "id": "1"}
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


def _scripted(**scripts: Any) -> Counters:
    client: Any = ScriptedClient(**scripts)
    return Counters("table", client=client)


@pytest.mark.parametrize(
    ("values", "field", "text"),
    [
        ({"url": "/"}, "id", "invalid id=None: expected a value for 'ID#{id}'"),
        ({**_ONE, "price": object}, "price", "invalid price=<class 'object'>: expected a value DynamoDB can store"),
        ({**_ONE, "ttl": 1}, "values", r"invalid values='ttl': expected attribute names that are not reserved"),
        (None, "values", "invalid values=None: expected a mapping"),
    ],
)
def test_one_event_that_cannot_be_accepted_raises(values: Any, field: str, text: str) -> None:
    for write in (_scripted().accept, partial(_scripted().record_once, declarations=[_VIEWS])):
        with pytest.raises(RejectedEventError) as refused:
            write(_VIEW, values)
        assert str(refused.value).startswith(text)
        assert (refused.value.argument, isinstance(refused.value, InvalidArgumentError)) == (field, True)


def test_an_event_that_dynamodb_refuses_raises_with_its_reason() -> None:
    counters = _scripted(put_item=[failure("ValidationException", "PutItem")])

    with pytest.raises(RejectedEventError, match=r"\(ValidationException\) .*: ValidationException by script$"):
        counters.accept(_VIEW, _ONE)


def test_a_packed_event_that_comes_too_late_or_too_early_raises(counters: Counters) -> None:
    for at, expected in ((0, "a time in the last 1 day"), (EPOCH + 10**6, "a time at most 0:15:00 ahead of now")):
        with pytest.raises(RejectedEventError, match=r"^invalid at=") as refused:
            counters.accept(_HIT, {**_ONE, "at": int(at)})
        assert refused.value.argument == "at"
        assert refused.value.expected.startswith(expected)


@pytest.mark.parametrize("wrong", [_ONE, "url", b"url", None, 5])
def test_many_events_are_an_iterable_of_mappings(wrong: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid events=.*: expected an iterable of mappings, one per event"
    ):
        _scripted().accept_many(_VIEW, wrong)


def test_a_table_without_a_name_is_refused_by_the_argument_it_has() -> None:
    for name in ("", None):
        wrong: Any = name
        with pytest.raises(InvalidArgumentError, match=f"^invalid table_name={name!r}: expected the name or ARN"):
            Counters(wrong)


@pytest.fixture
def outcomes(counters: Counters) -> Outcomes:
    counters.accept(_VIEW, {**_ONE, "n": 1})
    return counters.accept_many(_VIEW, [{**_ONE, "n": 1}, {"url": "/"}, {**_ONE, "n": 2}, {**_ONE, "id": 2}, {"id": 1}])


def test_many_outcomes_are_distinguished_and_summed_up(outcomes: Outcomes) -> None:
    assert [outcome.status for outcome in outcomes] == ["duplicate", "rejected", "conflict", "accepted", "rejected"]
    assert [outcomes.indexes(status) for status in OutcomeStatus] == [[3], [0], [2], [1, 4], [], []]
    assert outcomes.indexes("accepted", "conflict") == [2, 3]
    with pytest.raises(InvalidArgumentError, match=r"^invalid statuses='taken': expected one of 'accepted', "):
        outcomes.indexes("taken")
    first = "event 1: invalid id=None: expected a value for 'ID#{id}'"
    assert str(outcomes) == f"1 accepted, 1 duplicate, 1 conflict, 2 rejected: {first}"


def test_many_outcomes_raise_for_the_first_that_was_rejected(outcomes: Outcomes) -> None:
    with pytest.raises(
        RejectedEventError, match=r"^event 1: invalid id=None: .*; 1 more of 5 events were rejected$"
    ) as it:
        outcomes.raise_for_rejected()

    assert (it.value.argument, it.value.value) == ("id", None)


_FAILED = [Outcome(OutcomeStatus.FAILED, reason) for reason in ("throttled", "slow")]
_LATE, _BAD = Outcome(OutcomeStatus.TOO_LATE, "old"), Outcome(OutcomeStatus.REJECTED, "bad")


@pytest.mark.parametrize(
    ("outcomes", "text", "error", "message"),
    [
        (
            [ACCEPTED, *_FAILED],
            "1 accepted, 2 failed: event 1: throttled",
            UnavailableError,
            "2 of 3 events, to be sent again: event 1: throttled",
        ),
        (
            [ACCEPTED, _LATE, _BAD],
            "1 accepted, 1 rejected, 1 too_late: event 1: old",
            RejectedEventError,
            "event 1: old; 1 more of 3 events were rejected",
        ),
    ],
)
def test_outcomes_raise_for_what_has_failed_or_comes_too_late(
    outcomes: list[Outcome], text: str, error: type[Exception], message: str
) -> None:
    assert str(Outcomes(outcomes)) == text
    with pytest.raises(error, match=f"^{message}$"):
        Outcomes(outcomes).raise_for_rejected()


def test_outcomes_without_a_rejected_event_raise_nothing() -> None:
    fine = Outcomes([ACCEPTED, DUPLICATE, DUPLICATE, Outcome(OutcomeStatus.CONFLICT, "other")])

    assert fine.raise_for_rejected() is fine
    assert str(fine) == "1 accepted, 2 duplicate, 1 conflict: event 3: other"
    assert str(Outcomes()) == "0 accepted"
    assert Outcomes([ACCEPTED] * 3) == [ACCEPTED] * 3


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


_ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}", retention=timedelta(days=1))
_REVISED = Event("revised", pk="SHOP#{shop}", sk="ORDER#{id}", version="revision")
_PACKED = Event("packed", pk="SHOP#{shop}", sk="ORDER#{at}#{id}", packed=Packed(time="at"))
_ORDERS = Aggregate("orders", _ORDER, pk="SHOP#{shop}", sk="N", measures={"n": Count()})


def _order(number: int = 1, **values: Any) -> dict[str, Any]:
    return {"shop": "x", "id": number, "at": int(EPOCH), **values}


def _statuses(outcomes: Any) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_one_event_meets_what_is_stored_by_one_put(site: Site, counters: Counters) -> None:
    counters.accept(_ORDER, _order(total=5, note="a"))
    site.clock.advance(60)
    before = site.table.usage.calls

    assert counters.accept(_ORDER, _order(total=Decimal("5.00"), note="a")).status == "duplicate"
    outcome = counters.accept(_ORDER, _order(total=6, note="a", currency="EUR"))

    assert outcome.status == "conflict"
    assert outcome.reason == "the stored event of this key differs in 'currency', 'total'"
    assert outcome.stored == _order(total=5, note="a")
    assert site.table.usage.calls == before + 2
    assert [item["total"] for item in site.table.items()] == [{"N": "5"}]


def test_conflicts_of_a_transaction_are_returned_too(counters: Counters) -> None:
    counters.record_once(_ORDER, _order(total=5), [_ORDERS])

    outcomes = [counters.record_once(_ORDER, _order(total=total), [_ORDERS]) for total in (5, 6)]
    alone = counters.accept(_ORDER, _order(total=6))

    assert _statuses(outcomes) == ["duplicate", "conflict"]
    assert outcomes[1].stored == alone.stored == _order(total=5)


def test_events_of_a_call_are_compared_with_each_other_and_with_what_is_stored(counters: Counters) -> None:
    orders = [_order(total=total) for total in (5, 5, 6)]

    outcomes = counters.accept_many(_ORDER, orders)

    assert _statuses(outcomes) == ["accepted", "duplicate", "conflict"]
    assert outcomes[2].stored == orders[0]
    assert _statuses(counters.accept_many(_ORDER, orders)) == ["duplicate", "duplicate", "conflict"]


def test_an_event_is_taken_though_another_of_its_key_cannot_be(counters: Counters) -> None:
    orders = [_order(note="x" * 500_000), _order(note="x")]

    assert _statuses(counters.accept_many(_ORDER, orders)) == ["rejected", "accepted"]


def test_an_older_version_is_a_repetition_and_another_payload_of_the_same_a_conflict(counters: Counters) -> None:
    counters.accept(_REVISED, _order(revision=2, total=5))

    drawn = [(1, 4), (2, 5), (2, 6), (3, 7)]
    orders = [_order(revision=revision, total=total) for revision, total in drawn]

    assert _statuses(counters.accept_many(_REVISED, orders)) == ["duplicate", "duplicate", "conflict", "accepted"]


def test_payloads_of_packed_events_are_not_compared(counters: Counters) -> None:
    orders = [_order(total=total) for total in (5, 6)]

    for statuses in (["accepted", "duplicate"], ["duplicate", "duplicate"]):
        assert _statuses(counters.accept_many(_PACKED, orders)) == statuses


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1, Decimal("1.00"), True),
        ("1", 1, False),
        (True, 1, False),
        ([1, {"a": Decimal("2.0")}], [Decimal(1), {"a": 2}], True),
        ([1, {"a": 2}], [1, {"a": 3}], False),
        ([True], [1], False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a", "b"}, {"b", "a"}, True),
        ({1, 2}, {Decimal("1.0"), 2}, True),
        (b"a", b"a", True),
        (b"a", b"b", False),
        (None, False, False),
    ],
)
def test_payloads_are_the_same_if_dynamodb_stores_them_alike(one: Any, other: Any, *, is_same: bool) -> None:
    images = [typed_item(_ORDER, {"shop": "x", "id": 1, "value": value}) for value in (one, other)]

    assert differing(_ORDER, *images) == ([] if is_same else ["value"])
