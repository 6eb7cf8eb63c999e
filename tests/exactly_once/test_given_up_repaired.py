"""What Lambda gave up on, and copies of a table: whatever was counted, and comes after, a repair makes counts exact.

Where events have gone meanwhile, a group may be unknown instead: here a quarter to a third are, as events live for
minutes and Lambda gives up after a day.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from counters_cli.backfill import Backfill
from counters_lambda.counting.runner import Progress
from counters_lambda.counting.verification import SETTLING, Verification
from dynamodb_counters import Aggregate, Attr, Count, Event, Items, Packed
from dynamodb_counters._assumptions import GIVEN_UP_AFTER, GIVEN_UP_SETTLED, LANDS_WITHIN, LONGEST_INVOCATION
from dynamodb_counters._tiers import DAY, HOUR, MINUTE
from dynamodb_counters._writes.accept import accept
from dynamodb_counters.errors import CheckpointError, CommitError
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying, HookedClient
from simulation.night import scaled
from simulation.pairs.backend import MemoryBackend
from simulation.pairs.calls import Runner
from simulation.pairs.copies import Traffic, wrong_after
from simulation.pairs.declared import FAMILIES, VISIT
from simulation.pairs.writers import Orders
from simulation.world import World, reach

SEEDS = scaled(30)
BACKFILLED = scaled(10)

NAMES = ("bins", "busy", "ranked", "pace", "orders", "tags", "per_client", "kept", "live", "guests", "cells")


class Starved(Traffic):
    """A table with traffic, of which some shards fail for so long that Lambda gives up on their records."""

    settled_after = GIVEN_UP_SETTLED
    tries = 6

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        backend, names = MemoryBackend(rng), rng.sample(NAMES, rng.randint(3, 5))
        super().__init__(backend, rng, tuple(part for name in names for part in rng.choice(FAMILIES[name])))
        self._orders = Orders(backend, rng, spoils=rng.random() < 0.5)
        settings = Settings(max_bytes=None, max_age_seconds=GIVEN_UP_AFTER)
        self.mapping = EventSourceMapping(backend.stream, self.clock, settings)
        self._starved: list[str] = []

    def write(self) -> None:
        draw, chance = self.random, self.random.random()
        if chance < 0.4:
            self._orders.change()
        elif chance < 0.9:
            values = {"page": draw.choice("ab"), "id": str(draw.randrange(12)), "client": draw.choice("uv")}
            at = int(self.clock()) - draw.choice((0, 60, 3000))
            accept(self.table, VISIT, {**values, "weight": draw.randint(1, 5), "at": at})
        else:
            self.clock.advance(draw.choice((60, 900, 1800)))
            self.backend.expire(draw.randint(1, 3))

    def live(self, steps: int, lag: float) -> None:
        for _ in range(steps):
            if self.random.random() < 0.6:
                self.write()
            elif self.random.random() > lag:
                self._deliver_once()
            elif self.random.random() < 0.05:
                self.backend.roll_over()

    def starve(self) -> None:
        """Have shards fail from now on, until Lambda has given up on what they hold; the others go on."""
        shards = self.mapping.shards()
        self._starved = self.random.sample(shards, self.random.randint(1, len(shards)))
        until = self.clock() + GIVEN_UP_AFTER + self.random.choice((1.0, 60.0, HOUR))
        while (now := self.clock()) < until:
            for shard in self._starved:
                if self.random.random() < 0.3:
                    self._fail(shard)
            self.live(self.random.randint(0, 6), 0.4)
            if self.random.random() < 0.2:
                self.deliver()
            self.clock.advance(min(self.random.choice((0.2, 2, 9)) * HOUR, until - now))
        if self.random.random() < 0.6:
            for shard in self._starved:
                self._fail(shard)
        self._starved.clear()

    def deliver(self, most: int = 10**6) -> bool:
        """Deliver what no starved shard holds, as of now: a run logs what is delivered, which makes records again."""
        shards = [shard for shard in self.mapping.shards() if shard not in self._starved]
        return sum(self._deliver(shard, most) for shard in shards) > 0

    def finish(self) -> None:
        """Let all land that is on its way, and deliver all there is."""
        while self.clock.hurry(self.random):
            pass
        self.deliver_all()

    def _deliver(self, shard: str, most: int, client: Any = None, *, is_lost: bool = False) -> bool:
        if (delivery := self.mapping.poll(shard, most)) is None:
            return False
        try:
            report = (self.aggregator(client) if client else self.process).handle(delivery.event)
        except (Crashed, CheckpointError, CommitError):
            is_lost = True
        if is_lost:
            self.mapping.fail(delivery)
            if self.random.random() < 0.5:
                # The next batch is cut elsewhere.
                self.mapping.rewind(shard, self.mapping.checkpoint(shard))
        else:
            self.mapping.settle(delivery, {"state": report.state(delivery.event)})
        return True

    def _deliver_once(self) -> None:
        shard = self.random.choice(self.mapping.shards())
        if shard not in self._starved:
            client: Any = None
            if self.random.random() < 0.2:
                self.process = self.aggregator(self.backend)
                client = self._dying()
            self._deliver(shard, self.random.randint(1, 12), client)

    def _fail(self, shard: str) -> None:
        """Let an invocation die with a part of its writes done, or lose its answer; an update may be on its way."""
        client = self._dying() if self.random.random() < 0.5 else self._zombie(self.random.randint(3, 12))
        self._deliver(shard, self.random.randint(1, 12), client, is_lost=True)

    def _dying(self) -> HookedClient:
        return Dying(self.backend, self.random.randint(0, 12), after=self.random.random() < 0.5)

    def _zombie(self, requests: int) -> HookedClient:
        """Return a client whose update of an item, after so many requests, is on its way when its process dies."""

        def hook(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
            nonlocal requests
            requests -= 1
            if requests >= 0 or name != "update_item":
                return send()

            def land() -> None:
                with contextlib.suppress(self.backend.exceptions.ConditionalCheckFailedException):
                    send()

            self.clock.call_at(self.clock() + self.random.uniform(0, LONGEST_INVOCATION + LANDS_WITHIN), land)
            raise Crashed

        return HookedClient(self.backend, hook)


def check(seed: int, *, repairs: bool = True, backfills: bool = False) -> list[str]:
    """Return counts that are wrong."""
    world = Starved(seed)
    world.live(world.random.randint(5, 40), 0.6)
    filled: Runner | None = None
    if backfills:
        filled = Runner(world.backend, world.random, kind=Backfill, names=[world.random.choice(world.declared).name])
        for _ in range(world.random.randint(0, 400)):
            if world.step(filled):
                break
    for _ in range(world.random.randint(1, 3)):
        world.starve()
        world.live(world.random.randint(0, 20), 0.4)
        if world.random.random() < 0.3:
            world.clock.advance(world.random.choice((HOUR, 3 * DAY)))
    if filled is not None:
        while not filled.actor.done and not world.step(filled):
            pass
        world.fill()
    differences = world.repair(outlives=GIVEN_UP_SETTLED).differences if repairs else ()
    world.finish()
    return wrong_after(differences, world.backend, world.declared) if world.mapping.on_failure else []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_count_is_exact_once_it_is_repaired(seed: int) -> None:
    assert check(seed) == []


@pytest.mark.parametrize("seed", range(1_000, 1_000 + BACKFILLED))
def test_every_count_is_exact_though_a_name_is_filled_meanwhile(seed: int) -> None:
    assert check(seed, backfills=True) == []


def test_without_a_repair_counts_stay_wrong() -> None:
    wrong = [seed for seed in range(SEEDS) if check(seed, repairs=False)]
    assert len(wrong) >= SEEDS * 0.7, wrong


SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, by="shop", measures={"n": Count()})


class Shops(World):
    """A table of sales, until Lambda gives up on some of them."""

    def sell(self, number: int, shop: str) -> None:
        self.accept(self.sale, {"id": number, "shop": shop})

    @property
    def sale(self) -> Event:
        source = self.declared[0].source
        assert isinstance(source, Event)
        return source

    def losses(self) -> list[Any]:
        """Skip what is new: it will not be counted."""
        [records] = self.skip().values()
        return records

    def counts(self, *shops: str) -> list[Any]:
        [shop] = self.declared
        return [self.read(shop, shop=name)[0]["n"] for name in shops]  # type: ignore[arg-type]

    def give_up(self, records: list[Any]) -> None:
        """Have Lambda give up on records, with an update of an invocation on its way, and a later one counted."""
        self._client = self.freeze(records)
        self._lands_at = self.clock() + LONGEST_INVOCATION
        self.clock.advance(2 * MINUTE)
        self.sell(99, "later")
        later = self.losses()
        self.deliver(later)
        self.end_window(later)

    def finish(self, repairing: Verification, steps: Iterator[Progress]) -> set[str]:
        """Repair, while what is on its way lands; the phases."""
        phases = set[str]()
        for step in steps:
            phases.add(step.phase)
            self._land(self.clock())
        repairing.repair()
        self._land(math.inf)
        return phases

    def repair(self, records: list[Any]) -> set[str]:
        self.clock.advance(GIVEN_UP_AFTER - MINUTE)
        self.give_up(records)
        repairing = self.verification(outlives=GIVEN_UP_SETTLED)
        return self.finish(repairing, repairing.steps())

    def _land(self, by: float) -> None:
        if self._lands_at < by:
            self._client.land()
            self._lands_at = math.inf


def test_a_repair_outlives_an_invocation_whose_batch_lambda_gave_up_on() -> None:
    # Where the next batch moves the checkpoint, a verification takes the one before for counted in every group.
    shops = Shops(SHOPS)
    shops.sell(1, "x")
    assert SETTLING in shops.repair(shops.losses())
    assert shops.counts("x", "later") == [1, 1]


def test_a_repair_outlives_what_lambda_gives_up_on_before_the_log_is_past_the_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins while the function fails."""
    shops = Shops(SHOPS)
    shops.sell(1, "x")
    records = shops.losses()
    shops.clock.advance(GIVEN_UP_AFTER - HOUR)
    monkeypatch.setattr(shops, "deliver_new", lambda: None)
    repairing = shops.verification(outlives=GIVEN_UP_SETTLED)
    steps = repairing.steps()
    reach(steps, "draining")
    shops.clock.advance(HOUR - 5 * MINUTE)
    shops.give_up(records)
    monkeypatch.undo()
    shops.finish(repairing, steps)
    assert shops.counts("x", "later") == [1, 1]


