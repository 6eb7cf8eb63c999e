"""A burst of more events than the table admits: all are accepted, none becomes a dead letter, and it ends in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulation.queue.polling import Consume
from simulation.throttled_burst import World, new_consumer, old_consumer, run


def burst(consumer: Callable[[World], Consume], *, refused: float = 0, max_receives: int = 10, seed: int = 0) -> Any:
    """Post in a fraction of a second as many events as the table admits in 80 seconds."""
    more: Any = {"refused": refused, "max_receives": max_receives, "seed": seed}
    return run(consumer, events=4000, units_per_second=50, **more)


@pytest.mark.parametrize("seed", range(3))
def test_a_throttled_burst_is_accepted_completely(seed: int) -> None:
    found = burst(new_consumer, seed=seed)
    assert found["accepted"] == 4000
    assert found["events in the dead-letter queue"] == 0
    assert found["write units per event"] < 1.05
    assert found["seconds until the last event was accepted"] < 4 * 80
    assert found["invocations killed"] == 0


def test_requests_to_the_queue_that_fail_lose_nothing() -> None:
    found = burst(new_consumer, refused=0.05)
    assert found["accepted"] == 4000
    assert found["events in the dead-letter queue"] == 0


def test_loop_detection_ends_what_is_sent_again_too_often() -> None:
    """With Lambda's default, a message's seventeenth invocation is refused: it crashes nothing and becomes dead."""
    found = run(new_consumer, events=200, units_per_second=50, outage=3600)
    assert found["events in the dead-letter queue"] > 0
    assert found["invocations dropped as a loop"] > 0


def test_delivering_whole_messages_again_loses_most_of_them() -> None:
    """The consumer as it was, three receives: what the other tests would miss if the simulation were too kind."""
    found = burst(old_consumer, max_receives=3)
    assert found["share of messages in the dead-letter queue"] > 0.25
