"""Messages that strangers send: whatever one does, the others are accepted, and it ends as a dead letter."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dynamodb_counters import Event
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from simulation.night import scaled
from tests.unit.handlers.queue_world import World, events_of, view

_ACCEPT_MANY = "dynamodb_counters.handlers.ingest_queue.accept_many"


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
