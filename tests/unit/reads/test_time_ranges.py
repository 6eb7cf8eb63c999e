"""Ranges of sort keys hold every event of a span, however its time is written, and few others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynamodb_counters import Counters, Event, InvalidArgumentError
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._reads.events import time_ranges
from simulation.metered_table import MeteredTable

VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#C#{client}")
NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)

_MOMENTS: Final = st.datetimes(
    datetime.min.replace(year=1990),  # noqa: DTZ901
    datetime.min.replace(year=2300),  # noqa: DTZ901
    timezones=st.builds(timezone, st.builds(timedelta, minutes=st.integers(-1439, 1439))),
)
_FORMS: Final[tuple[Callable[[datetime], str], ...]] = (
    lambda moment: moment.isoformat(),
    lambda moment: moment.strftime("%Y%m%dT%H%M%S%z"),
    lambda moment: moment.strftime("%G-W%V-%uT%H:%M%z"),
    lambda moment: moment.strftime("%GW%V%uT%H%M%S%z"),
    lambda moment: str(int(moment.timestamp())),
    lambda moment: f"{moment.timestamp():.3f}",
    lambda moment: str(int(moment.timestamp()) * 1000 + 7),
)


@example(datetime(2026, 11, 19, 23, 30, tzinfo=timezone(-timedelta(hours=1))), datetime.isoformat, 1, 1)
@example(datetime(2026, 11, 21, 0, 30, tzinfo=timezone(timedelta(hours=1))), datetime.isoformat, 1, 1)
@given(_MOMENTS, st.sampled_from(_FORMS), st.floats(0, 9) | st.floats(0, 1e6), st.floats(1, 9) | st.floats(1, 1e6))
def test_each_way_to_write_a_time_of_the_span_is_in_one_range(
    moment: datetime, write: Callable[[datetime], str], before: float, after: float
) -> None:
    text = write(moment)
    seconds = event_seconds({"N" if text.replace(".", "").isdigit() else "S": text})
    ranges = time_ranges("T#", seconds - before, seconds + after)
    assert sum(first <= f"T#{text}#C#1" <= last for first, last in ranges) == 1
    assert ranges == sorted(ranges)


def test_a_time_in_the_sort_key_saves_the_read_of_the_other_days() -> None:
    clock = NOON.timestamp
    table = MeteredTable(clock)
    counters = Counters(table.name, client=cast("Any", table), clock=clock)
    times = [NOON - timedelta(minutes=2 * number) for number in range(5_000)]
    events = [{"url": "/", "time": time.isoformat(), "client": "c"} for time in times]
    assert all(outcome.status == "accepted" for outcome in counters.accept_many(VIEW, events))
    before = table.usage.reads
    start = NOON - timedelta(hours=4)
    found = list(counters.events(VIEW, url="/", time="time", start=start, end=NOON))
    assert [event["time"] for event in found] == sorted(event["time"] for event in events[1:121])
    assert table.usage.reads - before < 30


@pytest.mark.parametrize("time", [None, 5, NOON])
def test_a_span_without_the_attribute_of_the_time_is_refused_at_the_call(time: Any) -> None:
    counters = Counters("counters", client=cast("Any", MeteredTable(NOON.timestamp)))
    with pytest.raises(InvalidArgumentError, match=r"^invalid time=.*: expected the attribute that holds the events"):
        counters.events(VIEW, url="/", start=NOON, time=time)
