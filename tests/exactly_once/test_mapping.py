"""The harness itself: the mapping delivers as AWS documents it."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import Delivery, EventSourceMapping, Settings
from simulation.metered_table import MeteredTable


class _Stage:
    def __init__(self, *names: str, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.table = MeteredTable(self.clock)
        self.mapping = EventSourceMapping(self.table.stream, self.clock, Settings(**settings))
        self.put(*names)

    def put(self, *names: str) -> None:
        for name in names:
            self.table.put_item(TableName=self.table.name, Item={"pk": {"S": name}, "sk": {"S": "x"}})

    def poll(self) -> Delivery:
        deliveries = [found for shard in self.mapping.shards() if (found := self.mapping.poll(shard))]
        assert len(deliveries) == 1
        return deliveries[0]

    def nothing(self) -> bool:
        return all(self.mapping.poll(shard) is None for shard in self.mapping.shards())


def _names(delivery: Delivery) -> str:
    return "".join(record["dynamodb"]["Keys"]["pk"]["S"] for record in delivery.records)


def _answer(delivery: Delivery, **more: Any) -> dict[str, Any]:
    return {"state": delivery.event["state"], **more}


def test_a_shard_is_delivered_in_order_and_one_batch_at_a_time() -> None:
    stage = _Stage("a", "b", "c", batch_size=2)
    first = stage.poll()
    assert (_names(first), stage.mapping.shards()) == ("ab", [])
    assert stage.mapping.settle(first, _answer(first))
    assert _names(stage.poll()) == "c"


def test_a_failed_batch_comes_again_unchanged() -> None:
    stage = _Stage("a", "b")
    stage.mapping.fail(stage.poll())
    stage.put("c")
    assert _names(stage.poll()) == "ab"


def test_a_failed_batch_is_bisected_down_to_the_record() -> None:
    stage = _Stage("a", "b", "c", "d", bisect=True)
    seen = []
    for fails in (True, True, False, False, False):
        delivery = stage.poll()
        seen.append(_names(delivery))
        if fails:
            stage.mapping.fail(delivery)
        else:
            assert stage.mapping.settle(delivery, _answer(delivery))
    assert seen == ["abcd", "ab", "a", "b", "cd"]


def test_children_wait_for_their_parent() -> None:
    stage = _Stage("a")
    [parent] = stage.mapping.shards()
    stage.table.stream.split(parent)
    stage.put("b")
    assert stage.mapping.shards() == [parent]
    for expected in ("a", ""):
        delivery = stage.poll()
        assert (delivery.shard, _names(delivery)) == (parent, expected)
        stage.mapping.settle(delivery, _answer(delivery))
    assert stage.nothing()
    assert _names(stage.poll()) == "b"


@pytest.mark.parametrize("response", [None, {}, {"state": None}, "state"])
def test_a_response_without_state_is_a_failure(response: Any) -> None:
    stage = _Stage("a")
    assert not stage.mapping.settle(stage.poll(), response)
    assert _names(stage.poll()) == "a"


def test_a_window_ends_with_an_invocation_without_records() -> None:
    stage = _Stage("a", window_seconds=60)
    first = stage.poll()
    assert not first.event["isFinalInvokeForWindow"]
    stage.mapping.settle(first, {"state": {"n": 1}})
    assert stage.nothing()
    stage.clock.advance(60)
    stage.put("b")
    final = stage.poll()
    assert (final.event["Records"], final.event["isFinalInvokeForWindow"]) == ([], True)
    assert final.event["state"] == {"n": 1}
    stage.mapping.settle(final, {"state": {"n": 1}})
    assert (stage.poll().event["state"], first.event["shardId"]) == ({}, first.shard)


def test_reported_failures_come_again_from_the_first_of_them() -> None:
    stage = _Stage("a", "b", "c", report_item_failures=True)
    delivery = stage.poll()
    failed = [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in delivery.records[1:]]
    assert not stage.mapping.settle(delivery, _answer(delivery, batchItemFailures=failed[::-1]))
    assert _names(stage.poll()) == "bc"


def test_a_report_that_names_no_record_of_the_batch_fails_all_of_it() -> None:
    stage = _Stage("a", "b", report_item_failures=True)
    delivery = stage.poll()
    assert not stage.mapping.settle(delivery, _answer(delivery, batchItemFailures=[{"itemIdentifier": "1"}]))
    assert _names(stage.poll()) == "ab"


def test_records_that_are_too_old_go_to_the_on_failure_destination() -> None:
    stage = _Stage("a", max_age_seconds=100.0, window_seconds=900)
    stage.mapping.fail(stage.poll())
    stage.clock.advance(101)
    stage.put("b")
    assert _names(stage.poll()) == "b"
    [(_, [abandoned])] = stage.mapping.on_failure
    assert abandoned["dynamodb"]["Keys"]["pk"] == {"S": "a"}


def test_a_batch_is_no_larger_than_the_payload_may_be() -> None:
    stage = _Stage("a" * 600, "b" * 600, "c" * 600, max_bytes=2_000)
    assert len(stage.poll().records) == 1


def test_a_timed_out_invocation_that_answers_later_changes_nothing() -> None:
    stage = _Stage("a")
    zombie = stage.poll()
    stage.mapping.fail(zombie)
    assert not stage.mapping.settle(zombie, _answer(zombie))
    assert _names(stage.poll()) == "a"


def test_records_that_the_stream_has_forgotten_are_not_delivered() -> None:
    stage = _Stage("a", window_seconds=900)
    parent = stage.table.stream.shards()[0].id
    stage.table.stream.split(parent)
    stage.clock.advance(100)
    stage.put("b")
    stage.table.stream.trim(stage.clock.now)
    assert parent not in stage.mapping.shards()
    assert _names(stage.poll()) == "b"
