"""Requests are refused, answers lost, or a flood of events cannot be counted: exact, at a price in proportion."""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from counters_lambda.counting.batch import Aggregator
from dynamodb_counters import Aggregate, Count, Counter, Event, InvalidArgumentError, Ranking, Sum, UnavailableError
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters._writes.direct_counts import increment, reset
from dynamodb_counters.errors import CommitError
from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.faults.hooked_client import HookedClient, once
from simulation.faults.process import in_disorder
from simulation.memory.memory_stream import MemoryStream
from simulation.night import scaled
from simulation.queue.throttled_table import Limits, ThrottledTable
from simulation.queue.virtual_threads import KilledError, VirtualThreads
from simulation.throttled_burst import run
from simulation.world import QUARANTINE_SECONDS, World

RECORDS = 512
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
EACH = Aggregate("each", SALE, pk="EACH#{id}", sk="ALL", measures={"n": Count()})


def _units(seed: int, refused: float, timeout: float) -> tuple[float, int]:
    """Write units that it takes to count sales while so many calls are refused; and how many were."""
    rng = random.Random(seed)
    world = World(EACH)
    world.accept(SALE, *({"id": number} for number in range(RECORDS)))
    met = 0

    def decide(_: str) -> Fault:
        nonlocal met
        if rng.random() >= refused:
            return Fault.NONE
        met += 1
        return rng.choice((Fault.THROTTLED, Fault.CONFLICT))

    client: Any = FaultyClient(world.table, decide, rng)
    # Pauses of requests that are side by side overlap.
    sleep = lambda seconds: world.clock.advance(seconds / CONCURRENCY)  # noqa: E731
    table = Table(world.name, client, clock=world.clock, sleep=sleep, jitter=rng.random)
    table.__dict__["side_by_side"] = in_disorder(rng)
    aggregator = Aggregator(table, (EACH,), quarantine_retention_seconds=QUARANTINE_SECONDS)
    before = world.table.usage.writes
    settings = Settings(batch_size=RECORDS, window_seconds=0, bisect=True)
    mapping = EventSourceMapping(world.table.stream, world.clock, settings)
    while delivery := next((batch for shard in mapping.shards() if (batch := mapping.poll(shard))), None):
        assert mapping.deliveries <= 100, f"seed {seed} does not end"
        deadline = world.clock() + timeout
        try:
            aggregator.handle({**delivery.event, "shardId": delivery.shard}, lambda: deadline - world.clock())  # noqa: B023
        except (CommitError, ClientError):
            mapping.fail(delivery)
        else:
            mapping.settle(delivery, {})
    # With nothing left to read, the mapping has delivered the aggregator's own writes too.
    assert [item["n"]["N"] for item in world.items("each")] == ["1"] * RECORDS, f"seed {seed}"
    return world.table.usage.writes - before, met


@pytest.mark.parametrize("timeout", [900.0, 60.0])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_contention_is_waited_out_not_bisected(seed: int, timeout: float) -> None:
    (undisturbed, _), (contended, refused) = _units(seed, 0.0, timeout), _units(seed, 0.9, timeout)
    assert refused > RECORDS
    assert contended <= 1.5 * undisturbed


RANKED = Aggregate("ranked", SALE, pk="RANKED#{group}", sk="ALL", n=Count(), ranking=Ranking("n", "BEST"))


@pytest.mark.parametrize(
    ("groups", "limits"),
    [(1, Limits(writes=1.0)), (100, Limits(index_writes=30.0)), (100, Limits(table_writes=40.0))],
    ids=["key", "index", "table"],
)
def test_no_invocation_fails_as_a_limit_of_aws_throttles_it(groups: int, limits: Limits) -> None:
    """400 sales in ten seconds: two shards' functions count what comes, and wait out whatever refuses them."""
    threads, rng = VirtualThreads(VirtualClock()), random.Random(0)
    throttled = ThrottledTable(threads, limits, shards=2)
    mapping = EventSourceMapping(throttled.stream, threads.clock, Settings(1000, max_bytes=None, window_seconds=900))

    def write() -> None:
        for first in range(0, 400, 10):
            waiting: list[dict[str, Any]] = [
                {"id": number, "group": rng.randrange(groups)} for number in range(first, first + 10)
            ]
            while waiting:
                outcomes = accept_many(throttled.reached(rng.random), SALE, waiting)
                waiting = [event for event, result in zip(waiting, outcomes, strict=True) if result.status == "failed"]
            threads.sleep(0.25)

    def serve(shard: str) -> None:
        aggregator = Aggregator(throttled.reached(rng.random), (RANKED,), quarantine_retention_seconds=86_400)
        while True:
            if (delivery := mapping.poll(shard)) is None:
                threads.sleep(0.1)
                continue
            mapping.settle(delivery, {"state": aggregator.handle(delivery.event, lambda: 60.0).state(delivery.event)})

    end = threads.clock() + 10
    functions = [threads.start(partial(serve, shard), end) for shard in mapping.shards()]
    threads.start(write, end)
    threads.clock.advance(11)
    assert throttled.throttled > 0
    for function in functions:
        with pytest.raises(KilledError):  # At its end, and not before for an error.
            function.result()


