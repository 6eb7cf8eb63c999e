"""No write begins that could not end in time."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters.errors import CommitError
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import image, record
from tests.unit.writes.clients import no_fault

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})


def _view(sequence: int, url: str = "a") -> dict[str, Any]:
    return record(sequence, image("view", url=url, id=str(sequence), bytes=10))


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

    assert len(written) == 2
    counted = store.counters.get_many([(_VIEWS, {"url": url}) for url in "abcd"], consistent=True)
    assert sum(group.measures["n"] for group in counted) == 2
    report = aggregator.handle({"Records": batch, "shardId": SHARD})
    assert (report.updated, report.skipped) == (2, 2)
