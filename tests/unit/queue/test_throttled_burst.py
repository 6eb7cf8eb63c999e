"""A burst of more events than the table admits: all are accepted, none becomes a dead letter, and it ends in time."""

from __future__ import annotations

import pytest

from simulation.night import scaled
from simulation.throttled_burst import run


@pytest.mark.parametrize(("seed", "refused"), [*((seed, 0.0) for seed in range(scaled(1))), (0, 0.05)])
def test_a_throttled_burst_is_accepted_completely_though_requests_to_the_queue_fail(seed: int, refused: float) -> None:
    """As many events in a fraction of a second as the table admits in 80 seconds."""
    found = run(events=4000, units_per_second=50, refused=refused, seed=seed)
    assert found["accepted"] == 4000
    assert found["events in the dead-letter queue"] == 0
    if not refused:
        assert found["write units per event"] < 1.05
        assert found["seconds until the last event was accepted"] < 4 * 80
        assert found["invocations killed"] == 0


def test_loop_detection_ends_what_is_sent_again_too_often() -> None:
    """With Lambda's default, a message's seventeenth invocation is refused: it crashes nothing and becomes dead."""
    found = run(events=200, units_per_second=50, outage=3600)
    assert found["events in the dead-letter queue"] > 0
    assert found["invocations dropped as a loop"] > 0
