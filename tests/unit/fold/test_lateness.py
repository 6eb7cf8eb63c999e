"""Late and early events at every boundary, of windows and of groups with a retention.

Lateness is judged by the age of a bucket when the record was made, never by the clock.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Distinct, Event, Sum
from dynamodb_counters._assumptions import GROUP_KEPT, GUARANTEE, LONGEST_INVOCATION, SKEW, WIDE_MARGIN
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.fold import Folded
from dynamodb_counters._fold.fold import fold as fold_changes
from dynamodb_counters._fold.layouts import Update
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.buckets import JOBS, fold
from tests.unit.fold.streams import Record, image, record

_DAY = 86_400
_MAY = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
_AMOUNTS = replace(JOBS, measure=Sum("amount"))
_MONTH = replace(JOBS, retention=timedelta(days=31), longest=timedelta(days=30))

# precision, its finest bucket: what decides whether an event is late
_FINEST = [
    (timedelta(seconds=1), 60),
    (timedelta(minutes=1), 3600),
    (timedelta(hours=1), _DAY),
    (timedelta(days=1), 31 * _DAY),
]


@pytest.mark.parametrize(("precision", "bucket"), _FINEST)
@pytest.mark.parametrize("into", [0, -1])
@pytest.mark.parametrize(("late", "reasons"), [("drop", []), ("quarantine", ["too late"])])
def test_an_event_counts_in_all_tiers_until_its_finest_bucket_is_over(
    precision: timedelta, bucket: int, into: int, late: Any, reasons: list[str]
) -> None:
    window = replace(_MONTH, precision=precision, late=late)
    at = _MAY + (into % bucket)
    end = _MAY + bucket + 31 * _DAY

    before, after = fold(window, [(at, 1)], end - 0.001), fold(window, [(at, 1)], end)

    assert [delta.group[-2] for delta in before.deltas] == [tier.letter for tier in window._kept_tiers]
    assert {delta.measures["total"] for delta in before.deltas} == {1}
    assert (before.late, before.invalid, after.deltas, after.late) == (0, [], [], 1 - len(reasons))
    assert [re.findall("too late", image.reason) for image in after.invalid] == [reasons] * len(reasons)


@pytest.mark.parametrize("precision", [precision for precision, _ in _FINEST])
@pytest.mark.parametrize("tolerance", [timedelta(0), timedelta(minutes=15), timedelta(days=1)])
def test_an_event_from_beyond_the_tolerance_counts_in_no_tier(precision: timedelta, tolerance: timedelta) -> None:
    window = replace(_MONTH, precision=precision, future_tolerance=tolerance)
    limit = _MAY + int(tolerance.total_seconds())

    assert {delta.measures["total"] for delta in fold(window, [(limit, 1)], _MAY).deltas} == {1}
    refused = fold(window, [(limit + 1, 1)], _MAY)
    assert (refused.deltas, len(refused.invalid)) == ([], 1)
    assert "future" in refused.invalid[0].reason


def test_a_sum_of_zero_makes_no_bucket() -> None:
    assert fold(_AMOUNTS, [(0, 0)]).deltas == []


VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}

_tiers = st.sampled_from([*LENGTHS, "month"])
_moments = st.integers(START, START + 800 * _DAY)
_retentions = st.integers(1, 900 * _DAY).map(lambda seconds: timedelta(seconds=seconds))


def _visitors(tier: str, retention: timedelta | None) -> Distinct:
    return Distinct("visitors", VIEW, pk="SITE", sk=f"BY#{{at:{tier}}}", member="client", retention=retention)


def _end(tier: str, at: int) -> int:
    """Return the first second after a bucket, spelled out."""
    moment = datetime.fromtimestamp(at, UTC)
    if tier == "month":
        days = calendar.monthrange(moment.year, moment.month)[1]
        return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()) + days * _DAY
    length = int(LENGTHS[tier].total_seconds())
    return at // length * length + length


def _counted(visitors: Distinct, *records: Record) -> Folded:
    return fold_changes(Plan(visitors._parts), changes_of(records))


def _visit(at: int, created: float | None) -> Record:
    return record(1, image("view", at=at, client="ann"), created=created)


@given(_tiers, _moments, _retentions, st.integers(-400 * _DAY, 3 * _DAY) | st.integers(-2, 2))
def test_an_event_counts_until_its_buckets_end_and_the_retention(
    tier: str, at: int, retention: timedelta, after: int
) -> None:
    closes = _end(tier, at) + int(retention.total_seconds())
    folded = _counted(_visitors(tier, retention), _visit(at, closes + after))

    assert ([delta.measures for delta in folded.deltas], folded.late) == (([{"items": 1}], 0) if after < 0 else ([], 1))


@given(_tiers, _moments, _retentions)
def test_a_members_item_outlives_all_that_can_count_in_it(tier: str, at: int, retention: timedelta) -> None:
    closes = _end(tier, at) + int(retention.total_seconds())
    [delta] = _counted(_visitors(tier, retention), _visit(at, closes - 1)).deltas
    layout, request = delta.layout, Update(delta.layout, delta.group, delta.measures, "").request("table")
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    [ttl] = [values[value]["N"] for name, value in zip(names.values(), values, strict=False) if name == "ttl"]

    assert int(ttl) == layout.expires_at(delta.group) == closes + GROUP_KEPT
    # The last record in time, folded as late as any, by the slowest invocation, whose clock is wrong.
    landed = closes + GUARANTEE + LONGEST_INVOCATION + 2 * SKEW
    assert landed < int(ttl) - WIDE_MARGIN
    assert not layout.is_gone(delta.group, landed)
    assert layout.is_gone(delta.group, int(ttl) - WIDE_MARGIN)


_values = st.none() | st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 3))
_history = st.lists(st.tuples(st.integers(0, 3), _values, st.integers(0, 5 * _DAY)), max_size=30)


@given(_history)
def test_a_member_has_what_came_in_time(history: list[tuple[int, tuple[str, int] | None, int]]) -> None:
    """Insertions, corrections and deletions, each judged by its own record."""
    retention = timedelta(days=1)
    images: dict[int, Any] = {}
    records, expected = [], dict[tuple[str, str], int]()
    for number, (key, values, created) in enumerate(history):
        new = None if values is None else image("view", client=values[0], at=START + values[1] * _DAY)
        old = images.pop(key, None)
        if new is not None:
            images[key] = new
        if new == old:
            continue
        records.append(record(number + 1, new, old, created=START + created))
        for item, sign in ((new, 1), (old, -1)):
            if item is not None and START + created < _end("day", int(item["at"]["N"])) + _DAY:
                group = datetime.fromtimestamp(int(item["at"]["N"]), UTC).date().isoformat(), item["client"]["S"]
                expected[group] = expected.get(group, 0) + sign
    folded = _counted(_visitors("day", retention), *records)

    counted = {delta.group: delta.measures["items"] for delta in folded.deltas}
    assert {group: n for group, n in counted.items() if n} == {group: n for group, n in expected.items() if n}


@pytest.mark.parametrize(
    "declared",
    [
        replace(JOBS, retention=timedelta(hours=25)),
        replace(JOBS, future_tolerance=timedelta(0)),
        _visitors("day", timedelta(days=31)),
    ],
)
def test_a_record_without_a_time_cannot_be_judged(declared: Any) -> None:
    [kind] = {part.source.name for part in flatten([declared])[:1]}
    entry = record(1, image(kind, customer="c", at=START, client="ann"), created=None)
    [refused] = fold_changes(Plan(flatten([declared])), changes_of([entry])).invalid

    assert "ApproximateCreationDateTime" in refused.reason
