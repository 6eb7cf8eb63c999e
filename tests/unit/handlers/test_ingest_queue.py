"""The consumer: no event is lost, none counts twice, and only what can never be accepted becomes a dead letter.

Strangers send some: whatever one does, the others are accepted.
"""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ReadTimeoutError

from counters_lambda.handlers import ingest_queue as consumer
from dynamodb_counters import Aggregate, Event, Packed, Sum
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many
from dynamodb_counters._writes.outcomes import Outcome
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from simulation.memory_table import MemoryTable
from simulation.night import scaled
from simulation.queue.sqs import SQS, Message, Queue
from tests.unit.handlers.conftest import Load, Metered

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))


class World:
    """A queue whose messages a consumer handles, and a table in memory that fails on command."""

    def __init__(self, event: Event = VIEW, *aggregates: Aggregate) -> None:
        self.clock = VirtualClock()
        self.dead = Queue(self.clock)
        self.queue = Queue(self.clock, dead_letters=self.dead)
        self.table = MemoryTable(self.clock)
        self.refuse_sending = False
        # What feeds its own queue is a loop, which Lambda ends.
        self.sqs = SQS({"d": self.dead}, refuses=lambda: self.refuse_sending)
        self.error: Callable[[Mapping[str, Any]], Exception | None] = lambda _: None
        """What writes of some items fail with."""
        client: Any = HookedClient(self.table, self._send)
        self.reached = Table(self.table.name, client, self.clock, self.clock.advance, random.Random(0).random)
        self.consumer = consumer.Consumer(self.reached, event, "d", Plan(aggregates))
        self.consumer.__dict__["sqs"] = self.sqs

    def deliver(self, time_left: float = 60.0, most: int = 100) -> list[consumer.Message]:
        """Have the consumer handle what waits, as Lambda does."""
        received = self.queue.receive(most)
        end = self.clock() + time_left
        messages = self.consumer.consume([message.record() for message in received], lambda: end - self.clock())
        for message in messages:
            if message.is_done:
                self.queue.delete(message.id)
        return messages

    def pass_time(self) -> None:
        """Let messages that were not deleted come again."""
        self.clock.advance(self.queue.visibility_timeout + 1)

    def post(self, *events: object, **attributes: str) -> None:
        """Queue one message."""
        typed = {name: {"DataType": "Number", "StringValue": value} for name, value in attributes.items()}
        self.queue.send(json.dumps(events), {"taken": seconds(self.clock()), **typed})

    def _send(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "put_item" and (error := self.error(request["Item"])) is not None:
            raise error
        return send()

    def urls(self) -> list[str]:
        """Return the URLs of the events accepted."""
        return sorted(item["url"]["S"] for item in self.table.items())


def statuses(messages: Iterable[consumer.Message]) -> Counter[str]:
    return Counter(outcome.status.value for message in messages for outcome in message.outcomes)


def seconds(value: float) -> dict[str, str]:
    return {"DataType": "Number", "StringValue": str(int(value))}


def view(url: str, **more: object) -> dict[str, object]:
    return {"url": url, "time": "2026-11-20T10:00:00Z", "clientId": "c", **more}


def reason(message: Message) -> str:
    return message.attributes["reason"]["StringValue"]


def events_of(messages: list[Message]) -> list[list[dict[str, Any]]]:
    return [json.loads(message.body) for message in messages]


BYTES = Aggregate("bytes", VIEW, pk="URL#{url}", sk="BYTES", measures={"bytes": Sum("bytes")})
DAY = 86_400.0


@pytest.fixture
def world() -> World:
    return World()


THROTTLED = failure("PutItem", "ProvisionedThroughputExceededException")
FAULT = failure("PutItem", "InternalServerError")


@pytest.mark.parametrize("error", [THROTTLED, FAULT, ReadTimeoutError(endpoint_url="https://x"), TimeoutError("later")])
def test_messages_that_the_table_refuses_for_now_come_again_as_they_were(world: World, error: Exception) -> None:
    world.error = lambda item: error if item["url"]["S"] != "/a" else None
    world.post(view("/a"), view("/b"), {"url": "/incomplete"})
    world.post(view("/c"))
    for _ in range(30):
        world.deliver()
        assert set(world.urls()) <= {"/a"}
        assert len(world.queue.messages()) == 2
        assert world.dead.messages() == []
        world.pass_time()
    world.error = lambda _: None
    counts = statuses(world.deliver())
    assert (counts["accepted"] + counts["duplicate"], counts["rejected"]) == (3, 1)
    assert world.urls() == ["/a", "/b", "/c"]
    assert world.queue.messages() == []
    assert events_of(world.dead.messages()) == [[{"url": "/incomplete"}]]


def test_a_dead_letter_that_cannot_be_sent_stays_in_the_queue(world: World) -> None:
    world.post(view("/a"), {"url": "/incomplete"})
    world.refuse_sending = True
    [message] = world.deliver()
    assert (message.is_done, message.outcomes[-1].status) == (False, "failed")
    assert "no dead letter was sent: An error occurred" in str(message.outcomes[-1].reason)
    world.refuse_sending = False
    world.pass_time()
    assert [message.is_done for message in world.deliver()] == [True]
    assert (world.urls(), len(world.dead.messages()), world.queue.messages()) == (["/a"], 1, [])


def test_every_spelling_of_a_time_is_one_event() -> None:
    typed = replace(VIEW, attributes={"url": str, "time": datetime, "clientId": str})
    world = World(typed)
    for time in ("2026-11-20T10:00:00Z", "2026-11-20T11:00:00.000+01:00", "20261120T100000z"):
        world.post({**view("/a"), "time": time})
    world.deliver()
    assert (world.urls(), world.dead.messages()) == (["/a"], [])
    world.post(*({**view("/a"), "time": time, "bytes": 1} for time in ("20261120T10Z", "20261120T1000Z")))
    world.deliver()
    [letter] = world.dead.messages()
    assert reason(letter).startswith("conflict: the stored event of this key differs")
    assert [len(events) for events in events_of([letter])] == [2]


def test_a_cloud_event_that_is_posted_as_it_is_becomes_a_dead_letter(world: World) -> None:
    envelope = {"specversion": "1.0", "id": "1", "source": "/a", "type": "view", "data": {"bytes": 5}}
    world.post({**view("/a"), **envelope}, view("/b"))
    world.deliver()
    assert world.urls() == ["/b"]
    [letter] = world.dead.messages()
    assert "it is a CloudEvent" in reason(letter)


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_a_fault_of_the_deployment_makes_no_dead_letters(world: World, code: str) -> None:
    world.error = lambda _: failure("PutItem", code)
    for number in range(20):
        world.post(view(f"/{number}"))
    for _ in range(40):
        messages = world.deliver()
        assert len(messages) == 20
        assert all(not message.is_done and code in str(message.outcomes[0].reason) for message in messages)
        world.pass_time()
    assert world.dead.messages() == []
    world.error = lambda _: None
    world.deliver()
    assert len(world.urls()) == 20


def test_what_is_not_reached_in_time_comes_again(world: World) -> None:
    world.error = lambda _: world.clock.advance(0.05)
    for number in range(5):
        world.post(*(view(f"/{number}/{index}") for index in range(300)))
    start = world.clock()
    messages = world.deliver(time_left=60)
    # An event takes 0.05 s here, so there are 800 in 40 s.
    assert world.clock() - start <= 40.1
    assert 800 <= len(world.urls()) <= 801
    assert sum(message.is_done for message in messages) == 2
    assert statuses(messages)["accepted"] == len(world.urls()) == 1500 - statuses(messages)["failed"]
    for _ in range(3):
        world.pass_time()
        world.deliver(time_left=60)
    assert len(world.urls()) == 1500
    assert (world.queue.messages(), world.dead.messages()) == ([], [])


def test_an_old_dead_letter_is_not_counted_twice(world: World) -> None:
    """Ten events were accepted, became dead letters by mistake, and are redriven after they are forgotten."""
    for number in range(10):
        world.post(view(f"/{number}"))
    messages = world.queue.receive(10)
    for message in messages:
        world.dead.send(message.body, message.attributes)
    world.consumer.consume([message.record() for message in messages], lambda: 60)
    for message in messages:
        world.queue.delete(message.id)
    counted = len(world.urls())
    world.clock.advance(7 * DAY + 3600)
    world.table.expire()
    assert world.dead.redrive(world.queue) == 10
    messages_again = world.deliver()
    counted += len(world.urls())
    assert counted == 10
    assert statuses(messages_again)["too_late"] == 10
    letters = world.dead.messages()
    assert len(letters) == 10
    assert reason(letters[0]).startswith("too_late: taken as long ago")


@pytest.mark.parametrize("text", ["x", "-1", "nan", "1e300", "{now}000"])
def test_a_strange_time_is_no_reason_to_refuse(world: World, text: str) -> None:
    world.post(view("/a"), taken=text.format(now=int(world.clock())))
    assert statuses(world.deliver())["accepted"] == 1


def test_the_admission_refuses_what_could_not_be_counted() -> None:
    world = World(VIEW, BYTES)
    world.post(view("/a", bytes=1), view("/b", bytes="many"), view("/c", bytes=2))
    world.deliver()
    [letter] = world.dead.messages()
    assert json.loads(letter.body) == [view("/b", bytes="many")]
    assert "bytes" in reason(letter)
    assert world.urls() == ["/a", "/c"]


def test_packed_events_of_a_batch_are_accepted_together() -> None:
    world = World(replace(VIEW, packed=Packed("time")))
    for number in range(300):
        world.post(*(view(f"/{number}/{index}") for index in range(10)))
    world.deliver(most=1000)
    # As if all came in one call: 3,000 events, one bucket.
    assert world.table.usage.writes / 3000 < 0.05


def test_nothing_waits_for_a_client_of_sqs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._table.make_service_client", lambda *_: pytest.fail("not needed"))
    del world.consumer.__dict__["sqs"]
    world.post(view("/a"))
    assert statuses(world.deliver())["accepted"] == 1


def test_another_payload_of_a_known_key_becomes_a_dead_letter_and_a_repetition_does_not(world: World) -> None:
    world.post({**view("/a"), "bytes": 1})
    world.deliver()
    world.post({**view("/a"), "bytes": 1}, view("/b"))
    assert (statuses(world.deliver())["duplicate"], world.dead.messages()) == (1, [])
    world.post({**view("/a"), "bytes": 2}, view("/c"))
    counts = statuses(world.deliver())

    [letter] = world.dead.messages()
    assert json.loads(letter.body) == [{**view("/a"), "bytes": 2}]
    assert reason(letter) == "conflict: the stored event of this key differs in 'bytes'"
    assert (counts["accepted"], counts["conflict"]) == (1, 1)
    assert accept(world.reached, VIEW, {**view("/a"), "bytes": 2}).status == "conflict"


def test_a_packed_event_with_another_payload_is_a_duplicate_as_accept_says() -> None:
    """No chunk is read for an event that is posted again."""
    packed = World(replace(VIEW, packed=Packed("time")))
    packed.post({**view("/a"), "bytes": 1})
    packed.deliver()
    packed.post({**view("/a"), "bytes": 2})
    outcome = accept(packed.reached, replace(VIEW, packed=Packed("time")), {**view("/a"), "bytes": 3})
    assert (statuses(packed.deliver())["duplicate"], outcome.status) == (1, "duplicate")


def test_dead_letters_fit_the_queue(world: World) -> None:
    texts = ["\u4e2d" * 80_000, "\U0001f600" * 60_000, '"' * 100_000]
    for text in texts:
        world.queue.send(json.dumps([{"url": text}, view("/ok")], ensure_ascii=False))
    assert all(message.is_done for message in world.deliver())
    assert len(world.dead.messages()) == 3
    assert world.urls() == ["/ok"]
    assert {event["url"] for [event] in events_of(world.dead.messages())} == set(texts)


def _raising(patch: pytest.MonkeyPatch, error: type[BaseException] | None = None) -> list[int]:
    """Make the runtime raise on an event, for a reason that is not foreseen; note how many events come at a time."""
    sizes: list[int] = []

    def accept(table: Any, event: Any, events: Any, refusal: Any) -> list[Outcome]:
        sizes.append(len(events))
        if error is not None and view("/bad") in events:
            raise error
        return accept_many(table, event, events, refusal)

    patch.setattr(consumer, "accept_many", accept)
    return sizes


def test_an_event_that_raises_is_isolated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message comes again until its queue gives it up; an operator has days to mend what raises."""
    sizes = _raising(monkeypatch, ZeroDivisionError)
    for number in range(50):
        world.post(view("/bad" if number == 7 else f"/{number}"))
    [message] = [message for message in world.deliver() if not message.is_done]
    assert [outcome.reason for outcome in message.outcomes] == ["ZeroDivisionError: "]
    assert len(world.urls()) == 49
    # It costs those around it few requests.
    assert len(sizes) < 2 * 7
    while world.queue.messages():
        world.pass_time()
        world.deliver()
    assert events_of(world.dead.messages()) == [[view("/bad")]]
    assert 2.9 < (world.clock() - world.dead.messages()[0].sent_at) / 86_400 < 3.1


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_events_next_to_one_that_kills_the_function_are_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    class Killed(BaseException):
        pass

    _raising(monkeypatch, Killed)
    # A slice per message, as if each had 50 events.
    monkeypatch.setattr(consumer, "_MOST_EVENTS", 1)
    world.reached.__dict__["jitter"] = random.Random(seed).random
    world.queue.max_receives = 20
    for number in range(10):
        world.post(view("/bad" if number == 5 else f"/{number}"))
    for _ in range(20):
        with pytest.raises(Killed):
            world.deliver()
        world.pass_time()
    assert len(world.urls()) == 9
    world.deliver()
    assert world.queue.messages() == []
    assert [view("/bad")] in events_of(world.dead.messages())


def test_few_events_are_tried_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a throttled table, some messages get all that they need."""
    sizes = _raising(monkeypatch)
    world.post(*map(view, map(str, range(60))))
    world.deliver()
    assert sizes == [50, 10]


def test_metrics_say_what_became_of_events(load: Load, metered: Metered, monkeypatch: pytest.MonkeyPatch) -> None:
    module, world = load("ingest_queue"), World()
    monkeypatch.setattr(module, "consumer", lambda: world.consumer)
    world.error = lambda item: THROTTLED if item["url"]["S"] == "/later" else None
    world.post(view("/a"), view("/a"), view("/a"), view("/b"))
    world.post({**view("/b"), "bytes": 1}, {"url": "/incomplete"})
    world.post(view("/later"))
    world.post(view("/old"), taken=str(int(world.clock() - 8 * DAY)))
    world.queue.send("no JSON")
    posted = world.clock()
    monkeypatch.setattr(Logger, "log_level", logging.DEBUG)
    module.handler({"Records": [message.record() for message in world.queue.receive(10)]}, LAMBDA_CONTEXT)
    emitted = metered()
    assert emitted.pop("OldestUnfinished") == pytest.approx(world.clock() - posted, abs=1)
    twice = dict.fromkeys(("EventsAccepted", "EventsDuplicate", "EventsRejected"), 2)
    once = dict.fromkeys(("EventsConflicting", "EventsTooLate", "EventsFailed", "MessagesUnfinished"), 1)
    assert emitted == twice | once