# Floods of events of which one aggregate cannot count any

SHARDS = 4
SHOPS = tuple("abcdefgh")
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"n": Count(), "sum": Sum("amount")})
VISITS = Aggregate("visits", SALE, pk="VISITS#{shop}", sk="ALL", measures={"n": Count()})


def test_a_cold_start_does_not_read_what_waits() -> None:
    world = World(SALES)
    world.deliver(world.accept(SALE, *({"id": number, "shop": "a"} for number in range(3000))))
    batch = world.accept(SALE, {"id": -1, "shop": "a", "amount": 1})
    before = world.table.usage.reads
    assert (world.deliver(batch, by=world.process()).updated, world.table.usage.reads - before <= 10) == (1, True)


def _flooded(good: int, malformed: int) -> tuple[int, int, float]:
    """Invocations, of which so many until each good event is counted, and write units without those of entries."""
    rng, world, shops = random.Random(20_261_121), World(SALES, VISITS, shards=SHARDS), collections.Counter[str]()
    kinds = [True] * good + [False] * malformed
    rng.shuffle(kinds)
    for number, is_good in enumerate(kinds):
        shop = rng.choice(SHOPS)
        # A malformed one lacks only what one of the aggregates needs.
        world.put(f"SALE#{number}", "SALE", _type="sale", id=number, shop=shop, **({"amount": 1} if is_good else {}))
        shops[shop] += is_good
    before, last_good = world.table.usage.writes, 0
    settings = Settings(batch_size=1000, window_seconds=60, max_bytes=None, bisect=True)
    mapping = EventSourceMapping(world.table.stream, world.clock, settings)
    while deliveries := [delivery for shard in mapping.shards() if (delivery := mapping.poll(shard))]:
        for delivery in deliveries:
            report = world.aggregator.handle(delivery.event)
            assert mapping.settle(delivery, {"state": report.state(delivery.event)}), "an invocation failed"
            if any("amount" in record["dynamodb"].get("NewImage", {}) for record in delivery.records):
                last_good = mapping.deliveries
    assert {shop: world.counters.get(SALES, shop=shop)["sum"] for shop in SHOPS} == shops
    assert sum(world.counters.get(VISITS, shop=shop)["n"] for shop in SHOPS) == len(kinds)
    waiting = sum(item.get("state") == {"S": "waiting"} for item in world.table.items())
    assert waiting == malformed
    return mapping.deliveries, last_good, world.table.usage.writes - before - waiting


def test_a_flood_costs_in_proportion_and_stops_nothing() -> None:
    count = scaled(1000)
    plain, flooded = _flooded(count, 0), _flooded(count, count)
    assert flooded[0] <= 4 * plain[0]
    # The stream is twice as long, and quarantine's own records pass through it too, without effect.
    assert flooded[1] <= 2 * plain[1] + SHARDS
    # An entry is one write; nothing else grows beyond the number of batches.
    assert flooded[2] <= 3 * plain[2]


# Rules of AWS that simulators follow: each has its switch, and its guard or the reason why it needs none

SOLD = Aggregate("sales", SALE, pk="SOLD", sk="ALL", measures={"n": Count()})


@pytest.mark.parametrize(
    ("events", "burst"),
    [
        # None uses up its receives.
        (500, {"per_message": 500, "units_per_second": 50, "outage": 1800, "refused": 0.2}),
        (500, {"per_message": 10, "units_per_second": 50, "outage": 7200, "refused": 0.2}),
        # What is accepted of it is a duplicate when it comes again as a whole, also where it comes twice.
        (2000, {"per_message": 500, "units_per_second": 20, "twice": 0.3}),
        # One that would grow becomes a dead letter once all else of it is accepted.
        (200, {"units_per_second": 50, "outage": 1800, "refused": 0.2, "twice": 0, "growing": 80_000}),
        # One that is refused for long is a dead letter before it expires.
        (5, {"units_per_second": 50, "outage": 90 * 3600, "longest": 96 * 3600}),
    ],
)
def test_a_message_comes_again_while_the_table_refuses_it(events: int, burst: dict[str, float]) -> None:
    result = run(events=events, **burst)  # type: ignore[arg-type]
    accepted = 0 if "longest" in burst else events
    dead = result["messages"] if "growing" in burst else events - accepted
    assert (result["accepted"], result["events in the dead-letter queue"], result["expired"]) == (accepted, dead, 0)
    assert result["receives per message"] > 1


