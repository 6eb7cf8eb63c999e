"""Every record is applied to every item exactly once, however its batch is repeated, cut, raced or disturbed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._commit.batch import Report
from dynamodb_counters.errors import CommitError
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import Record, image, record
from tests.unit.writes.clients import fault, no_fault

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "sum": Sum("number")})
_FIRST = 10**21 - 3
"""Sequence numbers gain a digit from the fourth record on."""


def _records(urls: str, first: int = _FIRST) -> list[Record]:
    """Build one insert per letter: the letter is the url, its index the number."""
    return [record(first + n, image("view", url=url, id=str(n), number=10**n)) for n, url in enumerate(urls)]


def _deliver(store: Store, records: list[Record], shard: str = SHARD) -> Report:
    return store.deliver(records, _VIEWS, shard=shard)


def _sums(store: Store, urls: str = "ab") -> dict[str, Any]:
    groups = store.counters.get_many([(_VIEWS, {"url": url}) for url in urls], consistent=True)
    return {group.values["url"]: group.measures["sum"] for group in groups}


def test_a_batch_is_counted_once_and_skipped_when_it_comes_again(store: Store) -> None:
    first, again = (_deliver(store, _records("abaa")) for _ in range(2))

    assert (first.records, first.updated, first.skipped, first.quarantined, first.late) == (4, 2, 0, 0, 0)
    assert (again.updated, again.skipped) == (0, 2)
    assert _sums(store) == {"a": 1101, "b": 10}


@pytest.mark.parametrize("digits", [21, 22, 39])
def test_sequence_numbers_are_compared_as_numbers(store: Store, digits: int) -> None:
    nine = record("9" * digits, image("view", url="a", number=1))
    ten = record(10**digits, image("view", url="a", number=2))
    _deliver(store, [nine])
    _deliver(store, [ten])
    assert _sums(store, "a") == {"a": 3}

    assert _deliver(store, [nine]).updated == 0
    assert _deliver(store, [nine, ten]).updated == 0
    assert _sums(store, "a") == {"a": 3}


def test_a_throttled_item_fails_the_batch_but_not_the_others(store: Store) -> None:
    records, other_is_written = _records("abab"), threading.Event()
    throttled = fault("update_item", "ProvisionedThroughputExceededException", "URL#b")

    def busy(name: str, arguments: Mapping[str, Any]) -> None:
        # Waiting for its item takes the invocation's time at once, and that of the other one.
        if name == "update_item" and arguments["Key"]["pk"]["S"] == "URL#b":
            other_is_written.wait(10)
        throttled(name, arguments)

    def written(name: str, arguments: Mapping[str, Any]) -> None:
        if name == "update_item" and arguments["Key"]["pk"]["S"] == "URL#a":
            other_is_written.set()

    store.client.before, store.client.after = busy, written
    with pytest.raises(CommitError, match=r"1 item.*ProvisionedThroughput"):
        _deliver(store, records)
    assert _sums(store) == {"a": 101, "b": 0}

    store.client.before = store.client.after = no_fault
    report = _deliver(store, records)

    assert (report.updated, report.skipped) == (1, 1)
    assert _sums(store) == {"a": 101, "b": 1010}
