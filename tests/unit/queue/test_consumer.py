"""The consumer: no event is lost, none counts twice, and only what can never be accepted becomes a dead letter."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Aggregate, Event, Packed, Sum
from dynamodb_counters._fold.admission import Admission
from dynamodb_counters._queue.consumer import Consumed, Consumer
from dynamodb_counters._queue.sending import Queues
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from simulation.clock import VirtualClock
from simulation.dynamodb.client import MemoryTable
from simulation.dynamodb.client_errors import failure
from simulation.queue.sqs import MAX_BYTES, SQS, Message, Queue

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
BYTES = Aggregate("bytes", VIEW, pk="URL#{url}", sk="BYTES", measures={"bytes": Sum("bytes")})
DAY = 86_400.0
_ACCEPT_MANY = "dynamodb_counters._queue.consumer.accept_many"


class World:
    """A queue whose messages a consumer handles, and a table in memory that can be told to fail."""

    def __init__(self, event: Event = VIEW, admission: Admission | None = None, max_receives: int = 10) -> None:
        self.clock = VirtualClock()
        self.dead = Queue(self.clock)
        self.queue = Queue(self.clock, dead_letters=self.dead, max_receives=max_receives)
        self.table = MemoryTable(self.clock)
        self.refuse_sending = False
        self.sqs = SQS({"q": self.queue, "d": self.dead}, refuses=lambda: self.refuse_sending)
        self.reached = Table(
            self.table.name,
            cast("Any", self.table),
            bulk="put",
            clock=self.clock,
            sleep=self.clock.advance,
            jitter=random.Random(0).random,
        )
        queues = Queues(self.reached, {"queue": "q", "dead_letter_queue": "d"})
        queues.__dict__["_sqs"] = self.sqs
        self.consumer = Consumer(self.reached, event, queues, admission)

    def deliver(self, time_left: float = 60.0, most: int = 100) -> Consumed:
        """Have the consumer handle what waits, as Lambda does."""
        messages = self.queue.receive(most)
        end = self.clock() + time_left
        consumed = self.consumer.consume([one.record() for one in messages], lambda: end - self.clock())
        for message in messages:
            if message.id not in consumed.unfinished:
                self.queue.delete(message.id)
        return consumed

    def post(self, *events: object, **attributes: str) -> None:
        """Queue one message."""
        typed = {name: {"DataType": "Number", "StringValue": value} for name, value in attributes.items()}
        self.queue.send(json.dumps(events), {"taken": _number(self.clock()), **typed})

    def fail(self, patch: pytest.MonkeyPatch, error: Callable[[Mapping[str, Any]], Exception | None]) -> None:
        """Make writes of some items fail."""
        put = type(self.table).put_item

        def put_item(**request: Any) -> dict[str, Any]:
            if (raised := error(request["Item"])) is not None:
                raise raised
            return put(self.table, **request)

        patch.setattr(self.table, "put_item", put_item)

    def urls(self) -> list[str]:
        """The URLs of the events accepted."""
        return sorted(item["url"]["S"] for item in self.table.items())


def _number(value: float) -> dict[str, str]:
    return {"DataType": "Number", "StringValue": str(int(value))}


def _view(url: str, **more: object) -> dict[str, object]:
    return {"url": url, "time": "2026-11-20T10:00:00Z", "clientId": "c", **more}


def _events(messages: list[Message]) -> list[list[dict[str, Any]]]:
    return [json.loads(message.body) for message in messages]


@pytest.fixture
def world() -> World:
    return World()


def test_what_can_never_be_accepted_becomes_a_dead_letter_and_the_rest_is_accepted(world: World) -> None:
    world.post(_view("/a"), {"url": "/b"}, _view("/c"), "no event")
    consumed = world.deliver()
    assert world.urls() == ["/a", "/c"]
    [letter] = world.dead.messages()
    assert json.loads(letter.body) == [{"url": "/b"}, "no event"]
    assert letter.attributes["reason"]["StringValue"].startswith("rejected: invalid time=None")
    assert letter.attributes["taken"] == _number(world.clock())
    assert world.queue.messages() == []
    assert (consumed.unfinished, consumed.statuses["rejected"]) == ([], 2)


@pytest.mark.parametrize(
    "error",
    [
        failure("PutItem", "ProvisionedThroughputExceededException"),
        failure("PutItem", "InternalServerError"),
        ReadTimeoutError(endpoint_url="https://dynamodb"),
        TimeoutError("later"),
    ],
)
def test_what_the_table_refuses_for_now_is_sent_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    taken = world.clock()
    broken = True
    world.fail(monkeypatch, lambda item: error if broken and item["url"]["S"] != "/a" else None)
    world.post(_view("/a"), _view("/b"))
    world.post(_view("/c"))
    delays = []
    for attempt in range(1, 30):
        assert world.deliver().unfinished == []
        waiting = world.queue.messages()
        assert {message.attributes["attempts"]["StringValue"] for message in waiting} == {str(attempt)}
        assert {message.attributes["taken"]["StringValue"] for message in waiting} == {str(int(taken))}
        delays.append(max(message.visible_at - message.sent_at for message in waiting))
        assert 1 <= delays[-1] <= 900
        assert world.queue.visible() == 0
        world.clock.advance(900)
    assert max(delays) > 300
    assert delays[0] <= 30
    assert world.dead.messages() == []
    broken = False
    world.deliver()
    assert world.urls() == ["/a", "/b", "/c"]
    assert world.queue.messages() == []


def test_only_what_failed_is_sent_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    throttled = failure("PutItem", "ThrottlingException")
    world.fail(monkeypatch, lambda item: throttled if item["url"]["S"] == "/b" else None)
    world.post(_view("/a"), _view("/b"), {"url": "/c"})
    consumed = world.deliver()
    assert _events(world.queue.messages()) == [[_view("/b")]]
    assert _events(world.dead.messages()) == [[{"url": "/c"}]]
    assert consumed.again == 1


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_a_fault_of_the_deployment_makes_no_dead_letters(
    world: World, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    broken = True
    world.fail(monkeypatch, lambda _: failure("PutItem", code) if broken else None)
    for number in range(20):
        world.post(_view(f"/{number}"))
    for _ in range(40):
        consumed = world.deliver()
        assert consumed.unfinished == []
        assert all(code in fault for fault in consumed.faults)
        world.clock.advance(901)
    assert consumed.faults
    assert consumed.oldest > 900
    assert world.dead.messages() == []
    broken = False
    world.deliver()
    assert len(world.urls()) == 20


def test_a_message_that_cannot_be_sent_on_is_delivered_again(world: World) -> None:
    world.post({"url": "/b"})
    world.post(_view("/a"))
    world.refuse_sending = True
    assert len(world.deliver().unfinished) == 1
    world.refuse_sending = False
    world.clock.advance(400)
    assert world.deliver().unfinished == []
    assert len(world.dead.messages()) == 1
    assert world.urls() == ["/a"]


def test_slices_stop_in_time_and_the_rest_is_sent_again_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.fail(monkeypatch, lambda _: world.clock.advance(0.05))
    for number in range(5):
        world.post(*(_view(f"/{number}/{each}") for each in range(700)))
    start = world.clock()
    consumed = world.deliver(time_left=60)
    # A slice of 1,000 events takes 50 s here, so there is one.
    assert world.clock() - start < 60
    assert len(world.urls()) == 1000
    assert [len(events) for events in _events(world.queue.messages())] == [400, 700, 700, 700]
    assert all(message.visible_at == message.sent_at for message in world.queue.messages())
    assert not any("attempts" in message.attributes for message in world.queue.messages())
    assert (consumed.unfinished, consumed.statuses) == ([], {"accepted": 1000, "rejected": 0})
    while world.queue.messages():
        world.deliver(time_left=60)
    assert len(world.urls()) == 3500


def test_what_came_often_and_is_not_reached_keeps_its_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again, a message that crashes the function would be as good as new."""
    for number in range(3):
        world.post(_view(f"/{number}"))
    for _ in range(4):
        assert len(world.queue.receive(10)) == 3
        world.clock.advance(400)
    world.fail(monkeypatch, lambda _: world.clock.advance(45))
    assert len(world.deliver(time_left=60).unfinished) == 2
    assert {message.receives for message in world.queue.messages()} == {5}


