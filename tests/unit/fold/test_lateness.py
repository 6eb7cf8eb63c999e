"""Late and early events at every boundary; expired buckets; retention that is changed later.

Lateness is judged by the age of a bucket when the record was made, never by the clock.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import InvalidArgumentError, Sum, Window
from simulation.night import NIGHT
from tests.unit.fold.buckets import JOB, Buckets, fold

_C = {"customer": "c"}
_DAY = 86_400
_MAY = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
_JOBS = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", future_tolerance=None)
_AMOUNTS = replace(_JOBS, measure=Sum("amount"))
_25_HOURS = timedelta(hours=25)
_MONTH = replace(_JOBS, retention=timedelta(days=31), longest=timedelta(days=30))

# precision, its finest bucket: what decides whether an event is late
_FINEST = [
    (timedelta(seconds=1), 60),
    (timedelta(minutes=1), 3600),
    (timedelta(hours=1), _DAY),
    (timedelta(days=1), 31 * _DAY),
]


@pytest.mark.parametrize(("precision", "bucket"), _FINEST)
@pytest.mark.parametrize("into", [0, -1])
def test_an_event_counts_in_all_tiers_until_its_finest_bucket_is_over(
    precision: timedelta, bucket: int, into: int
) -> None:
    window = replace(_MONTH, precision=precision)
    at = _MAY + (into % bucket)
    end = _MAY + bucket + 31 * _DAY

    kept, gone = fold(window, [(at, 1)], end - 0.001), fold(window, [(at, 1)], end)

    assert [delta.group[-2] for delta in kept.deltas] == [tier.letter for tier in window._kept_tiers]
    assert {delta.measures["total"] for delta in kept.deltas} == {1}
    assert (kept.late, gone.deltas, gone.late) == (0, [], 1)
    assert kept.unfoldable == gone.unfoldable == []


@pytest.mark.parametrize("precision", [precision for precision, _ in _FINEST])
@pytest.mark.parametrize("tolerance", [timedelta(0), timedelta(minutes=15), timedelta(days=1)])
def test_an_event_from_beyond_the_tolerance_counts_in_no_tier(precision: timedelta, tolerance: timedelta) -> None:
    window = replace(_MONTH, precision=precision, future_tolerance=tolerance)
    limit = _MAY + int(tolerance.total_seconds())

    assert {delta.measures["total"] for delta in fold(window, [(limit, 1)], _MAY).deltas} == {1}
    refused = fold(window, [(limit + 1, 1)], _MAY)
    assert (refused.deltas, len(refused.unfoldable)) == ([], 1)
    assert "future" in refused.unfoldable[0].reason


def test_a_late_event_is_quarantined_where_the_window_says_so() -> None:
    window = replace(_MONTH, late="quarantine")
    end = _MAY + 3600 + 31 * _DAY
    kept, refused = fold(window, [(_MAY, 1)], end - 1), fold(window, [(_MAY, 1)], end)

    assert (len(kept.deltas), kept.unfoldable) == (len(window._kept_tiers), [])
    assert refused.deltas == []
    assert "too late" in refused.unfoldable[0].reason


@pytest.mark.parametrize("limit", [{"retention": _25_HOURS}, {"future_tolerance": timedelta(0)}])
def test_a_record_without_a_time_cannot_be_judged(limit: Any) -> None:
    assert fold(replace(_JOBS, **limit), [(_MAY, 1)], None).unfoldable


def test_a_sum_of_zero_makes_no_bucket() -> None:
    assert fold(_AMOUNTS, [(0, 0)]).deltas == []


@pytest.mark.parametrize("precision", [precision for precision, _ in _FINEST])
def test_no_read_misses_an_event_that_was_late(precision: timedelta) -> None:
    # Every moment of two months either counts, or no window that is allowed can hold it.
    window = replace(_MONTH, precision=precision)
    now = _MAY + 61 * _DAY + 5_000
    for at in range(_MAY, now, 50_021):
        buckets = Buckets(now)
        folded = fold(window, [(at, 1)], now)
        buckets.write(folded)
        span = (datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC))
        if folded.late:
            with pytest.raises(InvalidArgumentError, match="retains no more"):
                buckets.counters.window(window, _C).between(*span)
        elif at >= now - 31 * _DAY:
            assert buckets.counters.window(window, _C).between(*span).count == 1


def test_buckets_that_ttl_deletes_are_never_needed() -> None:
    buckets = Buckets()
    moments = [(_MAY + hour * 3600, 1) for hour in range(60 * 24)]
    buckets.write(fold(_MONTH, moments, _MAY))
    for now in range(_MAY + 31 * _DAY, _MAY + 60 * _DAY, 36_001 if NIGHT else 100_001):
        buckets.now = now
        before = buckets.counters.window(_MONTH, _C).last(timedelta(days=31))
        buckets.expire()
        assert buckets.counters.window(_MONTH, _C).last(timedelta(days=31)) == before
        assert before.count > 700


def test_a_late_redelivery_that_makes_an_expired_bucket_again_does_not_count() -> None:
    # The record was made in time, so each of its deliveries counts it, also when the bucket is deleted by then.
    buckets = Buckets(_MAY + 32 * _DAY + 7200)
    first = fold(_MONTH, [(_MAY, 1)], _MAY)
    buckets.write(first)
    buckets.expire()
    left = [item["sk"]["S"] for item in buckets.items()]
    assert left == ["WINDOW#jobs#D#2026-05-01"][: len(left)]
    buckets.write(first)

    for last in (timedelta(days=31), timedelta(days=30), timedelta(hours=24)):
        assert buckets.counters.window(_MONTH, _C).last(last).count == 0
