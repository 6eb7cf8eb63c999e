"""Events that are not accepted cannot be overlooked: outcomes tell duplicates, conflicts and refusals apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

import dynamodb_counters
from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Counters,
    Event,
    InvalidArgumentError,
    Outcome,
    Outcomes,
    OutcomeStatus,
    Packed,
    RejectedEventError,
    Sum,
    UnavailableError,
    Window,
)
from dynamodb_counters._assumptions import LONGEST_REQUEST, TRIES
from dynamodb_counters._items.conversions import require_storable
from dynamodb_counters._writes.accept import accept, accept_many, differences, typed_item
from dynamodb_counters._writes.direct_counts import MAX_COUNTED, increment, record_once
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE
from simulation.clock import EPOCH, VirtualClock
from simulation.memory.client_errors import failure
from simulation.world import World
from tests.unit.writes.clients import ScriptedClient, cancelled, scripted_table

_failed = partial(failure, "PutItem")
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_HIT = Event("hit", pk="URL#{url}", sk="{at}#{id}", retention=timedelta(days=1), packed=Packed(time="at"))
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="N", measures={"n": Count()})
_ONE = {"url": "/", "id": "1"}
_SCALED = st.builds(
    lambda n, exponent: Decimal(n).scaleb(exponent), st.integers(-(10**39), 10**39), st.integers(-170, 130)
)
_NUMBERS = st.integers() | st.integers(-(10**40), 10**40) | st.decimals() | _SCALED
_SCALARS = _NUMBERS | st.text(max_size=5) | st.none() | st.booleans() | st.binary(max_size=3)
_VALUES = st.recursive(
    _SCALARS | st.sets(st.integers(0, 3), min_size=1) | st.sets(st.text(max_size=2), min_size=1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _scripted(**scripts: Any) -> Counters:
    client: Any = ScriptedClient(**scripts)
    return Counters("table", client=client)


def test_an_event_that_dynamodb_refuses_raises_with_its_reason() -> None:
    counters = _scripted(put_item=[_failed("ValidationException")])

    with pytest.raises(RejectedEventError, match=r"\(ValidationException\) .*: injected$"):
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


@pytest.mark.parametrize("name", ["", None])
def test_a_table_without_a_name_is_refused_by_the_argument_it_has(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid table_name={name!r}: expected the name or ARN"):
        Counters(name)


def test_many_outcomes_are_distinguished_and_summed_up_and_raise_for_the_first_rejected(counters: Counters) -> None:
    counters.accept(_VIEW, {**_ONE, "n": 1})
    views: list[dict[str, Any]] = [{**_ONE, "n": 1}, {"url": "/"}, {**_ONE, "n": 2}, {**_ONE, "id": 2}, {"id": 1}]
    outcomes = counters.accept_many(_VIEW, views)

    assert [outcome.status for outcome in outcomes] == ["duplicate", "rejected", "conflict", "accepted", "rejected"]
    assert [outcomes.indexes(status) for status in OutcomeStatus] == [[3], [0], [2], [1, 4], [], []]
    assert outcomes.indexes("accepted", "conflict") == [2, 3]
    with pytest.raises(InvalidArgumentError, match=r"^invalid statuses='taken': expected one of 'accepted', "):
        outcomes.indexes("taken")
    first = "event 1: invalid id=None: expected a value for 'ID#{id}'"
    assert str(outcomes) == f"1 accepted, 1 duplicate, 1 conflict, 2 rejected: {first}"
    with pytest.raises(RejectedEventError, match=r"^event 1: .*; 1 more of 5 events were rejected$") as refused:
        outcomes.raise_for_rejected()
    assert (refused.value.argument, refused.value.value) == ("id", None)


_FAILED = [Outcome(OutcomeStatus.FAILED, reason) for reason in ("throttled", "slow")]
_LATE, _BAD = Outcome(OutcomeStatus.TOO_LATE, "old"), Outcome(OutcomeStatus.REJECTED, "bad")


@pytest.mark.parametrize(
    ("outcomes", "text", "error", "message"),
    [
        (_FAILED, "2 failed: {}", UnavailableError, "2 of 3 events, to be sent again: {}"),
        ([_LATE, _BAD], "1 rejected, 1 too_late: {}", RejectedEventError, "{}; 1 more of 3 events were rejected"),
    ],
)
def test_outcomes_raise_for_what_has_failed_or_comes_too_late(
    outcomes: list[Outcome], text: str, error: type[Exception], message: str
) -> None:
    all_of_them, first = Outcomes([ACCEPTED, *outcomes]), f"event 1: {outcomes[0].reason}"
    assert str(all_of_them) == f"1 accepted, {text.format(first)}"
    with pytest.raises(error, match=f"^{message.format(first)}$"):
        all_of_them.raise_for_rejected()


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
_ORDERS = Aggregate("orders", _ORDER, pk="SHOP#{shop}", sk="N", measures={"n": Count()})


def _order(number: int = 1, **values: Any) -> dict[str, Any]:
    return {"shop": "x", "id": number, "at": int(EPOCH), **values}


def _statuses(outcomes: Any) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_one_event_meets_what_is_stored_by_one_put(site: World, counters: Counters) -> None:
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
    outcomes = [counters.record_once(_ORDER, _order(total=total), [_ORDERS]) for total in (5, 5, 6)]
    assert _statuses(outcomes) == ["accepted", "duplicate", "conflict"]
    assert outcomes[2].stored == counters.accept(_ORDER, _order(total=6)).stored == _order(total=5)


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


@pytest.mark.parametrize(
    ("payload", "other", "is_same"),
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
def test_payloads_are_the_same_if_dynamodb_stores_them_alike(payload: Any, other: Any, *, is_same: bool) -> None:
    images = [typed_item(_ORDER, {"shop": "x", "id": 1, "value": value}) for value in (payload, other)]

    assert differences(_ORDER, *images) == ([] if is_same else ["value"])


# DynamoDB refuses, throttles and fails: each event gets its own true answer, and nothing inexact


_FAULTS = [_failed("AccessDeniedException"), _failed("ResourceNotFoundException"), NoCredentialsError()]
_REFUSED = [cancelled("None", "ValidationError"), cancelled("None", "ItemCollectionSizeLimitExceeded"), cancelled()]
_REFUSED += [cancelled("TransactionConflict", "ValidationError"), _failed("ValidationException")]


@pytest.mark.parametrize("error", [*_FAULTS, *_REFUSED], ids=str)
def test_a_fault_of_the_deployment_is_raised_from_any_call(error: Exception) -> None:
    table = scripted_table(ScriptedClient(put_item=[error] * 2, transact_write_items=[error]))
    asks: list[Callable[[], object]] = [lambda: record_once(table, _VIEW, _ONE, [_VIEWS])]
    if error in _FAULTS:
        asks += [lambda: accept_many(table, _VIEW, [_ONE]), lambda: accept(table, _VIEW, _ONE)]
    for ask in asks:
        with pytest.raises(type(error)) as raised:
            ask()
        assert raised.value is error


_PASSING: list[Exception] = [
    *map(_failed, ("ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded")),
    *map(_failed, ("ServiceUnavailable", "RequestTimeout", "TransactionInProgressException")),
    *map(_failed, ("TransactionConflictException", "InternalServerError")),
    _failed("502", ResponseMetadata={"HTTPStatusCode": 502}),
    cancelled("None", "TransactionConflict"),
    *(error(endpoint_url="http://table") for error in (ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError)),
]


@pytest.mark.parametrize("error", _PASSING, ids=str)
@pytest.mark.parametrize("packed", [None, Packed("at")])
def test_an_event_that_meets_what_passes_can_be_sent_again(error: Exception, packed: Packed | None) -> None:
    client = ScriptedClient(**dict.fromkeys(("put_item", "query", "transact_write_items"), [error] * 99))
    counters = Counters("table", client=cast("Any", client))
    counters._table = scripted_table(client)
    event, values = replace(_VIEW, sk="ID#{at}#{id}", packed=packed), {"url": "/", "id": "1", "at": 0}
    asks: list[Callable[[], object]] = [
        lambda: counters.accept(event, values),
        lambda: counters.accept_many(event, [values]).raise_for_rejected(),
    ]
    if packed is None:
        count = Aggregate("views", event, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
        asks.append(lambda: counters.record_once(event, values, [count]))
    for ask in asks:
        with pytest.raises(UnavailableError, match="to be sent again"):
            ask()


@pytest.mark.parametrize("error", _PASSING, ids=str)
def test_passing_errors_are_waited_out(error: Exception) -> None:
    client, pauses = ScriptedClient(put_item=[error, error, {}], transact_write_items=[error, {}]), list[float]()

    assert accept(scripted_table(client, pauses), _VIEW, _ONE).status == "accepted"
    assert 0 < pauses[0] < pauses[1] < 2
    assert record_once(scripted_table(client), _VIEW, _ONE, []).status == "accepted"


def test_one_event_is_tried_no_longer_than_a_request_may_take() -> None:
    clock, client = VirtualClock(0.0), ScriptedClient(put_item=[_PASSING[0]] * TRIES)
    table = replace(scripted_table(client), clock=clock, sleep=lambda _: clock.advance(5))
    assert accept(table, _VIEW, _ONE).status == "failed"
    assert clock() <= LONGEST_REQUEST + 5


def test_an_event_that_fails_costs_no_other_its_outcome() -> None:
    def put(arguments: dict[str, Any]) -> dict[str, Any]:
        match arguments["Item"]["id"]["S"]:
            case "1":
                raise _failed("ValidationException")
            case "2":
                raise ReadTimeoutError(endpoint_url="http://table")
        return {}

    table, events = (
        scripted_table(ScriptedClient(put_item=[put] * 15)),
        [{"url": "/", "id": number} for number in "01231"],
    )
    outcomes = accept_many(table, _VIEW, events)
    assert _statuses(outcomes) == ["accepted", "rejected", "failed", "accepted", "rejected"]


def test_passing_errors_are_listed_in_one_place() -> None:
    runtime = Path(dynamodb_counters.__file__).parent
    lists = [file.name for file in runtime.rglob("*.py") if "ProvisionedThroughputExceeded" in file.read_text()]

    assert lists == ["_assumptions.py"]


_WRONG: dict[str, tuple[Any, str]] = {
    "no mapping": (None, "values=None: expected a mapping"),
    "a list": ([("url", "/")], "values=[('url', '/')]: expected a mapping"),
    "no key": ({"url": "/"}, "id=None: expected a value for 'ID#{id}'"),
    "no value": ({**_ONE, "price": object}, "price=<class 'object'>: expected a value DynamoDB can store"),
    "a float of 17 digits": ({**_ONE, "price": 0.1 + 0.2}, "price=0.30000000000000004: expected a float of at most 15"),
    "an infinite float in the key": ({"url": "/", "id": math.inf}, "id=Infinity: expected 0 or a magnitude"),
    "a datetime without a zone": ({"url": "/", "id": datetime(2026, 11, 20)}, "id=datetime.datetime("),  # noqa: DTZ001
    "a flag in the key": ({"url": "/", "id": True}, "id=True: expected"),
    "None in the key": ({"url": None, "id": "1"}, "url=None: expected a string, number, date, UUID or"),
    "bytes in the key": ({"url": b"/", "id": "1"}, "url=b'/': expected"),
    "a reserved name": ({**_ONE, "pk": "x"}, "values='pk': expected attribute names that are not reserved"),
    "the ttl": ({**_ONE, "ttl": 1}, "values='ttl': expected attribute names that are not reserved"),
    "a bookkeeping name": ({**_ONE, "_type": "other"}, "values='_type': expected attribute names"),
    "an empty name": ({**_ONE, "": "x"}, "values='': expected"),
    "a name that is no text": ({**_ONE, 5: "x"}, "values=5: expected"),
    "a lone surrogate": ({"url": "/\ud800", "id": "1"}, "url='/\\ud800': expected"),
    "a lone surrogate in a name": ({**_ONE, "\ud800": "x"}, "\ud800='\\ud800': expected valid Unicode"),
}


@pytest.mark.parametrize(("values", "refusal"), _WRONG.values(), ids=_WRONG)
def test_events_that_cannot_be_stored_are_rejected_without_a_call(values: Any, refusal: str) -> None:
    counters = _scripted()

    alone, [among] = accept(counters._table, _VIEW, values), counters.accept_many(_VIEW, [values])

    assert (alone, alone.status) == (among, "rejected")
    for write in (counters.accept, partial(counters.record_once, declarations=[_VIEWS])):
        with pytest.raises(RejectedEventError) as refused:
            write(_VIEW, values)
        assert str(refused.value) == alone.reason
        assert str(refused.value).startswith(f"invalid {refusal}")
        assert refused.value.argument == refusal.partition("=")[0]


_RATIO = 0.1 + 0.2
_KEPT_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}", retention=timedelta(days=7))
_KEPT_VIEWS = Aggregate("views", _KEPT_VIEW, by="url", n=Count(), bytes=Sum("bytes"))
_SITE = Aggregate("site", _KEPT_VIEW, n=Count())
_RECENT = Window("recent", _KEPT_VIEW, by="url", time="at")
_PAGES = Counter("pages", by="url", n=Count(), bytes=Count())
_TOTAL = Counter("total")
_KEPT_VALUES = {"url": "/", "id": "1", "bytes": 7, "at": 1_790_000_000}


def test_the_pause_is_jittered() -> None:
    pauses, client = list[float](), ScriptedClient(transact_write_items=[cancelled("None", "TransactionConflict"), {}])
    table = replace(scripted_table(client, pauses), jitter=lambda: 0.0)
    assert record_once(table, _KEPT_VIEW, _KEPT_VALUES, [_SITE]).status == "accepted"
    assert pauses == [0.0]


def test_an_event_that_is_there_is_a_duplicate_whatever_else_went_wrong() -> None:
    client = ScriptedClient(transact_write_items=[cancelled("ConditionalCheckFailed", "TransactionConflict")])

    assert record_once(scripted_table(client), _KEPT_VIEW, _KEPT_VALUES, [_SITE]).status == "duplicate"
    assert len(client.calls) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", None), *(("bytes", value) for value in (None, "many", _RATIO)), ("at", "now"), ("at", 1_790_090_000)],
)
def test_an_event_that_cannot_be_counted_is_rejected_without_a_call(name: str, value: Any) -> None:
    values = {key: item for key, item in {**_KEPT_VALUES, name: value}.items() if item is not None}
    table = scripted_table(ScriptedClient(), now=1_790_000_000)
    outcome = record_once(table, _KEPT_VIEW, values, [_KEPT_VIEWS, _RECENT])

    assert (outcome.status, bool(outcome.reason)) == ("rejected", True)


def test_declarations_of_another_event_or_more_than_a_transaction_holds_are_refused() -> None:
    stranger = Aggregate("stranger", Event("other", pk="O#{url}", sk="ID#{id}"), n=Count())
    many = [Aggregate(f"a{n}", _KEPT_VIEW, pk=f"A{n}", sk="A", measures={"n": Count()}) for n in range(MAX_COUNTED + 1)]

    for wrong, message in (([_SITE, stranger], "^invalid declarations=.*'view'"), (many, "99")):
        with pytest.raises(InvalidArgumentError, match=message):
            record_once(scripted_table(ScriptedClient()), _KEPT_VIEW, _KEPT_VALUES, wrong)
    client = ScriptedClient(transact_write_items=[{}])
    assert record_once(scripted_table(client), _KEPT_VIEW, _KEPT_VALUES, many[:-1]).status == "accepted"
    assert len(client.calls[0][1]["TransactItems"]) == 100


@pytest.mark.parametrize(
    ("counter", "values", "amount", "argument"),
    [
        *((_PAGES, {"url": "/"}, amount, "amount") for amount in (1, {}, {"other": 1}, {"n": 1, "other": 1})),
        *((_PAGES, {"url": "/"}, {"n": n}, "amount") for n in (_RATIO, "1", True, None, Decimal("NaN"))),
        *((_TOTAL, {}, amount, "amount") for amount in (_RATIO, "1", None, True, 10**38 + 1, Decimal("Infinity"))),
        *((_PAGES, values, {"n": 1}, name) for values, name in (({}, "url"), ({"uri": "/"}, "uri"))),
        (_PAGES, {"url": _RATIO}, {"n": 1}, "url"),
    ],
)
def test_increment_refuses_what_it_cannot_add(counter: Counter, values: Any, amount: Any, argument: str) -> None:
    client: Any = ScriptedClient()
    client.meta = Mock()
    with pytest.raises(InvalidArgumentError) as refused:
        increment(scripted_table(client), counter, values, amount)

    assert refused.value.argument == argument
    assert counter is not _TOTAL or refused.value.value == amount
