"""What may have been counted is set aside, and what a checkpoint covers is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Event
from dynamodb_counters._commit.batch import set_aside, uncounted
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, QuarantinedDelta
from tests.unit.fold.streams import NOW, image, record

_VIEW = Event("view", pk="URL#{url}", sk="VIEW")
_times = st.integers(0, 6).map(lambda minutes: NOW + 60 * minutes)


@st.composite
def _batches(draw: st.DrawFn) -> list[Change]:
    created = sorted(draw(st.lists(_times, min_size=1, max_size=8)))
    return [Change(record(number, image("view", url="/"), created=at)) for number, at in enumerate(created, 1)]


def test_older_changes_are_set_aside_by_image_with_the_declarations_that_would_count_them() -> None:
    a, b, elsewhere, broken = image("view", url="/a"), image("view", url="/b"), image("other"), image("view")
    by_url = Plan((Aggregate("by_url", _VIEW, by="url"), Aggregate("all", _VIEW)))
    delta = QuarantinedDelta("all", (), (("all", 1),))
    records = [record(1, b, a), record(2, a, a), record(3, elsewhere), record(4, broken), record(5, a), record(6, a)]
    moved, same, uncounted_type, unfoldable, redriven, fresh = map(Change, records)
    redriven.delta, fresh.created = delta, NOW + 60

    kept, doubtful = set_aside(by_url, [moved, same, uncounted_type, unfoldable, redriven, fresh], NOW + 30)

    assert kept == [fresh]
    assert [(one.sequence, one.image_name, one.names) for one in doubtful] == [
        (moved.sequence, "NewImage#DOUBTFUL", ("by_url",)),
        (moved.sequence, "OldImage#DOUBTFUL", ("by_url",)),
        (unfoldable.sequence, "NewImage#DOUBTFUL", ("all",)),
        (unfoldable.sequence, "NewImage", ("by_url",)),
        (redriven.sequence, "NewImage#DOUBTFUL", ()),
    ]
    shown = [{name for name in ("NewImage", "OldImage") if name in one.record["dynamodb"]} for one in doubtful]
    assert shown == [{"NewImage"}, {"OldImage"}, {"NewImage"}, {"NewImage"}, {"NewImage"}]
    assert all("may have been counted" in one.reason for one in doubtful)


@given(_batches(), st.integers(0, 9).map("{:040}".format))
def test_changes_that_a_checkpoint_covers_are_dropped(changes: list[Change], applied_through: str) -> None:
    assert list(uncounted(changes, applied_through)) == [each for each in changes if each.sequence > applied_through]
