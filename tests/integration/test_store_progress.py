"""A batch that fails midway is remembered so far: its next delivery sends no request for what was done."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._commit.checkpoint_items import checkpoint_key
from dynamodb_counters._commit.item_deltas import place_of
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.watermarks import shard_digest
from dynamodb_counters.errors import CommitError
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import Record, image, record
from tests.unit.writes.clients import fault, no_fault

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_ITEMS = 160
_DONE = 120
"""Items before the one that fails."""


def _view(sequence: int, url: str) -> Record:
    return record(sequence, image("view", url=url, id=str(sequence)))


_BATCH = [_view(n, f"<{n}>") for n in range(1, _ITEMS + 1)]
_PLACES = {
    delta.group[0]: place_of(delta) for delta in sorted(fold(Plan((_VIEWS,)), changes_of(_BATCH)).deltas, key=place_of)
}
_URLS = list(_PLACES)
"""In the order in which they are written."""


def _fail_at(store: Store, place: int) -> None:
    store.client.before = fault("update_item", "AccessDeniedException", f"URL#{_URLS[place]}")
    with pytest.raises(CommitError, match="1 item"):
        store.deliver(_BATCH, _VIEWS)
    store.client.before = no_fault
    store.client.calls.clear()


def _updates(store: Store) -> list[str]:
    return [
        arguments["Key"]["pk"]["S"].removeprefix("URL#")
        for name, arguments in store.client.calls
        if name == "update_item" and arguments["Key"]["pk"]["S"].startswith("URL#")
    ]


def _counts(store: Store) -> dict[str, Any]:
    groups = store.counters.get_many([(_VIEWS, {"url": url}) for url in _URLS], consistent=True)
    return {group.values["url"]: group.measures["n"] for group in groups}


def _progress(store: Store) -> str:
    item = store.item(*(key["S"] for key in checkpoint_key(shard_digest(SHARD)).values()))
    return str(item.get("progress", {}).get("S", ""))


def test_the_next_delivery_sends_no_request_for_what_was_done(store: Store) -> None:
    _fail_at(store, _DONE)
    assert _progress(store) == f"{_ITEMS:040}:{_PLACES[_URLS[_DONE]]}"

    report = store.deliver(_BATCH, _VIEWS)

    assert sorted(_updates(store)) == sorted(_URLS[_DONE:])
    assert (report.updated, report.skipped) == (1, _ITEMS - 1)
    assert _counts(store) == dict.fromkeys(_URLS, 1)


def test_records_that_a_longer_delivery_adds_are_added_to_what_was_done(store: Store) -> None:
    _fail_at(store, _DONE)
    done, new = _URLS[0], _ITEMS + 1

    store.deliver([*_BATCH, _view(new, done)], _VIEWS)

    assert sorted(_updates(store)) == sorted([done, *_URLS[_DONE:]])
    assert _counts(store) == {**dict.fromkeys(_URLS, 1), done: 2}