def test_a_repair_compares_again_where_what_was_given_up_on_cancels_out() -> None:
    shops = Shops(SHOPS)
    shops.sell(1, "x")
    shops.deliver_new()
    shops.sell(2, "x")
    records = shops.losses()
    shops.counters.retract(SALE, {"id": 2, "shop": "x"})
    shops.sell(3, "y")
    shops.skip()
    shops.repair(records)
    assert shops.counts("x", "y", "later") == [1, 1, 1]


def test_a_repair_outlives_invocations_only_where_it_sets_something() -> None:
    """Here a group holds more than its source shows, which may have expired."""
    shops = Shops(expiring := replace(SHOPS, source=replace(SALE, retention=timedelta(days=35))))
    shops.sell(1, "x")
    shops.deliver_new()
    shops.spoil(expiring, "n", 2, shop="x")
    shops.sell(2, "x")
    assert SETTLING not in shops.repair(shops.losses())
    assert shops.counts("x", "later") == [4, 1]


def test_what_is_fed_by_hand_once_it_is_repaired_is_not_counted_again() -> None:
    """Nothing has moved the checkpoint past it, and no group has a later watermark."""
    shops = Shops(SHOPS)
    shops.sell(1, "x")
    records = shops.losses()
    shops.clock.advance(GIVEN_UP_AFTER)
    repairing = shops.verification(outlives=GIVEN_UP_SETTLED)
    list(repairing.steps())
    assert repairing.repair() == (1, 0)
    with pytest.raises(CheckpointError, match="hours old"):
        shops.deliver(records, by=shops.process())
    assert shops.counts("x") == [1]


