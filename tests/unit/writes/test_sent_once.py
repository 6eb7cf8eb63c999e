"""Increments and resets through botocore: sent again where they were refused, never where they may have counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.session import get_session

from dynamodb_counters import Count, Counter, Counters, InvalidArgumentError, Ranking, UnavailableError
from dynamodb_counters._table import Table, make_client
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_SITE = Counter("site", n=Count())
_SHOP = Counter("shop", n=Count(), sum=Count(), ranking=Ranking(measure="n", leaderboard="SHOPS"))

_URL = "http://table"
_LOST: dict[str, Any] = {
    "no answer": ReadTimeoutError(endpoint_url=_URL),
    "a closed connection": ConnectionClosedError(endpoint_url=_URL),
    "internal error": (500, "InternalServerError"),
    "unavailable": (503, "ServiceUnavailable"),
    "timeout": (400, "RequestTimeoutException"),
    "a damaged answer": (200, ""),
}
_REFUSED: dict[str, Any] = {
    "throttled": (400, "ThrottlingException"),
    "crowded": (400, "ProvisionedThroughputExceededException"),
    "in conflict": (400, "TransactionConflictException"),
    "not connected": ConnectTimeoutError(endpoint_url=_URL),
    "not reached": EndpointConnectionError(endpoint_url=_URL),
}


_SESSION: Final = get_session()
"""One, as each loads the service's model."""


def _configured(mode: Any) -> Any:
    return _SESSION.create_client("dynamodb", config=Config(retries={"total_max_attempts": 4, "mode": mode}))


_CLIENTS: dict[str, Callable[[], Any]] = {
    "its own": make_client,
    **{mode: partial(_configured, mode) for mode in ("standard", "legacy", "adaptive")},
}