def test_retries_respect_the_deadline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = replace(world.reached, bulk="partiql")
    world.consumer._table = reached
    answer = {"Responses": [{"Error": {"Code": "ThrottlingError", "Message": ""}}]}
    monkeypatch.setattr(world.table, "batch_execute_statement", lambda **_: answer)
    world.post(_view("/a"))
    start = world.clock()
    world.deliver(time_left=1.2)
    assert world.clock() - start <= 0.8
    assert reached.deadline.at == pytest.approx(start + 0.8)


def test_an_old_dead_letter_is_not_counted_twice(world: World) -> None:
    """Ten events were accepted, became dead letters by mistake, and are redriven after they are forgotten."""
    for number in range(10):
        world.post(_view(f"/{number}"))
    messages = world.queue.receive(10)
    for message in messages:
        world.dead.send(message.body, message.attributes)
    world.consumer.consume([one.record() for one in messages], lambda: 60)
    for message in messages:
        world.queue.delete(message.id)
    counted = len(world.urls())
    world.clock.advance(7 * DAY + 3600)
    world.table.expire()
    assert world.dead.redrive(world.queue) == 10
    consumed = world.deliver()
    counted += len(world.urls())
    assert counted == 10
    assert consumed.statuses["too_late"] == 10
    letters = world.dead.messages()
    assert len(letters) == 10
    assert letters[0].attributes["reason"]["StringValue"].startswith("too_late: taken at 2026-11-20T10:00:00+00:00")


