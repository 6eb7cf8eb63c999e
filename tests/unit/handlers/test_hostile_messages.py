"""Messages that strangers send: whatever one does, the others are accepted, and it ends as a dead letter."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from dynamodb_counters import Event
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from simulation.night import scaled
from tests.cpu_time import cpu_seconds_below
from tests.unit.handlers.queue_world import World, events_of, view

_ACCEPT_MANY = "dynamodb_counters.handlers.ingest_queue.accept_many"

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
        assert all(message.is_done for message in world.deliver())
    assert {f"/{number}" for number in range(9)} <= set(world.urls())
    assert world.queue.messages() == []
    assert len(world.dead.messages()) == 1


def test_dead_letters_fit_the_queue() -> None:
    world = World()
    texts = ["\u4e2d" * 80_000, "\U0001f600" * 60_000, '"' * 100_000]
    for text in texts:
        world.queue.send(json.dumps([{"url": text}, view("/ok")], ensure_ascii=False))
    assert all(message.is_done for message in world.deliver())
    assert len(world.dead.messages()) == 3
    assert world.urls() == ["/ok"]
    assert {event["url"] for [event] in events_of(world.dead.messages())} == set(texts)


def _refusing(patch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    """Make the runtime raise on an event, for a reason that is not foreseen."""

    def raising(table: Table, event: Event, events: list[Any], *more: Any) -> Any:
        if any(one["url"] == "/bad" for one in events):
            raise error
        return accept_many(table, event, events, *more)

    patch.setattr(_ACCEPT_MANY, raising)


def test_an_event_that_raises_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message comes again until its queue gives it up; an operator has days to mend what raises."""
    _refusing(monkeypatch, ZeroDivisionError)
    world = World()
    for number in range(20):
        world.post(view("/bad" if number == 7 else f"/{number}"))
    [left] = [message for message in world.deliver() if not message.is_done]
    assert [outcome.reason for outcome in left.outcomes] == ["ZeroDivisionError: "]
    assert len(world.urls()) == 19
    while world.queue.messages():
        world.pass_time()
        world.deliver()
    assert events_of(world.dead.messages()) == [[view("/bad")]]
    assert 2.9 < (world.clock() - world.dead.messages()[0].sent_at) / 86_400 < 3.1


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_events_next_to_one_that_kills_the_function_are_accepted(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    class Killed(BaseException):
        pass

    _refusing(monkeypatch, Killed)
    # A slice per message, as if each had 50 events.
    monkeypatch.setattr("dynamodb_counters.handlers.ingest_queue._MOST_EVENTS", 1)
    world = World()
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
