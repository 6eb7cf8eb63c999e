"""A batch is classified as its changes are one by one, in order, and each change is in exactly one class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._commit.batch import Classified, classify, set_aside, uncounted
from dynamodb_counters._control.control import Era, History
from dynamodb_counters._control.run_items import Cuts
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, QuarantinedDelta
from tests.unit.fold.streams import NOW, image, record

_VIEW = Event("view", pk="URL#{url}", sk="VIEW")
_PLANS = {
    name: Plan((Aggregate(name, _VIEW, pk=name, sk="STATISTICS", measures={"n": Count()}),)) for name in ("a", "b")
}
_UNKNOWN = "?"

_times = st.integers(0, 6).map(lambda minutes: NOW + 60 * minutes)
_eras = st.lists(st.tuples(_times, st.sampled_from([*_PLANS, _UNKNOWN]), st.sampled_from(["", "1r1"])), max_size=3)
_numbers = st.integers(1, 9).map("{:040}".format)


@st.composite
def _batches(draw: st.DrawFn) -> list[Change]:
    created = sorted(draw(st.lists(_times, min_size=1, max_size=8)))
    return [Change(record(number, image("view", url="/"), created=at)) for number, at in enumerate(created, 1)]


def _classes(changes: list[Change], history: History, cuts: Cuts, doubtful_before: float) -> list[Classified]:
    return classify(
        changes, history, _PLANS.get, lambda: _PLANS["a"], now=NOW, cuts=cuts, doubtful_before=doubtful_before
    )


@given(_batches(), _eras, st.dictionaries(st.just("1r1"), _numbers), st.dictionaries(st.just("1r2"), _numbers), _times)
def test_a_batch_is_classified_as_its_changes_are(
    changes: list[Change], eras: list[Any], opened: Mapping[str, str], runs: Mapping[str, str], doubtful_before: float
) -> None:
    history = History((Era(0, "a"), *(Era(int(at), name, run) for at, name, run in sorted(eras, key=lambda e: e[0]))))
    cuts = Cuts(opened, runs)
    together = _classes(changes, history, cuts, doubtful_before)
    assert [change for each in together for change in each.changes] == changes
    for change in changes:
        [alone] = _classes([change], history, cuts, doubtful_before)
        [found] = [each for each in together if change in each.changes]
        assert found.plan is alone.plan
        assert (change in found.fresh) is bool(alone.fresh)
        era = history.at(change.created or 0.0, change.sequence, opened)
        assert found.plan is _PLANS.get(era.deployment, _PLANS["a"])
        is_certain = era.deployment != _UNKNOWN and (change.created or 0.0) >= doubtful_before
        assert (change in found.fresh) is is_certain
        assert [one.sequence for one in found.doubtful].count(change.sequence) == (not is_certain)
    for cut in runs.values():
        # Before the log of what comes after a cut, what comes before it is counted.
        assert all(len({change.sequence >= cut for change in each.changes}) == 1 for each in together)


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