@pytest.mark.parametrize("late", [True, False])
def test_a_stream_that_is_enabled_again_counts_on(late: bool) -> None:
    world = World(SOLD)
    world.accept(SALE, {"id": 1}, {"id": 2})
    table, before = world.table._only, world.table.stream
    world.table.stream = table.stream = MemoryStream(1, 1, world.clock, table.name, "2026-11-21T00:00:00.000")
    world.accept(SALE, {"id": 3})
    old = [(shard.id, before.read(shard.id, None, 100).records) for shard in before.shards()]
    new = [(shard, world.records(shard)) for shard in world.shards()]
    for shard, records in (*new, *old) if late else (*old, *new):
        world.deliver(records, shard)
    assert world.counters.get(SOLD, {})["n"] == 3


# Increments and resets: none counts twice, and what may have counted says so

_SITE = Counter("site", pk="SITE", sk="SITE", n=Count())


def test_an_increment_costs_one_unit() -> None:
    world = World(_SITE)
    for number in range(1, 101):
        before = world.table.usage.writes
        assert increment(world.store, _SITE, {}, 1) == {"n": number}
        assert world.table.usage.writes == before + 1
    assert reset(world.store, _SITE, {}) == {"n": 100}
    assert world.table.usage.writes == before + 2


def test_an_amount_that_its_item_cannot_take_is_refused_by_name() -> None:
    table = World(_SITE).store
    increment(table, _SITE, {}, Decimal("0.5"))
    with pytest.raises(InvalidArgumentError, match=r"invalid amount=10+: expected one whose sum has at most 38"):
        increment(table, _SITE, {}, 10**37 * 100)
    assert increment(table, _SITE, {}, 1) == {"n": Decimal("1.5")}


@pytest.mark.parametrize("change", [reset, partial(increment, amount={"m": 3})])
def test_a_reset_takes_what_is_counted_meanwhile_and_nothing_that_another_reset_takes(change: Any) -> None:
    both = Counter("both", pk="BOTH", sk="BOTH", n=Count(), m=Count())
    world, changed = World(both), list[Any]()
    increment(world.store, both, {}, {"n": 5})
    hook = once(["update_item"], lambda: changed.append(change(world.store, both, {})))
    values = reset(world.reached(HookedClient(world.table, hook)), both, {})
    assert (changed, values) in (([{"n": 5, "m": 0}], {"n": 0, "m": 0}), ([{"n": 5, "m": 3}], {"n": 5, "m": 3}))


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_requests_whose_answers_are_lost_are_not_sent_again(seed: int) -> None:
    """Calls within calls: answers are lost, requests land at once or late, with others before and in between."""
    rng, world, late = random.Random(seed), World(_SITE), list[Callable[[], Any]]()
    budget, depth = [60], [0]
    added, resets, may_be_added, may_be_taken = list[int](), list[int](), list[int](), list[int]()

    def decide(operation: str) -> Fault:
        world.clock.advance(rng.choice((0, 0.001, 2)))
        while budget[0] and depth[0] < 6 and rng.random() < 0.3:
            act()
        while late and rng.random() < 0.3:
            late.pop(rng.randrange(len(late)))()
        if operation != "UpdateItem":
            return Fault.NONE
        return rng.choice((*[Fault.NONE] * 20, Fault.LOST_ACK, Fault.RETRIED, Fault.LATE_RETRIED, Fault.THROTTLED))

    def act() -> None:
        budget[0] -= 1
        depth[0] += 1
        try:
            if rng.random() < 0.2:
                resets.append(reset(table, _SITE, {})["n"])
            else:
                increment(table, _SITE, {}, 1)
                added.append(1)
        except UnavailableError as error:
            if match := re.match(r"may have been (counted|reset, from n=(\d+))", str(error)):
                (may_be_taken if match[2] else may_be_added).append(int(match[2] or 1))
        depth[0] -= 1

    client: Any = FaultyClient(world.table, decide, rng, late.append)
    table = Table(world.name, client, clock=world.clock, sleep=lambda _: None, jitter=rng.random)
    while budget[0] or late:
        act() if budget[0] else late.pop()()
    total = sum(resets) + increment(world.store, _SITE, {}, 0)["n"]
    assert sum(added) - sum(may_be_taken) <= total <= sum(added) + sum(may_be_added), f"seed {seed}"
