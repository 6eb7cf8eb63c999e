"""Batches, however they are cut: one delta per item, between its first and its last record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum, Window
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.streams import NOW, Image, Shard, image

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_PLAN = Plan(
    (
        Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()}),
        Aggregate("live", _VIEW, pk="LIVE", sk="LIVE", measures={"n": Count()}, on_expiry="subtract"),
        Window("hourly", _VIEW, pk="URL#{url}", time="at", future_tolerance=None),
        Window("bytes", _VIEW, pk="SITE", time="at", measure=Sum("bytes"), where=Attr("bytes").gt(-1)),
    )
)


@st.composite
def _view_images(draw: st.DrawFn) -> Image:
    made = image("view", url=draw(st.sampled_from("ab")), at=NOW - draw(st.sampled_from([0, 59, 60, 3600])))
    return made | draw(st.sampled_from([{}, {"bytes": {"N": "0"}}, {"bytes": {"N": "1.50"}}]))


_IMAGES = st.one_of(_view_images(), st.just(image("undeclared")), st.just({"pk": {"S": "x"}}))
_ACTIONS = st.tuples(st.sampled_from(["put", "put", "delete", "expire"]), st.sampled_from("abc"), _IMAGES)


@st.composite
def histories(draw: st.DrawFn) -> Shard:
    """Draw a history of a few items."""
    shard = Shard()
    for action, key, new in draw(st.lists(_ACTIONS, max_size=14)):
        shard.write(key, new if action == "put" else None, expired=action == "expire")
    return shard


@given(histories())
def test_a_batch_gives_one_delta_an_item_with_its_first_and_last_record(shard: Shard) -> None:
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    alone = [{delta.ref for delta in fold(_PLAN, changes_of([entry])).deltas} for entry in shard.records]
    deltas = fold(_PLAN, changes_of(shard.records)).deltas

    assert len({delta.ref for delta in deltas}) == len(deltas)
    assert {delta.ref for delta in deltas} == set().union(*alone)
    for delta in deltas:
        touching = [sequence for sequence, origins in zip(sequences, alone, strict=True) if delta.ref in origins]
        assert (delta.first, delta.last) == (touching[0], touching[-1])


@given(histories(), st.data())
def test_folding_above_applied_through_is_folding_the_later_records(shard: Shard, data: st.DataObject) -> None:
    origins = sorted({delta.ref for delta in fold(_PLAN, changes_of(shard.records)).deltas}, key=repr)
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    places = st.integers(-1, len(sequences) - 1)
    chosen = {origin: data.draw(places) for origin in origins if data.draw(st.booleans())}
    applied_through = {origin: sequences[place] if place >= 0 else "0" * 40 for origin, place in chosen.items()}

    above = {delta.ref: delta for delta in fold(_PLAN, changes_of(shard.records), applied_through).deltas}

    assert set(above) <= set(chosen)
    for origin, place in chosen.items():
        later = {delta.ref: delta for delta in fold(_PLAN, changes_of(shard.records[place + 1 :])).deltas}
        assert (origin in above) is (origin in later)
        if origin in above:
            one, two = above[origin], later[origin]
            assert (one.first, one.last, one.measures) == (two.first, two.last, two.measures)
