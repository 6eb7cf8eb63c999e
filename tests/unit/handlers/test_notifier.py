"""The notifier: each crossing becomes an event, with every digit, and a group's next one waits for the one before.

However often the bus refuses: tests/exactly_once/test_thresholds.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from counters_lambda.counting.crossings import event_entry, in_requests
from dynamodb_counters import Aggregate, Average, Count, Event, Sum, Threshold
from simulation.counters_in_memory import counters_in_memory
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from tests.exactly_once.notices import is_malformed
from tests.unit.handlers.conftest import Load, Metered

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/counters"
CALL = Event("call", key="id", retention=timedelta(days=7))
USAGE = Aggregate("usage", CALL, by="customer", calls=Count(), units=Sum("units"), mean=Average("units"))
PLAN = Threshold("plan", USAGE, at=[8, 10], measure="units", direction="both")
ANY = Threshold("any", USAGE, at=[Decimal("1E-130")], measure="units")
ANY_MEAN = Threshold("mean", USAGE, at=[Decimal("1E-130")], measure="mean")
BUSY = Threshold("busy", USAGE, at=[1, 2, 3], measure="calls")
NO_TIME = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 11_000})


def crossed(
    *thresholds: Threshold, units: Sequence[object] = (1,), customers: Sequence[str] = "a"
) -> list[dict[str, Any]]:
    """Return the stream records of the outbox after each customer has had its calls, one by one."""
    with counters_in_memory([USAGE, *thresholds]) as counters:
        for customer in customers:
            for number, unit in enumerate(units):
                counters.accept(CALL, {"id": f"{customer}{number}", "customer": customer, "units": unit})
                counters.get(USAGE, customer=customer)  # Everything is counted before it is read.
        stream = counters._memory.tables[counters.table_name].stream
        records = [record for shard in stream.shards() for record in stream.read(shard.id, None, 10**6).records]
    return [
        {**record, "eventSourceARN": f"{ARN}/stream/2026"}
        for record in records
        if record["dynamodb"].get("NewImage", {}).get("_type") == {"S": "_crossing"}
    ]


class Bus:
    """An event bus, which refuses entries while it likes to."""

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self.requests: list[int] = []
        self.refuses: Callable[[], bool] = lambda: False
        self.is_lasting: Callable[[dict[str, Any]], bool] = lambda _: False
        self.fails: Exception | None = None

    def put_events(self, *, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as the SDK calls it
        assert 0 < len(Entries) <= 10
        assert sum(len(json.dumps(entry)) for entry in Entries) < 256_000
        self.requests.append(len(Entries))
        if self.fails is not None:
            raise self.fails
        return {"Entries": [self._answer(entry) for entry in Entries]}

    def _answer(self, entry: dict[str, Any]) -> dict[str, str]:
        if is_malformed(entry["Detail"]) or self.is_lasting(entry):
            return {"ErrorCode": "MalformedDetail", "ErrorMessage": "no JSON"}
        if self.refuses():
            return {"ErrorCode": "ThrottlingException", "ErrorMessage": "too fast"}
        self.details.append(json.loads(entry["Detail"], parse_float=Decimal))
        return {"EventId": str(len(self.details))}


@pytest.fixture
def bus(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Bus:
    client = Bus()
    monkeypatch.setattr(module, "eventbridge", lambda: client)
    return client


@pytest.fixture
def module(load: Load) -> ModuleType:
    return load("notifier", EVENT_BUS="bus")


def failed(module: ModuleType, records: list[dict[str, Any]], context: Any = LAMBDA_CONTEXT) -> list[int]:
    """Return the places of the records that the handler gives back."""
    answer = module.handler({"Records": records}, context)
    places = {record["dynamodb"]["SequenceNumber"]: place for place, record in enumerate(records)}
    return [places[item["itemIdentifier"]] for item in answer["batchItemFailures"]]


def test_an_entry_says_what_was_crossed() -> None:
    [record] = crossed(PLAN, units=[Decimal("8.1")])
    image = record["dynamodb"]["NewImage"]
    entry: dict[str, Any] = {**event_entry(image, ARN, "bus")}
    assert json.loads(entry.pop("Detail"), parse_float=Decimal) == {
        **{name: image[name]["S"] for name in ("id", "at", "sequence")},
        "threshold": "plan",
        "aggregate": "usage",
        "group": {"customer": "a"},
        "measure": "units",
        "level": 8,
        "old": 0,
        "new": Decimal("8.1"),
        "direction": "up",
    }
    named = {"Source": "dynamodb-counters", "DetailType": "Threshold Crossed", "EventBusName": "bus"}
    assert entry == {**named, "Time": image["at"]["S"], "Resources": [ARN]}


LONG = [Decimal("9.9E+125"), Decimal("1234567890123456789012345678901234567.5")]
SHORT = [Decimal("1.2345678901234567890123456789012345678"), Decimal("1E-130")]


@pytest.mark.parametrize(
    ("exact", "is_text"),
    [*((number, False) for number in (2**63 - 1, *SHORT)), *((number, True) for number in (2**63, 10**20, *LONG))],
)
def test_numbers_keep_every_digit_and_are_null_where_there_are_none(exact: Any, is_text: bool) -> None:
    for record in crossed(ANY, ANY_MEAN, units=[exact]):
        detail = event_entry(record["dynamodb"]["NewImage"], ARN, "")["Detail"]
        crossing = json.loads(detail, parse_float=Decimal)
        assert (Decimal(crossing["new"]), isinstance(crossing["new"], str)) == (exact, is_text)
        assert not is_malformed(detail)
        assert crossing["old"] == (None if crossing["threshold"] == "mean" else 0)


@pytest.mark.parametrize("customer", ['"', "\\", "ü", "#", "\n", "a" * 200])
def test_a_group_may_be_any_text(customer: str) -> None:
    [record] = crossed(BUSY, customers=[customer])
    detail = json.loads(event_entry(record["dynamodb"]["NewImage"], ARN, "")["Detail"])
    assert detail["group"] == {"customer": customer}


@pytest.mark.parametrize(("units", "sizes"), [([1], [10, 3]), ([1, 1], [1, *[2] * 12, 1])])
def test_a_request_has_at_most_ten_crossings_and_of_each_group_one(units: list[int], sizes: list[int]) -> None:
    images = [record["dynamodb"]["NewImage"] for record in crossed(BUSY, units=units, customers="abcdefghijklm")]
    images.sort(key=lambda image: (image["group"]["M"]["customer"]["S"], image["sequence"]["S"]))
    requests = list(in_requests(images))
    assert [image for request in requests for image in request] == images, "in order"
    assert [len(request) for request in requests] == sizes
    assert list(in_requests([])) == []


def test_a_batch_goes_on_from_the_first_crossing_that_is_refused(
    module: ModuleType, bus: Bus, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([False, False, True, False, True])
    bus.refuses = lambda: next(answers)
    assert failed(module, crossed(BUSY, units=[1], customers="abcde")) == [2]
    assert metered() == {"CrossingsDelivered": 2, "CrossingsRefused": 2}
    assert caplog.messages == ["crossings wait: EventBridge refuses them: ThrottlingException: too fast"]


def test_a_crossing_that_can_never_be_taken_is_metered_and_passed_over(
    module: ModuleType, bus: Bus, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([False, True, False, False])
    bus.is_lasting = lambda entry: '"customer": "b"' in entry["Detail"]
    bus.refuses = lambda: next(answers)
    assert failed(module, crossed(BUSY, units=[1], customers="abcde")) == [2]
    assert metered() == {"CrossingsDelivered": 1, "CrossingsRefused": 1, "CrossingsUndeliverable": 1}
    message = "crossings stay in the table: EventBridge can never take them: MalformedDetail: no JSON"
    assert caplog.messages[0] == message


def test_nothing_is_sent_after_a_refusal(module: ModuleType, bus: Bus) -> None:
    bus.refuses = lambda: True
    assert failed(module, crossed(BUSY, units=[1, 1, 1])) == [0]
    assert bus.requests == [1]


@pytest.mark.parametrize(
    "error", [failure("PutEvents", "AccessDeniedException"), EndpointConnectionError(endpoint_url="https://events")]
)
def test_a_request_that_fails_is_sent_again(module: ModuleType, bus: Bus, error: Exception) -> None:
    bus.fails = error
    assert failed(module, crossed(BUSY)) == [0]


def test_no_request_begins_that_could_not_end(module: ModuleType, bus: Bus) -> None:
    assert failed(module, crossed(BUSY), NO_TIME) == [0]
    assert bus.requests == []
