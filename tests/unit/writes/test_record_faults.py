"""`record_once` distinguishes duplicates, conflicts and refusals; `increment` refuses what it cannot add exactly."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Counter, Event, InvalidArgumentError, Sum, Window
from dynamodb_counters._writes.direct_counts import MAX_COUNTED, increment, record_once
from tests.unit.writes.clients import ScriptedClient, cancelled, failure, scripted_table

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}", retention=timedelta(days=7))
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_SITE = Aggregate("site", _VIEW, pk="SITE", sk="SITE", measures={"n": Count()})
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")
_PAGES = Counter("pages", by="url", n=Count(), bytes=Count())
_TOTAL = Counter("total")
_VALUES = {"url": "/", "id": "1", "bytes": 7, "at": 1_790_000_000}


def test_the_pause_is_jittered() -> None:
    pauses: list[float] = []
    script = [cancelled("None", "TransactionConflict"), {}]
    table = scripted_table(ScriptedClient(transact_write_items=script), pauses)
    object.__setattr__(table, "jitter", lambda: 0.0)

    assert record_once(table, _VIEW, _VALUES, [_SITE]).status == "accepted"
    assert pauses == [0.0]


def test_an_event_that_is_there_is_a_duplicate_whatever_else_went_wrong() -> None:
    client = ScriptedClient(transact_write_items=[cancelled("ConditionalCheckFailed", "TransactionConflict")])

    assert record_once(scripted_table(client), _VIEW, _VALUES, [_SITE]).status == "duplicate"
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
        record_once(scripted_table(client), _VIEW, _VALUES, [_SITE])

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

    outcome = record_once(table, _VIEW, values, [_VIEWS, _RECENT])

    assert outcome.status == "rejected"
    assert outcome.reason


def test_declarations_of_another_event_are_refused() -> None:
    other = Event("other", pk="O#{url}", sk="ID#{id}")
    stranger = Aggregate("stranger", other, pk="N", sk="N", measures={"n": Count()})

    with pytest.raises(InvalidArgumentError, match="'view'") as refused:
        record_once(scripted_table(ScriptedClient()), _VIEW, _VALUES, [_SITE, stranger])

    assert refused.value.argument == "declarations"


def test_more_declarations_than_a_transaction_holds_are_refused() -> None:
    many = [Aggregate(f"a{n}", _VIEW, pk=f"A{n}", sk="A", measures={"n": Count()}) for n in range(MAX_COUNTED + 1)]

    with pytest.raises(InvalidArgumentError, match="99"):
        record_once(scripted_table(ScriptedClient()), _VIEW, _VALUES, many)
    client = ScriptedClient(transact_write_items=[{}])
    assert record_once(scripted_table(client), _VIEW, _VALUES, many[:-1]).status == "accepted"
    assert len(client.calls[0][1]["TransactItems"]) == 100


@pytest.mark.parametrize(
    "amount",
    [
        1,
        {},
        {"other": 1},
        {"n": 1, "other": 1},
        {"n": 0.1 + 0.2},
        {"n": "1"},
        {"n": True},
        {"n": None},
        {"n": Decimal("NaN")},
    ],
)
def test_increment_refuses_what_it_cannot_add(amount: Any) -> None:
    assert _refused(_PAGES, {"url": "/"}, amount).argument == "amount"


@pytest.mark.parametrize("amount", [0.1 + 0.2, "1", None, True, 10**38 + 1, Decimal("Infinity")])
def test_increment_refuses_a_number_dynamodb_cannot_hold(amount: Any) -> None:
    refused = _refused(_TOTAL, {}, amount)

    assert (refused.argument, refused.value) == ("amount", amount)


@pytest.mark.parametrize(("values", "argument"), [({}, "url"), ({"uri": "/"}, "uri"), ({"url": 0.1 + 0.2}, "url")])
def test_increment_refuses_a_group_that_is_none(values: Any, argument: str) -> None:
    assert _refused(_PAGES, values, {"n": 1}).argument == argument


def _refused(counter: Counter, values: Any, amount: Any) -> InvalidArgumentError:
    client: Any = ScriptedClient()
    client.meta = Mock()
    with pytest.raises(InvalidArgumentError) as refused:
        increment(scripted_table(client), counter, values, amount)
    return refused.value
