"""Writing while DynamoDB refuses, throttles and fails: each event gets its own true answer, and nothing inexact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

import dynamodb_counters
from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Counters,
    Event,
    InvalidArgumentError,
    Packed,
    Sum,
    UnavailableError,
    Window,
)
from dynamodb_counters._assumptions import LONGEST_REQUEST, TRIES
from dynamodb_counters._writes.accept import accept, accept_many
from dynamodb_counters._writes.direct_counts import MAX_COUNTED, increment, record_once
from simulation.clock import VirtualClock
from tests.unit.writes.clients import ScriptedClient, cancelled, failure, scripted_table

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")


def _events(count: int) -> list[dict[str, Any]]:
    return [{"url": "/", "id": str(number)} for number in range(count)]


def _statuses(client: ScriptedClient, events: list[dict[str, Any]]) -> list[str]:
    return [outcome.status for outcome in accept_many(scripted_table(client), _VIEW, events)]


@pytest.mark.parametrize(
    "error", [failure("AccessDeniedException"), failure("ResourceNotFoundException"), NoCredentialsError()], ids=str
)
def test_a_fault_of_the_deployment_is_raised_from_any_call(error: Exception) -> None:
    table = scripted_table(ScriptedClient(put_item=[error] * 2))

    for ask in (lambda: accept_many(table, _VIEW, _events(1)), lambda: accept(table, _VIEW, _events(1)[0])):
        with pytest.raises(type(error)) as raised:
            ask()
        assert raised.value is error


_PASSING: list[Exception] = [
    *map(failure, ("ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded")),
    failure("ServiceUnavailable"),
    failure("RequestTimeout"),
    *map(failure, ("TransactionInProgressException", "TransactionConflictException", "InternalServerError")),
    failure("502", ResponseMetadata={"HTTPStatusCode": 502}),
    cancelled("None", "TransactionConflict"),
    ConnectTimeoutError(endpoint_url="http://table"),
    EndpointConnectionError(endpoint_url="http://table"),
    ReadTimeoutError(endpoint_url="http://table"),
]


@pytest.mark.parametrize("error", _PASSING, ids=str)
@pytest.mark.parametrize("packed", [None, Packed("at")])
def test_an_event_that_meets_what_passes_can_be_sent_again(error: Exception, packed: Packed | None) -> None:
    client = ScriptedClient(**dict.fromkeys(("put_item", "query", "transact_write_items"), [error] * 99))
    counters = Counters("table", client=cast("Any", client), clock=lambda: 0.0)
    object.__setattr__(counters._table, "sleep", lambda _: None)
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

    assert accept(scripted_table(client, pauses), _VIEW, _events(1)[0]).status == "accepted"
    assert 0 < pauses[0] < pauses[1] < 2
    assert record_once(scripted_table(client), _VIEW, _events(1)[0], []).status == "accepted"


def test_one_event_is_tried_no_longer_than_a_request_may_take() -> None:
    clock, client = VirtualClock(0.0), ScriptedClient(put_item=[_PASSING[0]] * TRIES)
    table = replace(scripted_table(client), clock=clock, sleep=lambda _: clock.advance(5))
    assert accept(table, _VIEW, _events(1)[0]).status == "failed"
    assert clock() <= LONGEST_REQUEST + 5


def test_an_event_that_fails_costs_no_other_its_outcome() -> None:
    def put(arguments: dict[str, Any]) -> dict[str, Any]:
        match arguments["Item"]["id"]["S"]:
            case "1":
                raise failure("ValidationException", "PutItem")
            case "2":
                raise ReadTimeoutError(endpoint_url="http://table")
        return {}

    events = [_events(4)[number] for number in (0, 1, 2, 3, 1)]
    client = ScriptedClient(put_item=[put] * 15)

    assert _statuses(client, events) == ["accepted", "rejected", "failed", "accepted", "rejected"]


def test_passing_errors_are_listed_in_one_place() -> None:
    runtime = Path(dynamodb_counters.__file__).parent
    lists = [file.name for file in runtime.rglob("*.py") if "ProvisionedThroughputExceeded" in file.read_text()]

    assert lists == ["_assumptions.py"]


def test_no_events_cause_no_call() -> None:
    assert accept_many(scripted_table(ScriptedClient()), _VIEW, []) == []


_WRONG: dict[str, Any] = {
    "no mapping": None,
    "a list": [("url", "/")],
    "no key": {"url": "/"},
    "a float of 17 digits": {"url": "/", "id": "1", "price": 0.1 + 0.2},
    "an infinite float in the key": {"url": "/", "id": math.inf},
    "a datetime without a zone": {"url": "/", "id": datetime(2026, 11, 20)},  # noqa: DTZ001
    "a flag in the key": {"url": "/", "id": True},
    "None in the key": {"url": None, "id": "1"},
    "bytes in the key": {"url": b"/", "id": "1"},
    "a reserved name": {"url": "/", "id": "1", "pk": "x"},
    "the ttl": {"url": "/", "id": "1", "ttl": 1},
    "a bookkeeping name": {"url": "/", "id": "1", "_type": "other"},
    "an empty name": {"url": "/", "id": "1", "": "x"},
    "a name that is no text": {"url": "/", "id": "1", 5: "x"},
    "a lone surrogate": {"url": "/\ud800", "id": "1"},
    "a lone surrogate in a name": {"url": "/", "id": "1", "\ud800": "x"},
}


@pytest.mark.parametrize("kind", _WRONG)
def test_events_that_cannot_be_stored_are_rejected_without_a_call(kind: str) -> None:
    table = scripted_table(ScriptedClient())

    alone, [among] = accept(table, _VIEW, _WRONG[kind]), accept_many(table, _VIEW, [_WRONG[kind]])

    assert alone == among
    assert alone.status == "rejected"
    assert ": expected " in str(alone.reason)


_KEPT_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}", retention=timedelta(days=7))
_KEPT_VIEWS = Aggregate(
    "views", _KEPT_VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")}
)
_SITE = Aggregate("site", _KEPT_VIEW, pk="SITE", sk="SITE", measures={"n": Count()})
_RECENT = Window("recent", _KEPT_VIEW, pk="URL#{url}", time="at")
_PAGES = Counter("pages", by="url", n=Count(), bytes=Count())
_TOTAL = Counter("total")
_VALUES = {"url": "/", "id": "1", "bytes": 7, "at": 1_790_000_000}


def test_the_pause_is_jittered() -> None:
    pauses: list[float] = []
    script = [cancelled("None", "TransactionConflict"), {}]
    table = scripted_table(ScriptedClient(transact_write_items=script), pauses)
    object.__setattr__(table, "jitter", lambda: 0.0)

    assert record_once(table, _KEPT_VIEW, _VALUES, [_SITE]).status == "accepted"
    assert pauses == [0.0]


def test_an_event_that_is_there_is_a_duplicate_whatever_else_went_wrong() -> None:
    client = ScriptedClient(transact_write_items=[cancelled("ConditionalCheckFailed", "TransactionConflict")])

    assert record_once(scripted_table(client), _KEPT_VIEW, _VALUES, [_SITE]).status == "duplicate"
    assert len(client.calls) == 1


@pytest.mark.parametrize(
    "error",
    [
        cancelled("None", "ValidationError"),
        cancelled("None", "ItemCollectionSizeLimitExceeded"),
        cancelled("TransactionConflict", "ValidationError"),
        cancelled(),
        failure("AccessDeniedException"),
        failure("ResourceNotFoundException"),
        failure("ValidationException"),
    ],
    ids=lambda error: str(error.response.get("CancellationReasons", error.response["Error"]["Code"])),
)
def test_any_other_refusal_is_raised(error: ClientError) -> None:
    client = ScriptedClient(transact_write_items=[error])

    with pytest.raises(ClientError) as raised:
        record_once(scripted_table(client), _KEPT_VIEW, _VALUES, [_SITE])

    assert raised.value is error


@pytest.mark.parametrize(
    "values",
    [
        {"url": "/", "at": 1_790_000_000, "bytes": 1},
        {"url": "/", "id": "1", "at": 1_790_000_000},
        {"url": "/", "id": "1", "at": 1_790_000_000, "bytes": "many"},
        {"url": "/", "id": "1", "at": "now", "bytes": 1},
        {"url": "/", "id": "1", "at": 1_790_090_000, "bytes": 1},
        {"url": "/", "id": "1", "at": 1_790_000_000, "bytes": 0.1 + 0.2},
    ],
)
def test_an_event_that_cannot_be_counted_is_rejected_without_a_call(values: dict[str, Any]) -> None:
    table = scripted_table(ScriptedClient(), now=1_790_000_000)

    outcome = record_once(table, _KEPT_VIEW, values, [_KEPT_VIEWS, _RECENT])

    assert outcome.status == "rejected"
    assert outcome.reason


def test_declarations_of_another_event_are_refused() -> None:
    other = Event("other", pk="O#{url}", sk="ID#{id}")
    stranger = Aggregate("stranger", other, pk="N", sk="N", measures={"n": Count()})

    with pytest.raises(InvalidArgumentError, match="'view'") as refused:
        record_once(scripted_table(ScriptedClient()), _KEPT_VIEW, _VALUES, [_SITE, stranger])

    assert refused.value.argument == "declarations"


def test_more_declarations_than_a_transaction_holds_are_refused() -> None:
    many = [Aggregate(f"a{n}", _KEPT_VIEW, pk=f"A{n}", sk="A", measures={"n": Count()}) for n in range(MAX_COUNTED + 1)]

    with pytest.raises(InvalidArgumentError, match="99"):
        record_once(scripted_table(ScriptedClient()), _KEPT_VIEW, _VALUES, many)
    client = ScriptedClient(transact_write_items=[{}])
    assert record_once(scripted_table(client), _KEPT_VIEW, _VALUES, many[:-1]).status == "accepted"
    assert len(client.calls[0][1]["TransactItems"]) == 100


_RATIO = 0.1 + 0.2


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
