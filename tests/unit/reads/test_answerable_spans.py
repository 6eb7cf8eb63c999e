"""Trailing spans by kinds of reads: each is answered by that much time, half of it over at least, or refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from dynamodb_counters import ActiveMembers, Declaration, Event, InvalidArgumentError, Percentiles, Window
from simulation.counters_in_memory import counters_in_memory

VIEW: Final = Event("view", key="id")
NOW: Final = datetime(2026, 11, 20, 8, 36, 5, tzinfo=UTC)
_MONTH: Final = timedelta(days=30)
_SPANS: Final = (
    *((number, "seconds") for number in (1, 2, 30, 60, 90, 3600)),
    *((number, "minutes") for number in (1, 2, 5, 15, 60, 90, 1440)),
    *((number, "hours") for number in (1, 2, 6, 24, 36, 48)),
    *((number, "days") for number in (1, 2, 30, 31)),
    (1, "weeks"),
)


_UNITS: Final = [timedelta(seconds=unit) for unit in (60, 3600, 86_400)]
_WINDOWS: Final = [
    Window(f"window{n}", VIEW, time="at", precision=unit, longest=_MONTH, retention=_MONTH)
    for n, unit in enumerate([timedelta(seconds=1), *_UNITS])
]
_ACTIVE: Final = [
    ActiveMembers(f"active{n}", VIEW, member="user", time="at", precision=unit, longest=30 * unit)
    for n, unit in enumerate(_UNITS)
]
_PERCENTILES: Final = [
    Percentiles(f"sizes{n}", VIEW, attribute="ms", time="at", precision=unit) for n, unit in enumerate(_UNITS)
]
_TIMED: Final[list[Declaration]] = [*_WINDOWS, *_ACTIVE, *_PERCENTILES]


@pytest.mark.parametrize("declared", [pytest.param(each, id=each.name) for each in _TIMED])
def test_a_span_is_answered_as_it_was_asked_for_or_refused(declared: Any) -> None:
    unit, most = declared.precision, 30 * declared.precision if isinstance(declared, ActiveMembers) else _MONTH
    with counters_in_memory(_TIMED, now=NOW) as counters:
        for number, name in _SPANS:
            span, reader = timedelta(**{name: number}), counters.window(declared)
            if 2 * unit <= span <= most and not span % unit:
                found = reader.last(span)
                assert (found.end - found.start, NOW - found.start >= span / 2) == (span, True)
            elif isinstance(declared, Percentiles) and span > most:
                assert reader.last(span).end > NOW
            else:
                with pytest.raises(InvalidArgumentError) as refused:
                    reader.last(span)
                words = (
                    "more than the unit",
                    "a multiple of the precision",
                    "the longest of",
                    "retains no more",
                )
                assert any(each in str(refused.value) for each in words), refused.value


def test_a_refusal_names_the_spans_that_can_be_asked_for() -> None:
    with counters_in_memory(_ACTIVE, now=NOW) as counters:
        with pytest.raises(InvalidArgumentError) as refused:
            counters.window(_ACTIVE[-1]).last(timedelta(hours=24))
        allowed = "expected more than the unit that 'active2' counts by, as the current one is not over"
        assert allowed in str(refused.value)