def test_a_young_dead_letter_is_accepted_once(world: World) -> None:
    world.post(_view("/a"))
    [message] = world.queue.messages()
    world.dead.send(message.body, message.attributes)
    world.deliver()
    world.clock.advance(6.9 * DAY)
    world.dead.redrive(world.queue)
    assert world.deliver().statuses["duplicate"] == 1


def test_without_the_attribute_the_time_of_sending_counts_and_is_passed_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = world.clock()
    world.fail(monkeypatch, lambda _: failure("PutItem", "ThrottlingException"))
    world.queue.send(json.dumps(_view("/a")))
    world.deliver()
    [again] = world.queue.messages()
    assert again.attributes["taken"] == _number(sent)


@pytest.mark.parametrize("taken", ["x", "-1", "nan", "1e300", "{now}000"])
def test_a_strange_time_is_no_reason_to_refuse(world: World, taken: str) -> None:
    world.post(_view("/a"), taken=taken.format(now=int(world.clock())))
    assert world.deliver().statuses["accepted"] == 1


def test_the_admission_refuses_what_could_not_be_counted() -> None:
    world = World(admission=Admission((BYTES,)))
    world.post(_view("/a", bytes=1), _view("/b", bytes="many"), _view("/c", bytes=2))
    world.deliver()
    [letter] = world.dead.messages()
    assert json.loads(letter.body) == [_view("/b", bytes="many")]
    assert "bytes" in letter.attributes["reason"]["StringValue"]
    assert world.urls() == ["/a", "/c"]


