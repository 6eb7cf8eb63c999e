"""Erased events whose counts wait in quarantine: whatever comes when, the counts never lack what was never added."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import UnavailableError
from simulation.faults.hooked_client import HookedClient, once
from simulation.oracle.chunks import rows_of
from tests.exactly_once.test_backfill import backfill, mend, verification
from tests.exactly_once.test_discards import KINDS, OF_EACH_KIND
from tests.exactly_once.test_discards import World as Delivered
from tests.exactly_once.test_erase import WRITES
from tests.exactly_once.test_waiting_entries import AHEAD, PACKED, TAGS, VIEW, redrive_all, tags

BOTH = pytest.mark.parametrize("counts", ["keep", "take_back"])


def _views(event: Event, on_expiry: Any = "keep") -> Aggregate:
    """Has always counted what the window, which takes nothing ahead of its time, lets wait."""
    return Aggregate("views", event, pk="ALL", sk="VIEWS", measures={"n": Count()}, on_expiry=on_expiry)


class World(Delivered):
    """A table with a window that counts an event once its time has come, and an aggregate that counts it at once."""

    def __init__(self, kind: str, on_expiry: Any = "keep") -> None:
        self.event = KINDS[kind]
        self.ahead = replace(AHEAD, source=self.event, on_expiry=on_expiry)
        self.views = _views(self.event, on_expiry)
        super().__init__(self.ahead, self.views)

    def accept(self, number: int = 1, url: str = "/") -> None:
        """An event an hour ahead of its time, which the stream does not have yet."""
        view = {"url": url, "at": int(self.bench.clock() + HOUR), "id": number}
        [outcome] = self.bench.counters.accept_many(self.event, [view])
        assert outcome.status == "accepted"

    def let_it_wait(self) -> None:
        """An event whose count waits, and could be added by now."""
        self.accept()
        self.stream.deliver()
        assert self.waiting() == 1
        self.bench.clock.advance(2 * HOUR)

    def erase(self, counts: Any, hook: Callable[..., Any] | None = None) -> Erased:
        client: Any = self.bench.table if hook is None else HookedClient(self.bench.table, hook)
        reached = Table(self.bench.table.name, client, clock=self.bench.clock, sleep=lambda _: None)
        return Eraser(reached, self.event, {"url": "/"}).erase(counts)

    def counts(self) -> tuple[int, int]:
        """Counts of the window and of the aggregate."""
        held = self.bench.counters.window(self.ahead, url="/").last(timedelta(hours=3)).count
        return int(held), int(self.bench.counters.get(self.views, {}).measures["n"])

    def stored(self) -> str:
        items = [dict(item) for item in self.bench.table.items() if not item["pk"]["S"].startswith("CHECKPOINT#")]
        items = [item for item in items if "WINDOW#" not in item["sk"]["S"]]
        return repr([{**item, "_chunk": rows_of(item)} if "_chunk" in item else item for item in items])

    def finish(self, counts: str) -> None:
        """Redrive what waits, and erase, until nothing is left."""
        for _ in range(6):
            redrive_all(self.bench, self.stream)
            with suppress(UnavailableError):
                if self.erase(counts) == Erased():
                    return
        pytest.fail("copies are still there")

    def is_exact(self, counts: str, on_expiry: str = "keep") -> bool:
        """Whether counts are as chosen; what has waited may have been counted or not, if counts are kept."""
        window, views = self.counts()
        is_kept = counts == "keep" and on_expiry != "subtract"
        return views == is_kept and window in {0, int(is_kept)} and self.is_right() and "'/'" not in self.stored()

    def is_right(self) -> bool:
        """Whether nothing has drifted; what is erased and stays counted is unknown."""
        return {each.verdict for each in self.verify().differences} <= {"unknown"}


@pytest.mark.parametrize("on_expiry", ["keep", "subtract"])
@BOTH
@OF_EACH_KIND
def test_nothing_is_erased_while_a_copy_waits(kind: str, counts: str, on_expiry: str) -> None:
    """Its deletion would be subtracted at once, and its counts added once it is redriven, or never."""
    world = World(kind, on_expiry)
    world.let_it_wait()
    stored = world.stored()
    with pytest.raises(UnavailableError, match=r"^1 copies wait in quarantine to be counted: redrive or discard them"):
        world.erase(counts)
    assert world.stored() == stored
    world.finish(counts)
    assert world.is_exact(counts, on_expiry)


@pytest.mark.parametrize("meanwhile", [False, True])
@BOTH
@OF_EACH_KIND
def test_an_entry_that_comes_after_its_event_is_erased_is_counted(kind: str, counts: str, *, meanwhile: bool) -> None:
    """The aggregator lags: what waits appears after the deletion, which subtracts it."""
    world = World(kind)
    world.accept()
    world.bench.clock.advance(2 * HOUR)
    found = world.erase(counts, once(WRITES, world.stream.deliver) if meanwhile else None)
    assert found.quarantined == found.left == int(meanwhile)
    world.stream.deliver()
    assert world.waiting() == 1
    world.finish(counts)
    assert world.is_exact(counts)


@BOTH
def test_what_cannot_be_counted_is_discarded_and_erased(counts: Any) -> None:
    world = Delivered(TAGS)
    world.view(tags=["a", "b", "c"])
    for _ in range(2):
        world.discard_all()
        assert Eraser(world.bench.store, VIEW, {"url": "/"}).erase(counts).left == 0
        world.stream.deliver()
    world.discard_all()
    assert Eraser(world.bench.store, VIEW, {"url": "/"}).erase(counts).left == 0
    assert not any("record" in item for item in world.bench.table.items())
    assert tags(world.bench) == [0, 0, 0]


def test_an_entry_of_a_backfill_that_goes_on_stays_until_that_is_over() -> None:
    world = World("plain")
    soon = replace(world.ahead, name="soon", pk="SOON#{url}")
    world.accept()
    world.stream.deliver()
    redrive_all(world.bench, world.stream)
    world.bench.deploy([soon, world.views])
    world.ahead = soon
    world.stream.deliver()
    for step in backfill(world.bench, world.stream).steps():
        if step.phase == "draining":
            with pytest.raises(UnavailableError, match=r"^2 copies wait"):
                world.erase("take_back")
    world.bench.clock.advance(2 * HOUR)
    world.finish("take_back")
    assert world.is_exact("take_back")


def taken_out_of_a_chunk(on_expiry: Any, then: Any, *, keeps_counts: bool) -> Delivered:
    """An event of too many groups that is erased before its record is delivered, and by `then` could be counted."""
    declared = replace(TAGS, source=PACKED, on_expiry=on_expiry)
    world = Delivered(declared)
    world.view(PACKED, tags=["a", "b", "c"])
    world.stream.skip()
    Eraser(world.bench.store, PACKED, {"url": "/"})._sweep_chunks("keep" if keeps_counts else "take_back")
    world.stream.deliver()
    # The image and its retraction; and both as they are erased, where that counts.
    assert world.waiting() == (1 if keeps_counts else 2) * (2 if on_expiry == "subtract" else 1)
    mend(world.bench, replace(declared, on_expiry=then, max_groups=3))
    return world


@BOTH
@pytest.mark.parametrize(("on_expiry", "then"), [("keep", "keep"), ("subtract", "subtract"), ("subtract", "keep")])
def test_rows_taken_out_of_a_chunk_uncounted_are_redriven_as_they_were_erased(
    on_expiry: str, then: str, counts: str
) -> None:
    world = taken_out_of_a_chunk(on_expiry, then, keeps_counts=counts == "keep")
    redrive_all(world.bench, world.stream)
    assert tags(world.bench) == [int(counts == then == "keep")] * 3
    if then == on_expiry:
        world.bench.clock.advance(HOUR)
        assert {each.verdict for each in world.verify().differences} <= {"unknown"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_redriven_and_erased_during_a_verification_is_no_drift(kind: str) -> None:
    world = World(kind)
    world.let_it_wait()
    verifying = verification(world.bench, world.stream)
    steps = verifying.steps()
    assert any(step.phase == "scanning" for step in steps)
    for entry in world.bench.counters.quarantined():
        assert world.bench.counters.redrive(entry)
    world.erase("keep")
    world.stream.deliver()
    assert all(step.phase for step in steps)
    assert {each.verdict for each in verifying.differences} == {"unknown"}
    assert verifying.repair() == (0, 0)
    assert world.counts() == (1, 1)
