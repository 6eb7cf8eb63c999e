"""Which records count: by type, change and cause, and how the two images of a change work against each other."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum, Window
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import MAX_TTL_AGE, Change, changes_of, single_image
from tests.unit.fold.streams import NOW, Image, Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_LIVE = Aggregate("live", _VIEW, pk="LIVE", sk="LIVE", measures={"n": Count()}, on_expiry="subtract")
_BIG = Aggregate("big", _VIEW, pk="BIG", sk="BIG", measures={"n": Count()}, where=Attr("bytes").ge(100))
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")


def _view(url: str = "/", size: int = 1, at: int = NOW) -> Image:
    return image("view", url=url, bytes=size, at=at)


def _measures(records: list[Record], *declarations: Any) -> dict[Any, Any]:
    folded = fold(Plan(declarations or (_VIEWS, _LIVE, _BIG)), changes_of(records))
    assert not folded.unfoldable
    return {delta.ref: delta.measures for delta in folded.deltas}


@pytest.mark.parametrize("new", [{"note": {"S": "seen"}}, {"bytes": {"N": "1.0"}}])
def test_a_change_that_concerns_no_measure_causes_no_write(new: Image) -> None:
    assert _measures([record(1, _view() | new, _view())], _VIEWS, _LIVE, _BIG, _RECENT) == {}


def test_a_change_back_within_a_batch_still_moves_the_watermark() -> None:
    # An earlier delivery may have applied the first record only, so "nothing to add" must be written.
    folded = fold(Plan((_LIVE,)), changes_of([record(1, _view()), record(2, None, _view())]))

    [delta] = folded.deltas
    assert delta.measures == {"n": 0}
    assert (int(delta.first), int(delta.last)) == (1, 2)


@pytest.mark.parametrize(
    ("ttl", "created", "counts"),
    [
        ({"N": str(NOW)}, NOW, True),
        ({"N": f"{NOW}.0"}, NOW + 47 * 3600, True),
        ({"N": str(NOW + 1)}, NOW, False),
        ({"N": str(NOW - MAX_TTL_AGE)}, NOW, False),
        ({"N": str(NOW - MAX_TTL_AGE + 1)}, NOW, True),
        ({"N": "60"}, NOW, False),
        ({"S": str(NOW)}, NOW, False),
        ({"N": str(NOW)}, None, False),
        (None, NOW, False),
    ],
)
def test_another_regions_ttl_names_no_service_so_the_ttl_decides(ttl: Any, created: Any, counts: bool) -> None:
    old = _view() if ttl is None else {**_view(), "ttl": ttl}
    left = {} if counts else {("views", ("/",)): {"n": -1, "bytes": -1}}

    assert _measures([record(1, None, old, created=created)], _VIEWS) == left
    assert _measures([record(1, None, old, created=created)], _LIVE) == {("live", ()): {"n": -1}}


def test_a_correction_after_the_ttl_is_no_expiry() -> None:
    old, new = {**_view(size=1), "ttl": {"N": str(NOW)}}, _view(size=3)

    correction = record(1, new, old)

    assert _measures([correction], _VIEWS) == {("views", ("/",)): {"n": 0, "bytes": 2}}
    # As quarantine keeps it.
    assert _measures([dict(single_image(correction, "OldImage"))], _VIEWS) == {
        ("views", ("/",)): {"n": -1, "bytes": -1}
    }


def test_a_redriven_deletion_is_judged_by_when_it_was_made() -> None:
    deletion = record(1, None, {**_view(), "ttl": {"N": str(NOW + 60)}})
    redriven = record(9, _view(), created=NOW + 86_400)

    [delta] = fold(Plan((_VIEWS,)), [Change(redriven, deletion)]).deltas

    assert delta.measures == {"n": -1, "bytes": -1}


@pytest.mark.parametrize(
    "identity",
    [
        None,
        {},
        {"type": "Service", "principalId": "lambda.amazonaws.com"},
        {"type": "AssumedRole", "principalId": "dynamodb.amazonaws.com"},
    ],
)
def test_only_the_ttl_process_makes_expiries(identity: Any) -> None:
    deletion = {**record(1, None, _view()), "userIdentity": identity}

    assert _measures([deletion], _VIEWS) == {("views", ("/",)): {"n": -1, "bytes": -1}}


def test_the_stream_counts_what_a_transaction_has_inserted_in_all_that_it_has_not_counted_in() -> None:
    once = image("view#once", url="/", bytes=1) | {"_in": {"SS": ["live"]}}

    assert _measures([record(1, once)], _VIEWS, _LIVE) == _measures([record(1, _view())], _VIEWS)
    assert _measures([record(1, None, once)], _VIEWS, _LIVE) == _measures([record(1, None, _view())], _VIEWS, _LIVE)


def test_a_sum_of_zero_alone_causes_no_write() -> None:
    size = Aggregate("size", _VIEW, pk="SIZE", sk="SIZE", measures={"bytes": Sum("bytes")})

    assert _measures([record(1, _view(size=0))], size) == {}
