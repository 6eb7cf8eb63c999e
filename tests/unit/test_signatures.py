"""Requests of the runtime, each signed when it is sent, again for each try, and none begun after the deadline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from dynamodb_counters._clients import make_service_client
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._table import make_client
from simulation.aws.sigv4 import LANDING_SECONDS
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.world import World

_RUNTIME = Path(__file__).parents[2] / "lambdas"
_SALE = Event("sale", pk="SALE#{id}", sk="SALE")
_SALES = Aggregate("sales", _SALE, pk="SALES", sk="ALL", measures={"n": Count()})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    clock = VirtualClock()
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(auth, "get_current_datetime", lambda: datetime.fromtimestamp(clock(), UTC))
    monkeypatch.setattr("botocore.endpoint.time.sleep", clock.advance)
    return clock


def _signed(client: Any, clock: VirtualClock, call: Callable[[], object]) -> list[float]:
    """How long before each try was sent it was signed; each is answered by an error, after a long while."""
    ages: list[float] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        stamp = datetime.strptime(request.headers["X-Amz-Date"].decode(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        ages.append(clock() - stamp.timestamp())
        clock.advance(LANDING_SECONDS)
        body: Any = type("Raw", (), {"stream": lambda *_, **__: iter((b"{}",))})()
        return AWSResponse(request.url, 500, HTTPHeaders(), body)

    client.meta.events.register("before-send", answer)
    clock.advance(LANDING_SECONDS)
    with pytest.raises(client.exceptions.ClientError):
        call()
    return ages


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("dynamodb", lambda client: client.update_item(TableName="t", Key={"pk": {"S": "a"}})),
        ("sqs", lambda client: client.send_message(QueueUrl="https://sqs.test/q", MessageBody="m")),
        ("s3", lambda client: client.get_object(Bucket="bucket", Key="k")),
    ],
)
def test_each_try_is_signed_when_it_is_sent(clock: VirtualClock, service: str, call: Callable[[Any], object]) -> None:
    client = make_client() if service == "dynamodb" else make_service_client(service)
    ages = _signed(client, clock, lambda: call(client))
    assert len(ages) > 1
    assert max(ages) < 1


def test_nothing_of_the_runtime_signs_ahead() -> None:
    texts = {path.name: path.read_text() for path in _RUNTIME.rglob("*.py")}
    assert [name for name, text in texts.items() if "presigned" in text or "SigV4" in text] == []


@pytest.mark.parametrize("skew", [-50.0, 0.0, 50.0])
def test_a_deadline_is_lambda_s_whatever_the_sandbox_s_clock_says(skew: float) -> None:
    """Lambda says when an invocation ends, not in how long: its runtime takes the sandbox's time from that."""
    bench = World(_SALES)
    assert bench.counters.accept(_SALE, {"id": 1}).status == "accepted"
    ends = bench.clock.now + 600
    process = bench.process(skew=skew)
    event = {"shardId": bench.shards()[0], "Records": bench.records()}
    state = process.handle(event, lambda: ends - bench.clock.now - skew).state(event)
    end = {**event, "Records": [], "isFinalInvokeForWindow": True, "state": state}
    process.handle(end, lambda: ends - bench.clock.now - skew)
    stamps = [float(item["at"]["N"]) for item in bench.table.items() if "applied_through" in item]
    assert stamps == [ends]


def test_a_sandbox_that_thaws_after_its_deadline_sends_nothing() -> None:
    bench = World(_SALES)
    assert bench.counters.accept(_SALE, {"id": 1}).status == "accepted"
    sent: list[str] = []

    def freeze(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        sent.append(name)
        answer = send()
        bench.clock.advance(3600)
        return answer

    process = bench.process(HookedClient(bench.table, freeze))
    with pytest.raises(TimeoutError, match="time is nearly up"):
        process.handle({"shardId": bench.shards()[0], "Records": bench.records()}, lambda: 60.0)
    assert len(sent) == 1
