"""`evaluate` refuses the packed events that `accept` refuses."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynamodb_counters import Aggregate, Count, Event, Packed, evaluate
from simulation.counters_in_memory import counters_in_memory

CLICK = Event(
    "click",
    pk="AD#{ad}",
    sk="T#{time}#CID#{clientId}",
    packed=Packed("time", timedelta(minutes=10)),
    retention=timedelta(days=1),
)
CLICKS = Aggregate("clicks", CLICK, pk="AD#{ad}", sk="CLICKS", measures={"clicks": Count()})
NOW = 1_767_225_600.0


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("yesterday", "expected the time of a packed event"),
        ("2026-01-09T00:00:00Z", "ahead of now"),
        ("2025-01-01T00:00:00Z", "as the event is kept"),
        ("2026-01-01T00:00:00Z", ""),
    ],
)
def test_evaluate_counts_the_packed_events_that_accept_takes(time: str, said: str) -> None:
    click = {"ad": "a", "time": time, "clientId": "c1"}
    with counters_in_memory([CLICKS]) as counters:
        if said:
            with pytest.raises(ValueError, match=said):
                counters.accept(CLICK, click)
            with pytest.raises(ValueError, match=said):
                evaluate([CLICKS], [(CLICK, click)], now=NOW)
        else:
            counters.accept(CLICK, click)
            assert evaluate([CLICKS], [(CLICK, click)], now=NOW)["clicks"] == [counters.get(CLICKS, {"ad": "a"})]
