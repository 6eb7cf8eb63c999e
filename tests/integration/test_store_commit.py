"""Every record is applied to every item exactly once, however its batch is repeated, cut, raced or disturbed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._stream.batch import Report
from dynamodb_counters.errors import CommitError
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import NOW, Record, image, record
from tests.unit.writes.clients import failure, fault, no_fault

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


@pytest.mark.parametrize(
    ("urls", "slices", "updated"),
    [
        ("aabaab", [(0, 3), (1, 6)], [2, 2]),
        ("aabaab", [(0, 6), *((0, end) for end in range(1, 7))], [2, 0, 0, 0, 0, 0, 0]),
        ("abab", [(0, 2), (0, 1), (1, 2), (2, 4), (2, 3), (3, 4)], [2, 0, 0, 2, 0, 0]),
    ],
    ids=["overlapping", "shorter than before", "halved"],
)
def test_of_a_batch_only_what_is_new_is_added(
    store: Store, urls: str, slices: list[tuple[int, int]], updated: list[int]
) -> None:
    records = _records(urls)

    assert [_deliver(store, records[start:end]).updated for start, end in slices] == updated
    assert _sums(store) == {url: sum(10**n for n, each in enumerate(urls) if each == url) for url in "ab"}


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


def test_shards_are_counted_apart_even_with_equal_numbers(store: Store) -> None:
    for shard in (SHARD, OTHER_SHARD, SHARD, OTHER_SHARD):
        _deliver(store, _records("ab"), shard)

    assert _sums(store) == {"a": 2, "b": 20}


def test_a_change_and_its_reversal_move_the_watermark_over_them(store: Store) -> None:
    there, back = _records("a")[0], record(_FIRST + 1, None, image("view", url="a", number=1))
    _deliver(store, [there])
    _deliver(store, [there, back])
    assert _sums(store, "a") == {"a": 0}

    assert _deliver(store, [there, back]).updated == 0
    assert _deliver(store, [there]).updated == 0
    assert _sums(store, "a") == {"a": 0}


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
    with pytest.raises(CommitError, match=r"1 item.*ProvisionedThroughput") as failed:
        _deliver(store, records)
    assert len(failed.value.failures) == 1
    assert _sums(store) == {"a": 101, "b": 0}

    store.client.before = store.client.after = no_fault
    report = _deliver(store, records)

    assert (report.updated, report.skipped) == (1, 1)
    assert _sums(store) == {"a": 101, "b": 1010}


def test_a_throttled_item_is_waited_for(store: Store) -> None:
    refusals = iter(range(5))

    def busy(name: str, arguments: Mapping[str, Any]) -> None:
        if name == "update_item" and arguments["Key"]["pk"]["S"] == "URL#b" and next(refusals, None) is not None:
            raise failure("ThrottlingException", name)

    store.client.before = busy

    assert _deliver(store, _records("abab")).updated == 2
    assert (next(refusals, None), _sums(store)) == (None, {"a": 101, "b": 1010})
    assert store.clock.now > NOW


def test_an_update_whose_answer_is_lost_is_sent_again_and_counts_once(store: Store) -> None:
    store.client.after = fault("update_item", "InternalServerError", "URL#")

    report = _deliver(store, _records("abab"))

    assert (report.updated, report.skipped) == (0, 2)
    assert _sums(store) == {"a": 101, "b": 1010}


def test_an_invocation_that_was_given_up_does_no_harm_when_it_goes_on(store: Store) -> None:
    records = _records("abababab")
    once = threading.Lock()

    def overtake(name: str, _: Mapping[str, Any]) -> None:
        if name == "update_item" and once.acquire(blocking=False):
            store.client.before = no_fault
            _deliver(store, records[:4])
            _deliver(store, records[4:])

    store.client.before = overtake
    _deliver(store, records[:2])

    assert once.locked()
    assert _sums(store) == {"a": 1010101, "b": 10101010}


def test_a_record_of_quarantine_is_kept_once_and_the_rest_is_counted(store: Store) -> None:
    bad = record(_FIRST + 10, image("view", url="a"))
    records = [*_records("ab"), bad, *_records("a", _FIRST + 20)]

    assert _deliver(store, records).quarantined == 1
    before = [item for item in store.items() if item["_type"]["S"] == "quarantine"]
    store.clock.now += 60
    assert _deliver(store, records).quarantined == 0
    assert _deliver(store, records[2:3]).quarantined == 0

    assert [item for item in store.items() if item["_type"]["S"] == "quarantine"] == before
    [held] = store.counters.quarantined()
    assert (held.shard, int(held.sequence)) == (SHARD, _FIRST + 10)
    assert "number" in held.reason
    assert held.content["dynamodb"]["NewImage"] == bad["dynamodb"]["NewImage"]
    assert _sums(store) == {"a": 2, "b": 10}


def test_quarantine_that_cannot_be_written_fails_the_batch_before_anything_is_counted(store: Store) -> None:
    records = [*_records("a"), record(_FIRST + 10, image("view", url="a")), *_records("b", _FIRST + 20)]
    store.client.before = fault("put_item", "ThrottlingException", "QUARANTINE#")
    with pytest.raises(CommitError, match="ThrottlingException"):
        _deliver(store, records)
    assert _sums(store) == {"a": 0, "b": 0}

    store.client.before = no_fault
    assert _deliver(store, records).quarantined == 1
    assert _sums(store) == {"a": 1, "b": 1}