HOSTILE = {
    "deep list": "[" * 100_000,
    "deep and closed": "[" * 980 + "]" * 980,
    "deep map": '{"a":' * 979 + "1" + "}" * 979,
    "many nothings": "[" + "{}," * 80_000 + "{}]",
    "many numbers": '[{"url":"/x","time":"t","clientId":"c","n":[' + "0," * 120_000 + "0]}]",
    "long number": '[{"url":"/x","time":"t","clientId":"c","n":' + "9" * 250_000 + "}]",
    "long fraction": '[{"url":"/x","time":"t","clientId":"c","n":0.' + "9" * 250_000 + "}]",
    "exponent": '[{"url":"/x","time":"t","clientId":"c","n":1e999999999}]',
    "surrogate": '[{"url":"/\\ud800","time":"t","clientId":"c"}]',
    "long names": '[{"url":"/x","time":"t","clientId":"c","' + "n" * 240_000 + '":1}]',
    "no text": "\x00",
    "empty": " ",
    "control characters": '[{"url":"/\\u0001\\uffff","tim\\u0000":1}]',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_harms_no_other_message(name: str) -> None:
    world = World()
    for number in range(9):
        world.post(_view(f"/{number}"))
    world.queue.send(HOSTILE[name])
    world.queue._visible.rotate(5)
    began = time.process_time()
    assert world.deliver().unfinished == []
    # With a fifth of a processor, as a function of 512 MB has, still in time.
    assert time.process_time() - began < 4
    assert {f"/{number}" for number in range(9)} <= set(world.urls())
    assert world.queue.messages() == []
    assert len(world.dead.messages()) == 1


def test_dead_letters_fit_the_queue() -> None:
    world = World()
    texts = ["\u4e2d" * 80_000, "\U0001f600" * 60_000, '"' * 100_000]
    for text in texts:
        world.queue.send(json.dumps([{"url": text}, _view("/ok")], ensure_ascii=False))
    assert world.deliver().unfinished == []
    assert len(world.dead.messages()) == 3
    assert world.urls() == ["/ok"]
    assert all(len(one.body.encode()) < MAX_BYTES // 2 for one in world.dead.messages())


def test_an_event_that_raises_is_isolated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the runtime does not foresee: the message comes again, and ends as a dead letter after ten receives."""

    def raising(table: Table, event: Event, events: list[Any], *more: Any) -> Any:
        if any(one["url"] == "/bad" for one in events):
            raise ZeroDivisionError
        return accept_many(table, event, events, *more)

    monkeypatch.setattr(_ACCEPT_MANY, raising)
    for number in range(20):
        world.post(_view("/bad" if number == 7 else f"/{number}"))
    assert len(world.deliver().unfinished) == 1
    assert len(world.urls()) == 19
    for _ in range(10):
        world.clock.advance(400)
        world.deliver()
    assert len(world.dead.messages()) == 1
    assert world.queue.messages() == []


@pytest.mark.parametrize("seed", range(5))
def test_a_message_that_kills_the_function_takes_nobody_along(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = World()
    world.reached.__dict__["jitter"] = random.Random(seed).random

    class Killed(BaseException):
        pass

    def killing(table: Table, event: Event, events: list[Any], *more: Any) -> Any:
        if any(one["url"] == "/bad" for one in events):
            raise Killed
        return accept_many(table, event, events, *more)

    monkeypatch.setattr(_ACCEPT_MANY, killing)
    for number in range(100):
        world.post(_view("/bad" if number == 50 else f"/{number}"))
    kills = rounds = 0
    while len(world.urls()) < 99 or world.queue.messages():
        rounds += 1
        assert rounds < 40
        try:
            world.deliver()
        except Killed:
            kills += 1
        world.clock.advance(400)
    assert _events(world.dead.messages()) == [[_view("/bad")]]
    assert kills == 10


def test_packed_events_of_a_batch_are_accepted_together() -> None:
    world = World(replace(VIEW, packed=Packed("time")))
    for number in range(300):
        world.post(*(_view(f"/{number}/{each}") for each in range(10)))
    world.deliver(most=1000)
    # As if all came in one call: 3,000 events, one bucket.
    assert world.table.usage.writes / 3000 < 0.05


def test_nothing_waits_for_a_client_of_sqs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._clients.make_service_client", lambda _: pytest.fail("not needed"))
    del world.consumer._queues.__dict__["_sqs"]
    world.post(_view("/a"))
    assert world.deliver().statuses["accepted"] == 1


def test_of_a_table_without_deadline_nothing_changes() -> None:
    table = World().reached
    assert table.deadline.at == math.inf
    assert list(table.tries(3)) == [0, 1, 2]
