"""Messages that strangers send: whatever one does, the others are accepted, and it ends as a dead letter."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from dynamodb_counters import Event
from dynamodb_counters._queue.consumer import dead_letter, read_message
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from simulation.night import scaled
from simulation.queue.sqs import MAX_BYTES
from tests.cpu_time import cpu_seconds_below
from tests.unit.queue.world import World, events_of, view

_ACCEPT_MANY = "dynamodb_counters._queue.consumer.accept_many"

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
        world.post(view(f"/{number}"))
    world.queue.send(HOSTILE[name])
    world.queue._visible.rotate(5)
    # With a fifth of a processor, as a function of 512 MB has, still in time.
    with cpu_seconds_below(4, time.process_time):
        assert world.deliver().unfinished == []
    assert {f"/{number}" for number in range(9)} <= set(world.urls())
    assert world.queue.messages() == []
    assert len(world.dead.messages()) == 1


def test_a_body_that_is_no_unicode_becomes_a_dead_letter_that_is() -> None:
    record = {"messageId": "m", "body": '[{"url":"/\ud800","time":"t","clientId":"c"}]'}
    message = read_message(record, now=0.0)
    message.parse()
    sending = dead_letter(message)
    assert sending is not None
    assert sending.body.encode().decode() == record["body"].replace("\ud800", "?")
    assert "Unicode" in sending.attributes["reason"]["StringValue"]


def test_dead_letters_fit_the_queue() -> None:
    world = World()
    texts = ["\u4e2d" * 80_000, "\U0001f600" * 60_000, '"' * 100_000]
    for text in texts:
        world.queue.send(json.dumps([{"url": text}, view("/ok")], ensure_ascii=False))
    assert world.deliver().unfinished == []
    assert len(world.dead.messages()) == 3
    assert world.urls() == ["/ok"]
    assert all(len(one.body.encode()) < MAX_BYTES // 2 for one in world.dead.messages())


def test_an_event_that_raises_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that the runtime does not foresee: the message comes again, and is a dead letter after ten receives."""

    def raising(table: Table, event: Event, events: list[Any], *more: Any) -> Any:
        if any(one["url"] == "/bad" for one in events):
            raise ZeroDivisionError
        return accept_many(table, event, events, *more)

    monkeypatch.setattr(_ACCEPT_MANY, raising)
    world = World()
    for number in range(20):
        world.post(view("/bad" if number == 7 else f"/{number}"))
    assert len(world.deliver().unfinished) == 1
    assert len(world.urls()) == 19
    for _ in range(10):
        world.clock.advance(400)
        world.deliver()
    assert len(world.dead.messages()) == 1
    assert world.queue.messages() == []


@pytest.mark.parametrize("seed", range(scaled(1)))
def test_a_message_that_kills_the_function_takes_no_other_along(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
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
        world.post(view("/bad" if number == 50 else f"/{number}"))
    kills = rounds = 0
    while len(world.urls()) < 99 or world.queue.messages():
        rounds += 1
        assert rounds < 40
        try:
            world.deliver()
        except Killed:
            kills += 1
        world.clock.advance(400)
    assert events_of(world.dead.messages()) == [[view("/bad")]]
    assert kills == 10
