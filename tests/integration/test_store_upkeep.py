"""Upkeep of aggregate items: resets keep watermarks, hot groups are sharded, time limits hold."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, RejectedEventError, Sum
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters.errors import CommitError
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import image, record
from tests.unit.writes.clients import no_fault

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_SPREAD = Aggregate("site", _VIEW, pk="SITE", sk="STATISTICS", measures=_VIEWS.measures, write_shards=5)
_VALUES = {"url": "a"}


def _view(sequence: int, url: str = "a") -> dict[str, Any]:
    return record(sequence, image("view", url=url, id=str(sequence), bytes=10))


def _shard(number: int) -> str:
    return f"shardId-{number:020}-aaaaaaaa"


def test_a_spread_group_is_fed_by_shard_and_read_as_one(store: Store) -> None:
    batches = {_shard(number): [_view(number), _view(number + 100)] for number in range(20)}
    for _ in range(2):
        for shard, batch in batches.items():
            store.deliver(batch, _SPREAD, shard=shard)

    assert len({item["pk"]["S"] for item in store.items()}) == 5
    assert store.counters.get(_SPREAD, {}, consistent=True).measures == {"n": 40, "bytes": 400}
    assert store.counters.get_many([(_SPREAD, {})], consistent=True)[0].measures == {"n": 40, "bytes": 400}

    assert store.counters.reset(_SPREAD, {}) == {"n": 40, "bytes": 400}
    assert store.counters.get(_SPREAD, {}, consistent=True).measures == {"n": 0, "bytes": 0}


def test_an_event_of_a_newer_version_replaces_the_one_before(store: Store) -> None:
    versioned = Event("price", pk="P#{id}", sk="P", version="at")

    def accept(at: int, price: int) -> str:
        return store.counters.accept(versioned, {"id": "x", "at": at, "price": price}).status

    assert [accept(5, 1), accept(5, 1), accept(5, 2), accept(4, 3)] == [
        "accepted",
        "duplicate",
        "conflict",
        "duplicate",
    ]
    assert accept(6, 4) == "accepted"
    outcomes = store.counters.accept_many(versioned, [{"id": "x", "at": at, "price": 0} for at in (7, 6, 9, 8)])
    assert [outcome.status for outcome in outcomes] == ["accepted", "duplicate", "accepted", "duplicate"]
    with pytest.raises(
        RejectedEventError, match=r"^invalid at=None: expected a string or number: the event's version$"
    ):
        store.counters.accept(versioned, {"id": "x"})
    assert store.item("P#x", "P")["at"] == {"N": "9"}


def test_no_write_begins_when_time_is_nearly_up_and_what_was_written_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [_view(n, url) for n, url in enumerate("abcd", start=1)]
    aggregator = store.aggregator(_VIEWS)
    monkeypatch.setattr("dynamodb_counters._table.CONCURRENCY", 1)
    written: list[str] = []

    def slow(name: str, _: object) -> None:
        if name == "update_item":
            written.append(name)
            store.clock.now += LONGEST_REQUEST / 2

    store.client.after = slow
    with pytest.raises(CommitError, match=r"2 item.*time is nearly up"):
        aggregator.handle({"Records": batch, "shardId": SHARD}, lambda: 1.9 * LONGEST_REQUEST)
    store.client.after = no_fault

    # The third one remembers how far it came.
    assert len(written) == 3
    counted = store.counters.get_many([(_VIEWS, {"url": url}) for url in "abcd"], consistent=True)
    assert sum(group.measures["n"] for group in counted) == 2
    report = aggregator.handle({"Records": batch, "shardId": SHARD})
    assert (report.updated, report.skipped) == (2, 2)
