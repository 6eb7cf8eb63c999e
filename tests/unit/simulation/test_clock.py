"""Virtual time does on its way what is due."""

from __future__ import annotations

import random

from simulation.clock import EPOCH, VirtualClock


def test_calls_that_are_due_are_made_at_their_time_and_in_order() -> None:
    clock = VirtualClock()
    done: list[tuple[str, float]] = []
    for name, due in (("late", 30), ("early", 10), ("later", 31)):
        clock.call_at(EPOCH + due, lambda name=name: done.append((name, clock.now - EPOCH)))  # type: ignore[misc]
    clock.advance(30)
    assert done == [("early", 10), ("late", 30)]
    assert clock() == EPOCH + 30
    clock.advance(5)
    assert done[2:] == [("later", 31)]


def test_something_due_later_can_be_done_now() -> None:
    clock = VirtualClock()
    done: list[float] = []
    clock.call_at(EPOCH + 100, lambda: done.append(clock.now))
    assert clock.hurry(random.Random(1))
    assert not clock.hurry(random.Random(1))
    clock.advance(200)
    assert done == [EPOCH]
