"""Groups with a retention: what counts in them, until when, and how long their items stay."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Distinct, Event
from dynamodb_counters._assumptions import GROUP_KEPT, GUARANTEE, LONGEST_INVOCATION, SKEW, WIDE_MARGIN
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._timeline.tiers import DAY
from tests.unit.fold.streams import image, record

VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
MARCH = timedelta(days=31)

_tiers = st.sampled_from([*LENGTHS, "month"])
_moments = st.integers(START, START + 800 * DAY)
_retentions = st.timedeltas(timedelta(seconds=1), timedelta(days=900)).map(
    lambda span: timedelta(seconds=int(span.total_seconds()))
)


def _visitors(tier: str, retention: timedelta | None) -> Distinct:
    return Distinct("visitors", VIEW, pk="SITE", sk=f"BY#{{at:{tier}}}", member="client", retention=retention)


def _end(tier: str, at: int) -> int:
    """The first second after a bucket, spelled out."""
    moment = datetime.fromtimestamp(at, UTC)
    if tier == "month":
        days = calendar.monthrange(moment.year, moment.month)[1]
        return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()) + days * DAY
    length = int(LENGTHS[tier].total_seconds())
    return at // length * length + length


@given(_tiers, _moments, _retentions, st.integers(-400 * DAY, 3 * DAY) | st.integers(-2, 2))
def test_an_event_counts_until_its_buckets_end_and_the_retention(
    tier: str, at: int, retention: timedelta, after: int
) -> None:
    closes = _end(tier, at) + int(retention.total_seconds())
    plan = Plan(_visitors(tier, retention)._parts)
    folded = fold(plan, changes_of([record(1, image("view", at=at, client="ann"), created=closes + after)]))

    assert ([delta.measures for delta in folded.deltas], folded.late) == (([{"items": 1}], 0) if after < 0 else ([], 1))


@given(_tiers, _moments, _retentions)
def test_a_members_item_outlives_all_that_can_count_in_it(tier: str, at: int, retention: timedelta) -> None:
    closes = _end(tier, at) + int(retention.total_seconds())
    [delta] = fold(
        Plan(_visitors(tier, retention)._parts),
        changes_of([record(1, image("view", at=at, client="ann"), created=closes - 1)]),
    ).deltas
    layout, request = delta.layout, Update(delta.layout, delta.group, delta.measures, "").request("table")
    [ttl] = [
        request["ExpressionAttributeValues"][value]["N"]
        for name, value in zip(
            request["ExpressionAttributeNames"].values(), request["ExpressionAttributeValues"], strict=False
        )
        if name == "ttl"
    ]

    assert int(ttl) == layout.expires_at(delta.group) == closes + GROUP_KEPT
    # The last record in time, folded as late as any, by the slowest invocation, whose clock is wrong.
    landed = closes + GUARANTEE + LONGEST_INVOCATION + 2 * SKEW
    assert landed < int(ttl) - WIDE_MARGIN
    assert not layout.is_gone(delta.group, landed)
    assert layout.is_gone(delta.group, int(ttl) - WIDE_MARGIN)


_history = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.none() | st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 3)),
        st.integers(0, 5 * DAY),
    ),
    max_size=30,
)


@given(_history)
def test_a_member_has_what_came_in_time(history: list[tuple[int, tuple[str, int] | None, int]]) -> None:
    """Insertions, corrections and deletions, each judged by its own record."""
    retention = timedelta(days=1)
    images: dict[int, Any] = {}
    records, expected = [], dict[tuple[str, str], int]()
    for number, (key, values, created) in enumerate(history):
        new = None if values is None else image("view", client=values[0], at=START + values[1] * DAY)
        old = images.pop(key, None)
        if new is not None:
            images[key] = new
        if new == old:
            continue
        records.append(record(number + 1, new, old, created=START + created))
        for found, sign in ((new, 1), (old, -1)):
            if found is not None and START + created < _end("day", int(found["at"]["N"])) + DAY:
                group = datetime.fromtimestamp(int(found["at"]["N"]), UTC).date().isoformat(), found["client"]["S"]
                expected[group] = expected.get(group, 0) + sign
    folded = fold(Plan(_visitors("day", retention)._parts), changes_of(records))

    counted = {delta.group: delta.measures["items"] for delta in folded.deltas}
    assert {group: n for group, n in counted.items() if n} == {group: n for group, n in expected.items() if n}


def test_a_record_without_a_time_cannot_be_judged() -> None:
    plan = Plan(_visitors("day", MARCH)._parts)
    [unfoldable] = fold(plan, changes_of([record(1, image("view", at=START, client="ann"), created=None)])).unfoldable

    assert "ApproximateCreationDateTime" in unfoldable.reason
