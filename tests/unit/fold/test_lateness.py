"""Late and early events at every boundary; expired buckets; retention that is changed later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import InvalidArgumentError, Window
from dynamodb_counters._fold.fold import fold as fold_changes
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.buckets import JOB, Buckets, fold, job

_C = {"customer": "c"}
_DAY = 86_400
_MAY = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
_JOBS = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", future_tolerance=None)
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

    assert [delta.group[-2] for delta in kept.deltas] == [tier.letter for tier in window.kept_tiers]
    assert (kept.late, gone.deltas, gone.late) == (0, [], 1)


@pytest.mark.parametrize("precision", [precision for precision, _ in _FINEST])
def test_an_event_from_beyond_the_tolerance_counts_in_no_tier(precision: timedelta) -> None:
    window = replace(_MONTH, precision=precision, future_tolerance=timedelta(minutes=15))

    assert fold(window, [(_MAY + 900, 1)], _MAY).deltas
    refused = fold(window, [(_MAY + 901, 1)], _MAY)
    assert (refused.deltas, len(refused.unfoldable)) == ([], 1)
    assert "future" in refused.unfoldable[0].reason


def test_a_late_event_is_quarantined_where_the_window_says_so() -> None:
    window = replace(_MONTH, late="quarantine")
    refused = fold(window, [(_MAY, 1)], _MAY + 3600 + 31 * _DAY)

    assert refused.deltas == []
    assert "too late" in refused.unfoldable[0].reason


def test_whether_an_event_is_late_depends_on_its_record_alone() -> None:
    record = job(1, _MAY + 3600 + 31 * _DAY, at={"N": str(_MAY)})
    plan = Plan((_MONTH,))

    assert [fold_changes(plan, changes_of([record])).late for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("precision", [precision for precision, _ in _FINEST])
def test_no_read_misses_an_event_that_was_late(precision: timedelta) -> None:
    # Of every moment of two months: either it counts, or no window that is allowed can hold it.
    window = replace(_MONTH, precision=precision)
    now = _MAY + 61 * _DAY + 5_000
    for at in range(_MAY, now, 50_021):
        buckets = Buckets(now)
        folded = fold(window, [(at, 1)], now)
        buckets.write(folded)
        oldest = datetime.fromtimestamp(at, UTC)
        if folded.late:
            with pytest.raises(InvalidArgumentError, match="retains no more"):
                buckets.counters.between(window, _C, oldest, datetime.fromtimestamp(now, UTC))
        elif at >= now - 31 * _DAY:
            assert buckets.counters.between(window, _C, oldest, datetime.fromtimestamp(now, UTC)).count == 1


def test_what_ttl_deletes_is_never_needed() -> None:
    buckets = Buckets()
    moments = [(_MAY + hour * 3600, 1) for hour in range(60 * 24)]
    buckets.write(fold(_MONTH, moments, _MAY))
    for now in range(_MAY + 31 * _DAY, _MAY + 60 * _DAY, 7_777):
        buckets.now = now
        before = buckets.counters.window(_MONTH, _C, last=timedelta(days=31))
        buckets.expire()
        assert buckets.counters.window(_MONTH, _C, last=timedelta(days=31)) == before
        assert before.count > 700


def test_a_bucket_that_is_expired_but_present_never_counts() -> None:
    buckets = Buckets(_MAY + 60 * _DAY)
    buckets.write(fold(_MONTH, [(_MAY, 1)], _MAY))

    with pytest.raises(InvalidArgumentError, match=r"start=.*2026-05-30T00:00:00.*retains no more"):
        buckets.counters.between(_MONTH, _C, *_days(0, 1))
    assert buckets.counters.window(_MONTH, _C, last=timedelta(days=31)).count == 0


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
        assert buckets.counters.window(_MONTH, _C, last=last).count == 0


def test_a_shorter_retention_refuses_at_once_what_it_no_longer_keeps() -> None:
    buckets = Buckets(_MAY + 20 * _DAY)
    buckets.write(fold(_MONTH, [(_MAY + day * _DAY, 1) for day in range(20)], _MAY))
    shorter = replace(_MONTH, retention=timedelta(days=10), longest=timedelta(days=10), tiers=("hour", "day"))

    assert buckets.counters.window(shorter, _C, last=timedelta(days=10)).count == 9
    with pytest.raises(InvalidArgumentError, match="retains no more"):
        buckets.counters.window(shorter, _C, last=timedelta(days=11))


def test_a_longer_retention_holds_for_windows_that_begin_after_the_change() -> None:
    shorter = replace(_MONTH, retention=timedelta(days=10), longest=timedelta(days=10), tiers=("hour", "day"))
    buckets = Buckets()
    changed = _MAY + 20 * _DAY
    buckets.write(fold(shorter, [(_MAY + day * _DAY, 1) for day in range(20)], _MAY))
    buckets.now = changed
    buckets.expire()
    buckets.write(fold(_MONTH, [(changed + day * _DAY, 1) for day in range(1, 25)], changed))
    buckets.now = changed + 25 * _DAY
    buckets.expire()

    assert buckets.counters.window(_MONTH, _C, last=timedelta(days=25)).count == 24
    # What was deleted by the shorter retention does not come back, and nothing tells.
    assert buckets.counters.window(_MONTH, _C, last=timedelta(days=30)).count == 24


def test_another_longest_window_keeps_counting_with_the_tiers_it_has() -> None:
    buckets = Buckets(_MAY + 10 * _DAY)
    buckets.write(fold(_JOBS, [(_MAY + hour * 3600, 1) for hour in range(200)]))
    longer = replace(_JOBS, longest=timedelta(days=30), tiers=("hour",))

    assert replace(longer, tiers=None).kept_tiers != longer.kept_tiers == _JOBS.kept_tiers
    assert buckets.counters.window(longer, _C, last=timedelta(days=30)).count == 200


def _days(first: int, last: int) -> Any:
    return tuple(datetime.fromtimestamp(_MAY + day * _DAY, UTC) for day in (first, last))
