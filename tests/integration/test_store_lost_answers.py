"""Increments and resets whose answer is lost: the client sends them again, and they are done once."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Count, Counter, Counters, CountersError, Ranking
from dynamodb_counters._writes.update_conditions import KEPT
from simulation.engines import REGION, Engine
from tests.integration.stores import Store

_SITE = Counter("site", n=Count())
_SHOP = Counter("shop", n=Count(), sum=Count(), ranking=Ranking(measure="n", leaderboard="SHOPS"))


class Wire:
    """A client that retries: its next `throttled` updates are refused, the answers to its next `lost` never arrive."""

    def __init__(self, engine: Engine, table: str, patch: pytest.MonkeyPatch) -> None:
        config = Config(account_id_endpoint_mode="disabled", retries={"total_max_attempts": 4, "mode": "standard"})
        client: Any = boto3.client("dynamodb", REGION, endpoint_url=engine.endpoint_url, config=config)
        self.counters = Counters(table, client=client)
        self.sent = 0
        self.lost = 0
        self.throttled = 0
        self.meanwhile: Callable[[], object] = lambda: None
        endpoint = client._endpoint
        self._send = endpoint._do_get_response
        patch.setattr(endpoint, "_do_get_response", self._lossy)
        patch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None, time=time.time))

    def _lossy(self, request: Any, model: Any, context: Any) -> Any:
        if model.name == "UpdateItem" and self.throttled:
            self.throttled -= 1
            self.meanwhile()
            headers: Any = {}
            raw = SimpleNamespace(stream=lambda: iter([b"{}"]))
            error = {"Code": "ThrottlingException", "Message": ""}
            parsed = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
            return (AWSResponse("", 400, headers, raw), parsed), None
        answer = self._send(request, model, context)
        if model.name == "UpdateItem":
            self.sent += 1
            if self.lost:
                self.lost -= 1
                self.meanwhile()
                return None, ReadTimeoutError(endpoint_url="http://lost")
        return answer


@pytest.fixture
def wire(engine: Engine, table: str, monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(engine, table, monkeypatch)


def _count(store: Store, counter: Counter = _SITE) -> Any:
    return store.counters.get(counter, {}, consistent=True).measures


@pytest.mark.parametrize("lost", [1, 3])
def test_an_increment_sent_again_counts_once(store: Store, wire: Wire, lost: int) -> None:
    assert wire.counters.increment(_SITE, {}) == {"n": 1}
    wire.lost = lost
    assert wire.counters.increment(_SITE, {}, amount=41) == {"n": 42}

    assert (wire.sent, wire.lost) == (2 + lost, 0)
    assert _count(store) == {"n": 42}


def test_an_increment_that_stays_in_doubt_raises_and_counts_once(store: Store, wire: Wire) -> None:
    wire.lost = 1
    wire.meanwhile = lambda: [wire.counters.increment(_SITE, {}, amount=10) for _ in range(KEPT)]

    with pytest.raises(CountersError, match="an answer was lost"):
        wire.counters.increment(_SITE, {})
    assert _count(store) == {"n": 10 * KEPT + 1}


def test_a_throttled_increment_is_sent_until_it_counts(store: Store, wire: Wire) -> None:
    wire.meanwhile = lambda: [store.counters.increment(_SITE, {}, amount=10) for _ in range(KEPT)]
    wire.throttled = 2

    assert wire.counters.increment(_SITE, {}) == {"n": 20 * KEPT + 1}


def test_a_reset_sent_again_returns_what_the_first_one_took(store: Store, wire: Wire) -> None:
    store.counters.increment(_SHOP, {}, amount={"n": 100, "sum": -7})
    wire.lost, wire.meanwhile = 1, lambda: store.counters.increment(_SHOP, {}, amount={"n": 1, "sum": 3})

    assert wire.counters.reset(_SHOP, {}) == {"n": 100, "sum": -7}

    assert _count(store, _SHOP) == {"n": 1, "sum": 3}
    assert store.item("shop", "shop")["_score"] == {"N": "1"}


def test_two_resets_at_once_share_what_there_is(store: Store) -> None:
    store.counters.increment(_SITE, {}, amount=100)
    others: list[Any] = []

    def other_first(name: str, _: Any) -> None:
        if name == "update_item" and not others:
            others.append(None)
            others[0] = store.counters.reset(_SITE, {})
            store.counters.increment(_SITE, {}, amount=1)

    store.client.before = other_first

    assert store.counters.reset(_SITE, {}) == {"n": 1}
    assert (others, _count(store)) == ([{"n": 100}], {"n": 0})