class _Wire:
    """A client of botocore over a table in memory; its next updates meet what `faults` holds, first things first."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.memory = MemoryTable(VirtualClock())
        self.client = make()
        self.client.meta.events.register("before-send.dynamodb", self._answer)
        self.faults: list[Any] = []
        self.updates = 0
        self.before: Callable[[], object] = bool
        """Runs before the next update."""
        table = Table(self.memory.name, self.client, sleep=lambda _: None)
        self.counters = Counters(self.memory.name, client=self.client)
        self.counters._table = table

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        operation, arguments = request.headers["X-Amz-Target"].decode().partition(".")[2], json.loads(request.body)
        if operation != "UpdateItem":
            return _response(200, self._done(operation, arguments))
        self.updates += 1
        before, self.before = self.before, bool
        before()
        fault = self.faults.pop(0) if self.faults else None
        if fault in _REFUSED.values():
            return _failed(fault)
        try:
            answer = _response(200, self._done(operation, arguments))
        except self.memory.exceptions.ConditionalCheckFailedException as error:
            return _response(400, {"__type": error.response["Error"]["Code"], "Item": error.response.get("Item", {})})
        if fault == _LOST["a damaged answer"]:
            answer.headers["x-amz-crc32"] = str(crc32(answer.content) ^ 1)
            return answer
        return answer if fault is None else _failed(fault)

    def _done(self, operation: str, arguments: dict[str, Any]) -> Any:
        method = {"UpdateItem": "update_item", "GetItem": "get_item", "Query": "query"}[operation]
        return getattr(self.memory, method)(**arguments)

    def count(self, counter: Counter = _SITE) -> Any:
        return Counters(self.memory.name, client=self.memory).get(counter, {}, consistent=True).measures  # type: ignore[arg-type]


def _failed(fault: Any) -> AWSResponse:
    if isinstance(fault, Exception):
        raise fault
    status, code = fault
    return _response(status, {"__type": code, "message": "by script"})


def _response(status: int, content: Any) -> AWSResponse:
    body = json.dumps(content).encode()
    headers: Any = HTTPHeaders()
    headers["x-amz-crc32"] = str(crc32(body))
    raw: Any = SimpleNamespace(stream=lambda *_, **__: iter((body,)))
    return AWSResponse(_URL, status, headers, raw)


@pytest.fixture(params=_CLIENTS)
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Wire:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    return _Wire(_CLIENTS[request.param])


@pytest.mark.parametrize("before", [[], [_REFUSED["throttled"]]], ids=["at once", "after a refusal"])
@pytest.mark.parametrize("fault", _LOST)
def test_an_increment_whose_answer_is_lost_is_not_sent_again(wire: _Wire, fault: str, before: list[Any]) -> None:
    wire.faults = [*before, _LOST[fault]]
    with pytest.raises(UnavailableError, match=r"^may have been counted: the answer was lost: "):
        wire.counters.increment(_SITE, {}, amount=5)

    assert (wire.updates, wire.count()) == (1 + len(before), {"n": 5})
    assert wire.counters.increment(_SITE, {}) == {"n": 6}


@pytest.mark.parametrize("refused", _REFUSED)
def test_an_increment_that_was_refused_is_sent_until_it_counts(wire: _Wire, refused: str) -> None:
    wire.faults = [_REFUSED[refused]] * 2
    assert wire.counters.increment(_SITE, {}, amount=5) == {"n": 5}
    assert (wire.updates, wire.count()) == (3, {"n": 5})


@pytest.mark.parametrize("wire", ["its own"], indirect=True)
def test_an_increment_that_is_always_refused_was_not_counted(wire: _Wire) -> None:
    wire.faults = [_REFUSED["throttled"]] * 1000
    with pytest.raises(UnavailableError, match=r"^was not counted: .*Throttling"):
        wire.counters.increment(_SITE, {})
    assert wire.count() == {"n": 0}


def test_a_reset_whose_answer_is_lost_says_what_it_was(wire: _Wire) -> None:
    wire.counters.increment(_SHOP, {}, amount={"n": 100, "sum": -7})
    wire.faults, wire.updates = [_LOST["no answer"]], 0
    with pytest.raises(UnavailableError, match=r"^may have been reset, from n=100, sum=-7: the answer was lost: "):
        wire.counters.reset(_SHOP, {})
    assert (wire.updates, wire.count(_SHOP)) == (1, {"n": 0, "sum": 0})


def test_a_reset_loses_no_increment_that_came_first(wire: _Wire) -> None:
    wire.counters.increment(_SHOP, {}, amount={"n": 100, "sum": -7})
    wire.before = lambda: wire.counters.increment(_SHOP, {}, amount={"n": 1, "sum": 3})

    assert wire.counters.reset(_SHOP, {}) == {"n": 101, "sum": -4}
    assert wire.count(_SHOP) == {"n": 0, "sum": 0}
    assert [item["_score"] for item in wire.memory.items()] == [{"N": "0"}]


def test_other_requests_of_the_client_are_sent_again(wire: _Wire) -> None:
    wire.counters.increment(_SITE, {})
    wire.faults, wire.updates = [_LOST["no answer"]], 0
    key = {"pk": {"S": "other"}, "sk": {"S": "other"}}
    wire.client.update_item(TableName=wire.memory.name, Key=key, UpdateExpression="SET n = sk")
    assert wire.updates == 2


def test_what_no_repetition_mends_is_raised_as_it_is(wire: _Wire) -> None:
    wire.counters.increment(_SITE, {})
    wire.faults = [NoCredentialsError(), (400, "AccessDeniedException")]
    other = Counter("other", pk=_SITE.pk, sk=_SITE.sk, n=Count())
    for error, message in ((NoCredentialsError, "credentials"), (ClientError, "AccessDenied")):
        with pytest.raises(error, match=message):
            wire.counters.increment(_SITE, {})
    with pytest.raises(InvalidArgumentError, match="expected 'site'"):
        wire.counters.increment(other, {})
