"""Logs of packed events in a process: what it reads when it knows nothing, remembers, forgets, and how it writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from dynamodb_counters import Counters, Event, InvalidArgumentError, Packed
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._declarations.sources import EventIdentity
from dynamodb_counters._items.chunks import Chunk, decode_chunk
from dynamodb_counters._items.table_schema import CHUNK
from dynamodb_counters._table import ending_at
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters._writes.chunk_writes import _WARY, ChunkLogs
from simulation.clock import VirtualClock
from tests.unit.writes.conftest import Site

_VIEW: Final = Event(
    "view",
    pk="CUSTOMER#{customer}",
    sk="T#{at}#ID#{id}",
    packed=Packed("at", bucket=timedelta(minutes=1), chunk_bytes=1024),
)
_CHUNKS: Final = 300
_SMALL_VIEW = Event("view", pk="URL#{url}", sk="T#{at}", packed=Packed("at", bucket=timedelta(minutes=1)))
_HIT = Event("hit", pk="URL#{url}", sk="T#{at}#ID#{id}", packed=Packed("at", bucket=timedelta(minutes=1)))
_MOST = 500


class _Flooded(Site):
    """A table whose current bucket has so many chunks; each of its processes counts the chunks that it reads."""

    def __init__(self, event: Event = _VIEW, chunks: int = _CHUNKS) -> None:
        super().__init__()
        self.read: list[str] = []
        self.seconds_per_query = 0.0
        writer = self.process()
        for number in range(chunks):
            assert writer.accept(event, self.view("flooder", number)).status == "accepted"

    def view(self, customer: str, number: int, earlier: int = 0) -> dict[str, Any]:
        return {"customer": customer, "at": int(self.clock.now) // 60 * 60 - earlier, "id": number}

    def cold(self) -> Counters:
        process = self.process(self._read)
        # Threads would share the clock: what one log takes, another one would lack.
        vars(process._table)["threads"] = 1
        return process

    def _read(self, name: str, send: Any, _: dict[str, Any]) -> Any:
        answer = send()
        if name == "query":
            self.clock.advance(self.seconds_per_query)
            self.read += [item["pk"]["S"] + item["sk"]["S"] for item in answer["Items"] if "_chunk" in item]
        return answer


def test_a_look_builds_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _Flooded(chunks=3)
    monkeypatch.setattr(Chunk, "all_rows", None)

    outcomes = world.cold().accept_many(_VIEW, [world.view("flooder", number) for number in range(4)])

    assert [outcome.status for outcome in outcomes] == 3 * ["duplicate"] + ["accepted"]


def test_a_look_ends_with_the_time_and_goes_on_from_there() -> None:
    world = _Flooded()
    world.seconds_per_query = 1.0
    process = world.cold()
    own, other = world.view("victim", 1), world.view("victim", 2, earlier=120)

    statuses = []
    for _ in range(4):
        with ending_at(world.clock.now + 3):
            statuses.append([outcome.status for outcome in process.accept_many(_VIEW, [other, own])])

    assert statuses[0] == ["accepted", "failed"]
    assert statuses[-1] == ["duplicate", "duplicate"]
    assert ["duplicate", "accepted"] in statuses
    assert len(world.read) <= len(set(world.read)) + len(statuses)


_OWN: Final = replace(_VIEW, packed=Packed("at", bucket=timedelta(minutes=1), chunk_bytes=1024, tenant="customer"))


@pytest.mark.parametrize("chunks", [0, 50, _CHUNKS])
def test_a_tenant_reads_no_chunk_of_another(chunks: int) -> None:
    world = _Flooded(_OWN, chunks)

    first, second = world.cold(), world.cold()
    assert first.accept(_OWN, world.view("victim", 1)).status == "accepted"
    assert second.accept(_OWN, world.view("victim", 1)).status == "duplicate"
    assert [view["id"] for view in second.events(_OWN, {"customer": "victim"})] == [1]
    assert len(world.read) == 2
    assert not any("flooder" in key for key in world.read)


def test_the_buckets_of_one_tenant_take_turns_with_those_of_others() -> None:
    world = _Flooded(_OWN, 0)
    process = world.cold()
    flood = [world.view("flooder", number, earlier=60 * number) for number in range(100)]
    order: list[str] = []

    def each(work: Any, keys: Any) -> list[Any]:
        order.extend(key.part for key in keys)
        return [work(key) for key in keys]

    process._table.__dict__["each"] = each
    outcomes = process.accept_many(_OWN, [*flood, world.view("victim", 1)])

    assert {outcome.status for outcome in outcomes} == {"accepted"}
    assert order.index("0#victim") == 1


def test_events_are_read_by_tenant() -> None:
    world = _Flooded(_OWN, 3)
    with pytest.raises(InvalidArgumentError, match="invalid customer=None"):
        world.cold().events(_OWN)


def test_names_of_tenants_lead_into_no_other_log() -> None:
    world = _Flooded(_OWN, 0)
    process = world.cold()
    names = ["", "%", "a", "a#b", "a%23b", "0#a", "x" * 3000, "x" * 2999 + "y"]
    for name in names:
        assert process.accept(_OWN, world.view(name, 1)).status == "accepted"
        assert [view["customer"] for view in process.events(_OWN, {"customer": name})] == [name]
    parts = {item["pk"]["S"] for item in world.table.items() if "_chunk" in item}
    assert len(parts) == len(names)


@pytest.mark.parametrize("values", [{"customer": "a"}, {"id": 1}])
def test_events_of_tenants_are_erased(values: dict[str, Any]) -> None:
    world = _Flooded(_OWN, 0)
    process = world.cold()
    for name in "ab":
        assert process.accept(_OWN, world.view(name, 1)).status == "accepted"

    assert process.erase(_OWN, values, counts="keep").packed == (1 if "customer" in values else 2)
    assert list(process.events(_OWN, {"customer": "a"})) == []
    assert len(list(process.events(_OWN, {"customer": "b"}))) == ("customer" in values)
    assert process.accept(_OWN, world.view("a", 1)).status == "duplicate"


def test_a_listing_looks_at_wanted_events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _Flooded()
    process = world.cold()
    own = [world.view("victim", number) for number in range(5)]
    process.accept_many(_VIEW, own)
    assert process.retract(_VIEW, own[0])
    looked_at: list[str] = []
    digest = EventIdentity.digest

    def counted(identity: EventIdentity, values: Any) -> bytes:
        looked_at.append(values["customer"]["S"])
        return digest(identity, values)

    monkeypatch.setattr(EventIdentity, "digest", counted)
    assert [view["id"] for view in process.events(_VIEW, {"customer": "victim"})] == [1, 2, 3, 4]
    assert [view["id"] for view in process.events(_VIEW, {"id": 299})] == [299]
    assert looked_at == 6 * ["victim"] + ["flooder"]


def _views(clock: VirtualClock, minutes: range, each: int = 20) -> list[dict[str, Any]]:
    return [{"url": str(n), "at": int(clock()) // 60 * 60 - 60 * minute} for minute in minutes for n in range(each)]


def test_logs_used_longest_ago_are_forgotten_and_read_again(
    site: Site, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_writes, "MOST_EVENTS", _MOST)
    for minute in range(60):
        counters.accept_many(_SMALL_VIEW, _views(site.clock, range(minute, minute + 1)))
        logs = ChunkLogs.of_table(counters._table)
        assert logs._total == sum(len(log.places) + 8 for log in logs._logs.values()) <= _MOST

    outcomes = counters.accept_many(_SMALL_VIEW, _views(site.clock, range(60)))

    assert {outcome.status for outcome in outcomes} == {"duplicate"}


def test_puts_after_the_chunk_of_another_look_first(site: Site) -> None:
    own, other, usage = site.process(), site.process(), site.table.usage

    def accept(by: Counters, url: str) -> int:
        """How many requests it takes."""
        before = usage.calls
        [outcome] = by.accept_many(_SMALL_VIEW, [{"url": url, "at": int(site.clock())}])
        assert outcome.status == "accepted"
        return int(usage.calls - before)

    accept(own, "first")
    assert [accept(own, f"alone {n}") for n in range(3)] == [1, 1, 1]
    accept(other, "another")
    accept(own, "refused")
    assert [accept(own, f"after {n}") for n in range(_WARY + 2)] == [2] * _WARY + [1, 1]


def test_events_of_one_partition_key_are_side_by_side_in_a_chunk(site: Site, counters: Counters) -> None:
    mixed = [{"url": f"/{n % 7}", "id": n, "at": int(site.clock())} for n in range(100)]
    counters.accept_many(_HIT, mixed)
    [chunk] = [item[CHUNK] for item in site.table.items() if CHUNK in item]
    urls = [row.values["url"]["S"] for row in decode_chunk(chunk).all_rows()]
    assert urls == sorted(urls)
    assert len(set(urls)) == 7


def test_one_event_has_the_time_that_its_log_takes() -> None:
    world = _Flooded()
    world.seconds_per_query = LONGEST_REQUEST

    assert world.cold().accept(_VIEW, world.view("other", 0)).status == "accepted"
