"""`increment` and `record_once`: what they write is current when they return."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, InvalidArgumentError, RejectedEventError, Sum, Window
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}", retention=timedelta(days=7))
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_SITE = Aggregate("site", _VIEW, pk="SITE", sk="SITE", measures={"n": Count()})
_PAID = Aggregate("paid", _VIEW, pk="PAID", sk="PAID", measures={"n": Count()}, where=Attr("paid").eq(True))
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at", retention=timedelta(hours=25))


def _view(number: int = 1, **values: Any) -> dict[str, Any]:
    return {"url": "/", "id": str(number), "bytes": 7, "at": NOW, **values}


def test_the_first_increment_starts_at_zero_and_the_next_add(store: Store) -> None:
    assert store.counters.increment(_SITE, {}) == {"n": 1}
    assert store.counters.increment(_SITE, {}, amount=41) == {"n": 42}
    assert store.counters.increment(_SITE, {}, amount=-2) == {"n": 40}
    assert store.counters.increment(_SITE, {}, amount=0) == {"n": 40}
    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 40}


def test_several_measures_are_added_at_once_and_all_are_returned(store: Store) -> None:
    first = store.counters.increment(_VIEWS, {"url": "#"}, amount={"bytes": Decimal("0.1")})
    second = store.counters.increment(_VIEWS, {"url": "#"}, amount={"bytes": Decimal("0.2"), "n": 2})

    assert (first, second) == ({"n": 0, "bytes": Decimal("0.1")}, {"n": 2, "bytes": Decimal("0.3")})
    assert store.counters.get(_VIEWS, {"url": "/"}).measures == {"n": 0, "bytes": 0}


def test_an_event_recorded_once_is_counted_when_the_call_returns(store: Store) -> None:
    outcome = store.counters.record_once(_VIEW, _view(bytes=Decimal("1.5")), [_VIEWS, _SITE, _PAID, _RECENT])

    assert outcome.status == "accepted"
    assert store.counters.get(_VIEWS, {"url": "/"}, consistent=True).measures == {"n": 1, "bytes": Decimal("1.5")}
    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 1}
    assert store.counters.get(_PAID, {}, consistent=True).measures == {"n": 0}
    assert store.counters.window(_RECENT, url="/").last(minutes=2, consistent=True).count == 1


def test_an_accepted_event_cannot_be_recorded_and_the_other_way_round(store: Store) -> None:
    store.counters.accept(_VIEW, _view(1))
    store.counters.record_once(_VIEW, _view(2), [_SITE])

    assert store.counters.record_once(_VIEW, _view(1), [_SITE]).status == "duplicate"
    assert store.counters.accept(_VIEW, _view(2)).status == "duplicate"
    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 1}


def test_the_stream_does_not_count_what_was_recorded_again(store: Store) -> None:
    store.counters.record_once(_VIEW, _view(1), [_VIEWS, _SITE])
    store.counters.accept(_VIEW, _view(2))

    store.deliver(store.inserts(), _VIEWS, _SITE)

    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 2}
    assert store.counters.get(_VIEWS, {"url": "/"}, consistent=True).measures == {"n": 2, "bytes": 14}


def test_a_group_too_long_for_its_item_is_refused(store: Store) -> None:
    longest = "x" * MAX_GROUP_BYTES
    assert store.counters.increment(_VIEWS, {"url": longest}, amount={"n": 1}) == {"n": 1, "bytes": 0}

    with pytest.raises(InvalidArgumentError, match=f"expected at most {MAX_GROUP_BYTES} bytes"):
        store.counters.increment(_VIEWS, {"url": longest + "x"}, amount={"n": 1})
    with pytest.raises(RejectedEventError):
        store.counters.record_once(_VIEW, _view(url=longest + "x"), [_VIEWS])
    assert len(store.items()) == 1
