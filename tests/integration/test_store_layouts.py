"""Where packed events live is what the table says: a change needs a date, and every process follows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters.errors import LayoutError
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW

_BUCKET = timedelta(minutes=10)
_OLD = Packed("at", bucket=_BUCKET)
_SINCE = datetime.fromtimestamp(NOW // 600 * 600 + 7200, UTC)
_NEW = Packed("at", bucket=timedelta(minutes=5), parts=3, since=_SINCE, before=_OLD)


def _event(packed: Packed | None, **changes: Any) -> Event:
    return Event("view", **{"pk": "URL#{url}", "sk": "T#{at}#N#{n}", **changes}, packed=packed)


def _views(seconds: float) -> list[dict[str, Any]]:
    """Views on both sides of the date of the new layout."""
    return [{"url": "/", "at": int(_SINCE.timestamp() + seconds + n), "n": n} for n in range(-4, 4)]


def _process(store: Store) -> Counters:
    return Counters(store.name, client=store.client, clock=store.clock)  # type: ignore[arg-type]


def _statuses(counters: Counters, event: Event, views: list[dict[str, Any]]) -> list[str]:
    return [outcome.status for outcome in counters.accept_many(event, views)]


@pytest.mark.parametrize(
    "changed",
    [
        _event(replace(_OLD, parts=2)),
        _event(replace(_OLD, partition_by="url", parts=1)),
        _event(replace(_OLD, bucket=timedelta(minutes=5))),
        _event(_OLD, sk="AT#{at}#N#{n}"),
        _event(replace(_NEW, before=None)),
        _event(replace(_NEW, before=replace(_OLD, parts=2))),
    ],
    ids=["parts", "partition_by", "bucket", "key", "unknown before", "other before"],
)
def test_a_change_without_a_date_is_refused(store: Store, changed: Event) -> None:
    assert _statuses(store.counters, _event(_OLD), _views(-9000)) == ["accepted"] * 8

    with pytest.raises(LayoutError, match=r"invalid packed=.*a date `since`"):
        _process(store).accept_many(changed, _views(-9000))


def test_a_date_must_lie_ahead_of_what_an_older_process_may_accept(store: Store) -> None:
    store.counters.accept_many(_event(_OLD), _views(-9000))
    store.clock.now = _SINCE.timestamp() - 3600 - 900 + 1

    with pytest.raises(LayoutError):
        _process(store).accept_many(_event(_NEW), _views(-9000))


@pytest.mark.parametrize("tolerance", [None, timedelta(hours=3)])
def test_the_date_lies_ahead_of_what_the_most_tolerant_process_accepts(
    store: Store, tolerance: timedelta | None
) -> None:
    store.counters.accept_many(_event(_OLD), _views(-9000))
    tolerant = _process(store)
    tolerant.accept_many(_event(replace(_OLD, future_tolerance=tolerance)), _views(0))

    with pytest.raises(LayoutError):
        _process(store).accept_many(_event(_NEW), _views(-9000))
    if tolerance is not None:
        later = replace(_NEW, since=_SINCE + timedelta(hours=3), future_tolerance=tolerance)
        assert _statuses(_process(store), _event(later), _views(0)) == ["duplicate"] * 8


def test_chunk_size_and_tolerance_may_change_at_any_time(store: Store) -> None:
    store.counters.accept_many(_event(_OLD), _views(-9000))

    changed = _event(replace(_OLD, chunk_bytes=1024, future_tolerance=None))

    assert _statuses(_process(store), changed, _views(-9000)) == ["duplicate"] * 8


def test_readers_write_no_layout(store: Store) -> None:
    assert list(store.counters.events(_event(_OLD))) == []

    assert store.items() == []
