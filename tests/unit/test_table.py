"""Requests of a table: in threads none of which outlives its caller, and signed when they are sent, by the deadline."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._table import CONCURRENCY, Table, ending_at, make_client, make_service_client, time_left
from simulation.aws.sigv4 import LANDING_SECONDS
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.world import World


@pytest.fixture
def table() -> Table:
    client: Any = object()
    return Table("counters", client, clock=lambda: 0.0, sleep=lambda _: None)


def test_a_table_of_one_thread_works_in_its_callers(table: Table) -> None:
    assert set(replace(table, threads=1).each(lambda _: threading.get_ident(), range(99))) == {threading.get_ident()}


@pytest.mark.parametrize("error", [KeyError, MemoryError, KeyboardInterrupt])
def test_an_unexpected_error_is_raised_once_every_thread_has_ended(table: Table, error: type[BaseException]) -> None:
    running, goes_on, ended = threading.Semaphore(0), threading.Event(), list[int]()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(CONCURRENCY - 1):
                assert running.acquire(timeout=10)
            threading.Timer(0.1, goes_on.set).start()
            raise error
        running.release()
        assert goes_on.wait(10)
        ended.append(number)

    with pytest.raises(error):
        table.side_by_side(work, range(1000))
    # Work that had begun is done, and nothing else has begun.
    assert sorted(ended) == list(range(1, CONCURRENCY))


def test_a_signal_ends_a_call_once_every_thread_has_ended(table: Table) -> None:
    begun, ended = threading.Event(), list[int]()

    def work(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(10)
        else:
            begun.set()
            time.sleep(0.4)
            ended.append(number)

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError):
            table.each(work, range(2))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(ended) == 1


def test_a_request_that_fails_stops_no_other(table: Table) -> None:
    failure = ClientError({"Error": {"Code": "ValidationException"}}, "UpdateItem")

    def work(number: int) -> int:
        if number % 2:
            raise failure
        return number

    assert table.side_by_side(work, range(6)) == [(0, 0), (1, failure), (2, 2), (3, failure), (4, 4), (5, failure)]


def test_a_deadline_is_that_of_the_call_in_every_thread(table: Table) -> None:
    begun, goes_on, times = threading.Semaphore(0), threading.Event(), list[float]()

    def work(_: int) -> None:
        begun.release()
        assert goes_on.wait(10)
        times.append(time_left(0.0))

    def first() -> None:
        with ending_at(60.0):
            table.each(work, range(4))

    caller = threading.Thread(target=first)
    caller.start()
    for _ in range(4):
        assert begun.acquire(timeout=10)
    # The next invocation has another deadline, while threads of the one before are still there.
    with ending_at(900.0):
        assert table.each(lambda _: time_left(0.0), range(4)) == [900.0] * 4
        goes_on.set()
        caller.join(10)
    assert times == [60.0] * 4


def test_nothing_is_tried_again_after_the_deadline(table: Table) -> None:
    with ending_at(0.0):
        assert table.each(lambda _: list(table.tries(3)), range(2)) == [[0], [0]]
    assert list(table.tries(3)) == [0, 1, 2]


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
    """Return how long before each try was sent it was signed; each is answered by an error, after a long while."""
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
    names: list[str] = []

    def freeze(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        names.append(name)
        answer = send()
        bench.clock.advance(3600)
        return answer

    process = bench.process(HookedClient(bench.table, freeze))
    with pytest.raises(TimeoutError, match="time is nearly up"):
        process.handle({"shardId": bench.shards()[0], "Records": bench.records()}, lambda: 60.0)
    assert len(names) == 1
