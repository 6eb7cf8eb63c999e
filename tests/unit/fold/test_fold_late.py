"""Late and early events: judged by the age of their bucket when the record was made, never by the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import pytest

from dynamodb_counters import Count, Event, Sum, Window
from dynamodb_counters._fold.deltas import Folded
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.streams import image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_HOUR = 1_790_002_800 // 3600 * 3600  # start of a bucket
_RETENTION = timedelta(hours=25)


def _fold(
    at: int,
    created: float | None,
    *,
    retention: timedelta | None = _RETENTION,
    late: Literal["drop", "quarantine"] = "drop",
    ahead: timedelta | None = timedelta(minutes=15),
    old: int | None = None,
) -> Folded:
    window = Window("w", _VIEW, pk="ALL", time="at", retention=retention, late=late, future_tolerance=ahead)
    before = image("view", at=old) if old is not None else None
    return fold(Plan((window,)), changes_of([record(1, image("view", at=at), before, created=created)]))


def _counted(folded: Folded) -> dict[Any, int | Any]:
    return {delta.group[-1] * 3600: delta.measures["total"] for delta in folded.deltas}


_END = _HOUR + 3600 + int(_RETENTION.total_seconds())
"""When the bucket's retention is over."""


@pytest.mark.parametrize("at", [_HOUR, _HOUR + 3599])
def test_an_event_counts_until_the_last_moment_its_bucket_is_kept(at: int) -> None:
    kept, gone = _fold(at, _END - 0.001), _fold(at, _END)

    assert (_counted(kept), kept.late, kept.unfoldable) == ({_HOUR: 1}, 0, [])
    assert (_counted(gone), gone.late, gone.unfoldable) == ({}, 1, [])


def test_a_late_event_goes_to_quarantine_where_the_window_says_so() -> None:
    kept, gone = _fold(_HOUR, _END - 1, late="quarantine"), _fold(_HOUR, _END, late="quarantine")

    assert (_counted(kept), kept.unfoldable) == ({_HOUR: 1}, [])
    assert _counted(gone) == {}
    assert "late" in gone.unfoldable[0].reason


def test_without_retention_an_event_of_any_age_counts() -> None:
    folded = _fold(0, _END, retention=None, ahead=None)

    assert (_counted(folded), folded.late) == ({0: 1}, 0)


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(minutes=15), timedelta(days=1)])
def test_an_event_from_the_future_counts_up_to_the_tolerance(ahead: timedelta) -> None:
    limit = _HOUR + int(ahead.total_seconds())

    assert _counted(_fold(limit, _HOUR, ahead=ahead)) == {limit // 3600 * 3600: 1}
    beyond = _fold(limit + 1, _HOUR, ahead=ahead)
    assert _counted(beyond) == {}
    assert "future" in beyond.unfoldable[0].reason


def test_any_future_counts_where_the_tolerance_is_none() -> None:
    assert _counted(_fold(_HOUR + 10**9, _HOUR, ahead=None)) == {(_HOUR + 10**9) // 3600 * 3600: 1}


@pytest.mark.parametrize(("retention", "ahead"), [(_RETENTION, None), (None, timedelta(0))])
def test_a_record_that_tells_no_time_cannot_be_judged(retention: timedelta | None, ahead: timedelta | None) -> None:
    assert _fold(_HOUR, None, retention=retention, ahead=ahead).unfoldable


def test_a_record_that_tells_no_time_counts_where_nothing_is_to_be_judged() -> None:
    assert _counted(_fold(_HOUR, None, retention=None, ahead=None)) == {_HOUR: 1}


def test_a_correction_away_from_a_bucket_that_is_gone_adds_to_the_new_one_only() -> None:
    folded = _fold(_HOUR + 26 * 3600, _END, old=_HOUR)

    assert (_counted(folded), folded.late) == ({_HOUR + 26 * 3600: 1}, 1)


def test_a_correction_into_a_bucket_that_is_gone_takes_away_only() -> None:
    folded = _fold(_HOUR, _END, old=_HOUR + 26 * 3600)

    assert (_counted(folded), folded.late) == ({_HOUR + 26 * 3600: -1}, 1)


@pytest.mark.parametrize(("second", "slot"), [(0, "m00"), (59, "m00"), (60, "m01"), (3599, "m59")])
@pytest.mark.parametrize("before_1970", [False, True])
def test_total_and_slot_are_written_together(second: int, slot: str, before_1970: bool) -> None:
    start = -7200 if before_1970 else _HOUR
    window = Window("w", _VIEW, pk="ALL", time="at", measure=Sum("bytes"), future_tolerance=None)
    [delta] = fold(Plan((window,)), changes_of([record(1, image("view", at=start + second, bytes=5))])).deltas

    assert delta.group == ("H", start // 3600)
    assert delta.measures == {"total": 5, slot: 5}


def test_a_count_of_zero_makes_no_bucket() -> None:
    window = Window("w", _VIEW, pk="ALL", time="at", measure=Sum("bytes"), future_tolerance=None)

    assert fold(Plan((window,)), changes_of([record(1, image("view", at=0, bytes=0))])).deltas == []


def test_the_measure_is_a_count_by_default() -> None:
    assert Window("w", _VIEW, pk="ALL", time="at").measure == Count()
