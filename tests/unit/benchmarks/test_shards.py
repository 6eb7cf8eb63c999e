from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.shards import LIFETIME, WINDOW_SECONDS, Partitions
from simulation.clock import VirtualClock

_KEYS = {"pk": {"S": "a"}, "sk": {"S": "b"}}


class Function:
    """Remembers its invocations and returns how many it has had as state."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    def __call__(self, _partition: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
        self.events.append(event)
        return {"invocations": len(self.events)}

    def sequences(self) -> list[int]:
        return [int(record["dynamodb"]["SequenceNumber"]) for event in self.events for record in event["Records"]]


def test_every_record_is_delivered_once_in_order_across_replaced_shards() -> None:
    clock, function = VirtualClock(), Function()
    stream = Partitions(clock, 1)
    for _ in range(30):
        clock.advance(LIFETIME / 10)
        stream.put(0, _KEYS, None, {"n": {"N": "1"}})
        stream.deliver(function)

    assert len(function.sequences()) == 30
    assert function.sequences() == sorted(set(function.sequences()))
    assert len({event["shardId"] for event in function.events}) == 3


def test_a_window_ends_with_an_empty_invocation_that_gets_the_state() -> None:
    clock, function = VirtualClock(), Function()
    stream = Partitions(clock, 1)
    stream.put(0, _KEYS, None, {"n": {"N": "1"}})
    stream.deliver(function)
    stream.deliver(function)
    assert len(function.events) == 1

    clock.advance(WINDOW_SECONDS)
    stream.deliver(function)
    stream.deliver(function)

    first, final = function.events
    assert (first["isFinalInvokeForWindow"], final["isFinalInvokeForWindow"]) == (False, True)
    assert final["Records"] == []
    assert final["state"] == {"invocations": 1}


def test_shards_are_replaced_one_after_the_other_or_all_at_once() -> None:
    for staggered, replaced in ((True, 1), (False, 4)):
        clock, function = VirtualClock(), Function()
        stream = Partitions(clock, 4, staggered=staggered)
        for seconds in (0.0, LIFETIME / 4 if staggered else LIFETIME):
            clock.advance(seconds)
            for partition in range(4):
                stream.put(partition, _KEYS, None, {"n": {"N": "1"}})
            stream.deliver(function)
        clock.advance(1.0)
        for partition in range(4):
            stream.put(partition, _KEYS, None, {"n": {"N": "1"}})
        stream.deliver(function)
        assert len({event["shardId"] for event in function.events}) == 4 + replaced


def test_a_replay_delivers_the_same_records_of_the_same_shards() -> None:
    clock, function, again = VirtualClock(), Function(), Function()
    stream = Partitions(clock, 2)
    for _ in range(20):
        clock.advance(LIFETIME / 8)
        for partition in range(2):
            stream.put(partition, _KEYS, None, {"n": {"N": "1"}})
        stream.deliver(function)

    stream.replay([(0, event) for event in function.events], again)

    assert sorted(again.sequences()) == sorted(function.sequences())
    assert {event["shardId"] for event in again.events} == {event["shardId"] for event in function.events}
