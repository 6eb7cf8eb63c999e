"""Accepting in bulk while DynamoDB refuses, throttles and fails: each event still gets its own true answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

import dynamodb_counters
from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, UnavailableError
from dynamodb_counters._writes.accept import accept, accept_many
from dynamodb_counters._writes.direct_counts import record_once
from tests.unit.writes.clients import ScriptedClient, cancelled, failure, scripted_table

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_OK: dict[str, Any] = {"Responses": [{}]}


def _events(count: int) -> list[dict[str, Any]]:
    return [{"url": "/", "id": str(number)} for number in range(count)]


def _statuses(client: ScriptedClient, events: list[dict[str, Any]]) -> list[str]:
    return [outcome.status for outcome in accept_many(scripted_table(client), _VIEW, events)]


def _error(code: str) -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": "by script"}}


def _ids(arguments: dict[str, Any]) -> list[str]:
    """Give the ids of the events in a call, from the sort keys among the parameters."""
    texts = [parameter.get("S", "") for statement in arguments["Statements"] for parameter in statement["Parameters"]]
    return [text.removeprefix("ID#") for text in texts if text.startswith("ID#")]


def test_only_throttled_statements_are_sent_again() -> None:
    client = ScriptedClient(
        batch_execute_statement=[
            {"Responses": [{}, _error("ThrottlingError"), _error("DuplicateItem"), _error("TransactionConflict")]},
            {"Responses": [_error("ProvisionedThroughputExceeded"), {}]},
            {"Responses": [{}]},
        ]
    )
    pauses: list[float] = []

    outcomes = accept_many(scripted_table(client, pauses), _VIEW, _events(4))

    assert [outcome.status for outcome in outcomes] == ["accepted", "accepted", "duplicate", "accepted"]
    assert [_ids(arguments) for _, arguments in client.calls] == [["0", "1", "2", "3"], ["1", "3"], ["1"]]
    assert len(pauses) == 2
    assert 0 < pauses[0] < pauses[1]


def test_events_that_stay_throttled_have_failed_with_their_reason() -> None:
    client = ScriptedClient(batch_execute_statement=[{"Responses": [_error("ThrottlingError")]}] * 50)
    pauses: list[float] = []

    [outcome] = accept_many(scripted_table(client, pauses), _VIEW, _events(1))

    assert outcome.status == "failed"
    assert "ThrottlingError" in str(outcome.reason)
    assert len(client.calls) < 50
    assert len(pauses) == len(client.calls) - 1
    assert max(pauses) <= 2


def test_a_refused_statement_is_rejected_with_its_reason_and_not_sent_again() -> None:
    client = ScriptedClient(batch_execute_statement=[{"Responses": [{}, _error("ValidationError")]}])

    first, second = accept_many(scripted_table(client), _VIEW, _events(2))

    assert (first.status, second.status, second.reason) == ("accepted", "rejected", "ValidationError: by script")


def test_a_refused_call_isolates_the_event_it_was_refused_for() -> None:
    def put(arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["Item"]["id"] == {"S": "1"}:
            raise failure("ValidationException", "PutItem")
        assert "attribute_not_exists" in arguments["ConditionExpression"]
        return {}

    client = ScriptedClient(batch_execute_statement=[failure("ValidationException")], put_item=[put] * 3)

    assert _statuses(client, _events(3)) == ["accepted", "rejected", "accepted"]


@pytest.mark.parametrize("code", ["AccessDenied", "ResourceNotFound"])
def test_a_fault_of_the_deployment_is_raised_from_any_call(code: str) -> None:
    refused = failure(f"{code}Exception")
    client = ScriptedClient(batch_execute_statement=[refused, {"Responses": [_error(code)]}], put_item=[refused])

    for fault in (f"{code}Exception", code):
        with pytest.raises(ClientError, match=fault):
            accept_many(scripted_table(client), _VIEW, _events(1))
    with pytest.raises(ClientError, match=f"{code}Exception"):
        accept(scripted_table(client), _VIEW, _events(1)[0])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ConditionalCheckFailedException", "duplicate"),
        ("ValidationException", "rejected"),
        ("ThrottlingException", "failed"),
        ("ProvisionedThroughputExceededException", "failed"),
        ("TransactionConflictException", "failed"),
        ("InternalServerError", "failed"),
    ],
)
def test_one_event_is_answered_by_what_dynamodb_says(code: str, status: str) -> None:
    client = ScriptedClient(put_item=[failure(code, "PutItem")])

    assert accept(scripted_table(client), _VIEW, _events(1)[0]).status == status


_PASSING: list[Exception] = [
    *map(failure, ("ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded")),
    failure("ServiceUnavailable"),
    failure("RequestTimeout"),
    failure("TransactionInProgressException"),
    failure("502", ResponseMetadata={"HTTPStatusCode": 502}),
    cancelled("None", "TransactionConflict"),
    ConnectTimeoutError(endpoint_url="http://table"),
    EndpointConnectionError(endpoint_url="http://table"),
    ReadTimeoutError(endpoint_url="http://table"),
]


@pytest.mark.parametrize("error", _PASSING, ids=str)
@pytest.mark.parametrize("packed", [None, Packed("at")])
def test_an_event_that_meets_what_passes_can_be_sent_again(error: Exception, packed: Packed | None) -> None:
    client = ScriptedClient(
        **dict.fromkeys(("put_item", "query", "batch_execute_statement", "transact_write_items"), [error] * 99)
    )
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
        with pytest.raises(UnavailableError, match=r"again|1 of 1 events"):
            ask()


@pytest.mark.parametrize("error", _PASSING, ids=str)
def test_passing_errors_are_waited_out(error: Exception) -> None:
    client = ScriptedClient(batch_execute_statement=[error, _OK], transact_write_items=[error, {}])

    assert _statuses(client, _events(1)) == ["accepted"]
    assert record_once(scripted_table(client), _VIEW, _events(1)[0], []).status == "accepted"


def test_a_call_that_times_out_costs_no_other_its_outcomes() -> None:
    def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        if "50" in _ids(arguments):
            raise ReadTimeoutError(endpoint_url="http://table")
        return {"Responses": [{} for _ in arguments["Statements"]]}

    client = ScriptedClient(batch_execute_statement=[answer] * 99)

    assert _statuses(client, _events(75)) == ["accepted"] * 50 + ["failed"] * 25


def test_a_duplicate_that_cannot_be_compared_now_costs_no_other_its_outcome() -> None:
    answers = {"Responses": [{}, _error("DuplicateItem")]}
    client = ScriptedClient(batch_execute_statement=[answers], get_item=[failure("ThrottlingException")])
    outcomes = accept_many(scripted_table(client), _VIEW, _events(2), conflicts="read")

    assert [outcome.status for outcome in outcomes] == ["accepted", "failed"]


def test_passing_errors_are_listed_in_one_place() -> None:
    runtime = Path(dynamodb_counters.__file__).parent
    lists = [file.name for file in runtime.rglob("*.py") if "ProvisionedThroughputExceeded" in file.read_text()]

    assert lists == ["_assumptions.py"]


def test_credentials_that_are_missing_are_a_fault_of_the_deployment() -> None:
    client = ScriptedClient(batch_execute_statement=[NoCredentialsError()], put_item=[NoCredentialsError()])

    with pytest.raises(NoCredentialsError):
        _statuses(client, _events(1))
    with pytest.raises(NoCredentialsError):
        accept(scripted_table(client), _VIEW, _events(1)[0])


def test_at_most_twenty_five_statements_go_in_a_call() -> None:
    client = ScriptedClient(
        batch_execute_statement=[lambda arguments: {"Responses": [{} for _ in arguments["Statements"]]}] * 3
    )

    assert _statuses(client, _events(60)) == ["accepted"] * 60
    assert sorted(len(arguments["Statements"]) for _, arguments in client.calls) == [10, 25, 25]


def test_a_repetition_shares_the_fate_of_its_first_occurrence() -> None:
    client = ScriptedClient(batch_execute_statement=[{"Responses": [{}, _error("ValidationError")]}])
    events = [_events(2)[number] for number in (0, 1, 0, 1, 0)]

    assert _statuses(client, events) == ["accepted", "rejected", "duplicate", "rejected", "duplicate"]


def test_an_event_too_wide_for_a_statement_is_put_alone() -> None:
    wide = {"url": "/", "id": "1", **{f"attribute-{number}": number for number in range(600)}}
    client = ScriptedClient(put_item=[{}], batch_execute_statement=[_OK])

    assert _statuses(client, [wide, *_events(1)]) == ["accepted", "accepted"]
    assert [name for name, _ in client.calls] == ["put_item", "batch_execute_statement"]
    client = ScriptedClient(put_item=[{}])
    assert _statuses(client, [wide]) == ["accepted"]


def test_no_events_cause_no_call() -> None:
    assert accept_many(scripted_table(ScriptedClient()), _VIEW, []) == []


_WRONG: dict[str, Any] = {
    "no mapping": None,
    "a list": [("url", "/")],
    "no key": {"url": "/"},
    "a float of 17 digits": {"url": "/", "id": "1", "price": 0.1 + 0.2},
    "a float of 17 digits inside": {"url": "/", "id": "1", "prices": [{"now": 0.1 + 0.2}]},
    "no number": {"url": "/", "id": "1", "price": math.nan},
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
    "a number of 39 digits": {"url": "/", "id": "1", "n": 10**38 + 1},
    "a number out of range": {"url": "/", "id": "1", "n": 10**200},
    "a lone surrogate": {"url": "/\ud800", "id": "1"},
    "a lone surrogate inside": {"url": "/", "id": "1", "deep": [{"x": "\udfff"}]},
    "a lone surrogate in a name": {"url": "/", "id": "1", "\ud800": "x"},
    "an object": {"url": "/", "id": "1", "x": object()},
}


@pytest.mark.parametrize("kind", _WRONG)
def test_events_that_cannot_be_stored_are_rejected_without_a_call(kind: str) -> None:
    table = scripted_table(ScriptedClient())

    alone, [among] = accept(table, _VIEW, _WRONG[kind]), accept_many(table, _VIEW, [_WRONG[kind]])

    assert alone == among
    assert alone.status == "rejected"
    assert ": expected " in str(alone.reason)


_ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/counters"


def test_a_table_of_another_account_is_filled_without_partiql() -> None:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-iam-actions.html
    client: Any = ScriptedClient(put_item=[{}, {}], batch_execute_statement=[_OK])

    outcomes = Counters(_ARN, client=client).accept_many(_VIEW, _events(2))

    assert [outcome.status for outcome in outcomes] == ["accepted", "accepted"]
    assert [(name, arguments["TableName"]) for name, arguments in client.calls] == [("put_item", _ARN)] * 2
