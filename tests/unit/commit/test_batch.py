"""What a checkpoint covers is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Event
from dynamodb_counters._commit.batch import uncounted
from dynamodb_counters._fold.records import Change
from tests.unit.fold.streams import NOW, image, record

_VIEW = Event("view", pk="URL#{url}", sk="VIEW")
_times = st.integers(0, 6).map(lambda minutes: NOW + 60 * minutes)


@st.composite
def _batches(draw: st.DrawFn) -> list[Change]:
    created = sorted(draw(st.lists(_times, min_size=1, max_size=8)))
    return [Change(record(number, image("view", url="/"), created=at)) for number, at in enumerate(created, 1)]


@given(_batches(), st.integers(0, 9).map("{:040}".format))
def test_changes_that_a_checkpoint_covers_are_dropped(changes: list[Change], applied_through: str) -> None:
    assert list(uncounted(changes, applied_through)) == [each for each in changes if each.sequence > applied_through]