# Copies: an aggregator is deployed on a copy of any moment, and a repair makes it exact

BRIEF = replace(SALE, retention=timedelta(hours=1))
KEPT = Aggregate("keep", BRIEF, pk="keep", sk="#", n=Count())
LIVE = Aggregate("subtract", BRIEF, pk="subtract", sk="#", n=Count(), on_expiry="subtract")
TICKETS = Aggregate("tickets", Items("ticket", where=Attr("ticket").exists()), pk="tickets", sk="#", n=Count())


@pytest.mark.parametrize("packed", [None, Packed("at")])
def test_what_was_erased_before_the_copy_had_counted_it_is_unknown(packed: Packed | None) -> None:
    event = replace(SALE, sk="AT#{at}", packed=packed)
    world = World(replace(KEPT, source=event))
    world.accept(event, *({"id": number, "at": int(world.clock())} for number in range(3)))
    world.deliver_new()
    world.erase(event, {"id": "1"}, "keep")
    assert world.copy().missing() == [("unknown", {"n": -1})]


def test_what_expired_before_the_copy_had_counted_it_is_unknown_and_stays_counted() -> None:
    world = World(KEPT, LIVE, TICKETS)
    world.accept(BRIEF, *({"id": number} for number in range(3)))
    for number in range(3):
        world.put(f"TICKET#{number}", "#", ticket=True, ttl=int(world.clock() + HOUR))
    world.deliver_new()
    world.clock.advance(2 * HOUR)
    world.table.expire()
    copy = world.copy()
    work = copy.verify()
    statuses = {difference.name: (difference.status, difference.missing["n"]) for difference in work.differences}
    assert statuses == {"keep": ("unknown", -3), "subtract": ("drifted", -3), "tickets": ("unknown", -3)}
    work.repair()
    copy.settle()
    assert [copy.counters.get(aggregate)["n"] for aggregate in (KEPT, LIVE, TICKETS)] == [3, 0, 3]
