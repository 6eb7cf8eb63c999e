"""Packed events at the door and over any history: what is refused, what one chunk takes, and what a log comes to."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Counters, Event, InvalidArgumentError, Packed, RejectedEventError
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._declarations.sources import EventIdentity
from dynamodb_counters._items.chunks import Chunk, decode_chunk
from dynamodb_counters._items.schema import CHUNK, LAYOUT
from dynamodb_counters._registry import Layouts
from dynamodb_counters._table import ending_at
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters._writes.chunk_writes import _WARY, ChunkLogs
from simulation.faults.hooked_client import HookedClient, once
from simulation.memory.memory_client import paginator
from simulation.world import World

_VIEW = Event("view", pk="URL#{url}", sk="T#{at}#N#{n}", packed=Packed("at"))
_SALE: Final = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{id}", packed=Packed("at"))
_LARGE_SALE = Event("sale", pk="SALE#{id}", sk="T#{at}", packed=Packed("at"))
_NOISE = random.Random(1).randbytes(250_000).hex()
"""Hexadecimal digits: 1,800 take a kilobyte, compressed."""


def _nested(levels: int, value: Any = "x") -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


_BAD: dict[str, Any] = {
    "32 levels": _nested(32),
    "thousands of levels": _nested(5000),
    "an empty set inside": [{"a": set()}],
    "a lone surrogate inside": [{"\ud800": "x"}],
}


@pytest.mark.parametrize("bad", _BAD.values(), ids=_BAD)
def test_values_that_no_item_can_hold_are_rejected_and_their_neighbors_are_not(counters: Counters, bad: Any) -> None:
    at = int(counters._table.clock())
    views = [{"url": "/", "at": at, "n": n, "note": note} for n, note in enumerate(["x", bad, _nested(31)])]

    first, second, third = counters.accept_many(_VIEW, views)

    assert (first.status, second.status, third.status) == ("accepted", "rejected", "accepted")
    assert str(second.reason).startswith("invalid note=")
    assert sorted(view["n"] for view in counters.events(_VIEW)) == [0, 2]


@pytest.mark.parametrize("values", [None, 3, "url", [1]])
@pytest.mark.parametrize("packed", [_VIEW.packed, None], ids=["packed", "plain"])
def test_values_that_are_no_mapping_are_refused(counters: Counters, packed: Packed | None, values: Any) -> None:
    event = Event("view", pk=_VIEW.pk, sk=_VIEW.sk, packed=packed)

    for call, error in ((counters.accept, RejectedEventError), (counters.retract, InvalidArgumentError)):
        with pytest.raises(error, match="invalid values="):
            call(event, values)


@pytest.mark.parametrize("packed", [_VIEW.packed, None], ids=["packed", "plain"])
def test_a_call_without_events_asks_for_nothing_and_who_only_reads_puts_nothing(
    site: World, packed: Packed | None
) -> None:
    event = replace(_VIEW, packed=packed)
    assert site.counters.accept_many(event, []) == []
    assert [outcome.status for outcome in site.counters.accept_many(event, [{}])] == ["rejected"]
    assert site.table.usage.calls == 0
    assert list(site.reader().events(event, {"url": "/"})) == []
    assert list(site.table.items()) == []


@pytest.mark.parametrize("is_same", [False, True])
def test_of_two_processes_that_begin_at_a_time_one_has_the_layout(site: World, is_same: bool) -> None:
    other = _SALE if is_same else replace(_SALE, packed=Packed("at", parts=2))
    first = Layouts(site.reached())
    client = HookedClient(site.table, once(["put_item"], lambda: first.require(other, puts=True)))

    with nullcontext() if is_same else pytest.raises(InvalidArgumentError):
        Layouts(site.reached(client)).require(_SALE, puts=True)
    assert len(list(site.table.items())) == 1
    first.require(other)


def test_a_layout_that_cannot_be_read_now_fails_the_events_and_no_more(site: World) -> None:
    def throttle(_: str, send: Any, request: dict[str, Any]) -> Any:
        if LAYOUT in str(request):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutItem")
        return send()

    events = [{"shop": "s", "at": int(site.clock()), "id": number} for number in range(2)]
    outcomes = site.reader(HookedClient(site.table, throttle)).accept_many(_SALE, events)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    assert site.reader().accept(_SALE, events[0]).status == "accepted"


def _sale(counters: Counters, kilobytes: int, number: str) -> dict[str, Any]:
    return {"id": number, "at": int(counters._table.clock()), "noise": _NOISE[: 1800 * kilobytes]}


def test_an_event_larger_than_a_chunk_has_one_of_its_own_if_it_is_not_too_large(site: World) -> None:
    counters = site.counters
    sales = [_sale(counters, size, str(size)) for size in (195, 1, 50, 1, 2)]
    large, *outcomes = counters.accept_many(_LARGE_SALE, sales)
    assert [outcome.status for outcome in outcomes] == ["accepted", "accepted", "duplicate", "accepted"]
    assert (large.status, "at most 190 KB" in str(large.reason)) == ("rejected", True)
    assert counters.accept(_LARGE_SALE, _sale(counters, 185, "185")).status == "accepted"
    assert counters.retract(_LARGE_SALE, _sale(counters, 0, "185"))
    chunks = [decode_chunk(item["_chunk"]) for item in site.table.items() if "_chunk" in item]
    assert [(chunk.rows, chunk.signs) for chunk in chunks] == [(1, "")] * 4 + [(1, "-")]


_PACKED = Packed("at", timedelta(minutes=10), parts=3, partition_by="shop", chunk_bytes=1024)
_SPREAD_SALE = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{till}", packed=_PACKED)

_KEYS = st.one_of(
    st.text(alphabet="#%~\0\x7f\n 2350é\u0301\U0001f600", max_size=4),
    st.sampled_from(["", "#", "%", "%~", "%23", "e\u0301", "é", "a" * 3000, "a" * 2999 + "b", "1"]),
    st.sampled_from([1, 0, -1, Decimal("1.0"), Decimal("1.50"), Decimal("1E+2"), Decimal("-0"), 10**37]),
)
_WHOLE = st.integers(-(10**37), 10**37)
_NOTES = st.one_of(st.none(), st.text(max_size=20), st.binary(max_size=300), _WHOLE, st.sets(_WHOLE, min_size=1))
_SALES = st.fixed_dictionaries({"shop": _KEYS, "till": _KEYS, "at": st.sampled_from([0, 0, 599, 600]), "note": _NOTES})


def _live(site: World) -> list[dict[str, Any]]:
    """Return the events that a log comes to, by its signs."""
    live: list[dict[str, Any]] = []
    for item in sorted(site.table.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"])):
        for row in decode_chunk(item["_chunk"]).all_rows() if "_chunk" in item else []:
            if row.sign == "+":
                live.append(dict(row.values))
            elif row.sign == "-":
                live.remove(dict(row.values))
    return live


def _key(sale: dict[str, Any]) -> tuple[str, str]:
    return _SPREAD_SALE._pk_template.render(sale), _SPREAD_SALE._sk_template.render(sale)


_ACTS = st.tuples(st.sampled_from(["accept", "accept", "retract"]), st.integers(0, 2), st.lists(_SALES, max_size=5))


@given(st.lists(_ACTS, max_size=10))
def test_any_history_comes_to_what_a_dict_comes_to(history: list[tuple[str, int, list[dict[str, Any]]]]) -> None:
    site, number = World(founds=False), count()
    site.table.page_items = 2
    begin = int(site.clock()) // 600 * 600 - 600
    processes = [site.reader() for _ in range(3)]
    there: dict[tuple[str, str], dict[str, Any] | None] = {}
    for act, index, drawn in history:
        sales = [{**sale, "at": begin + sale["at"], "n": next(number)} for sale in drawn]
        if act == "retract":
            for sale in sales:
                # Only the key decides which one is meant.
                result = processes[index].retract(_SPREAD_SALE, {**sale, "note": "?"})
                assert result == (there.get(_key(sale)) is not None)
                there[_key(sale)] = None
            continue
        expected = []
        for sale in sales:
            expected.append("duplicate" if _key(sale) in there else "accepted")
            there.setdefault(_key(sale), sale)
        outcomes = processes[index].accept_many(_SPREAD_SALE, sales)
        assert [outcome.status for outcome in outcomes] == expected

    live = [sale for sale in there.values() if sale is not None]
    assert sorted(int(row["n"]["N"]) for row in _live(site)) == sorted(sale["n"] for sale in live)
    assert {outcome.status for outcome in site.reader().accept_many(_SPREAD_SALE, live)} <= {"duplicate"}


# Logs in a process: what it reads when it knows nothing, remembers, forgets, and how it writes


_MINUTES: Final = Packed("at", bucket=timedelta(minutes=1))
_SMALL: Final = replace(_MINUTES, chunk_bytes=1024)
_CUSTOMER_VIEW: Final = Event("view", pk="CUSTOMER#{customer}", sk="T#{at}#ID#{id}", packed=_SMALL)
_OWN: Final = replace(_CUSTOMER_VIEW, packed=replace(_SMALL, tenant="customer"))
_CHUNKS: Final = 300
_SMALL_VIEW = Event("view", pk="URL#{url}", sk="T#{at}", packed=_MINUTES)
_HIT = Event("hit", pk="URL#{url}", sk="T#{at}#ID#{id}", packed=_MINUTES)
_MOST = 500


class _Flooded(World):
    """A table whose current bucket has so many chunks; each of its processes counts the chunks that it reads."""

    def __init__(self, event: Event = _CUSTOMER_VIEW, chunks: int = _CHUNKS) -> None:
        super().__init__(founds=False)
        self.chunks_read: list[str] = []
        self.seconds_per_query = 0.0
        writer = self.reader()
        for number in range(chunks):
            assert writer.accept(event, self.view("flooder", number)).status == "accepted"

    def view(self, customer: str, number: int, earlier: int = 0) -> dict[str, Any]:
        return {"customer": customer, "at": int(self.clock.now) // 60 * 60 - earlier, "id": number}

    def cold(self) -> Counters:
        client: Any = HookedClient(self.table, self._read)
        client.get_paginator = lambda operation: paginator(getattr(client, operation))
        process = self.reader(client)
        # Threads would share the clock: what one log takes, another one would lack.
        vars(process._table)["threads"] = 1
        return process

    def _read(self, name: str, send: Any, _: dict[str, Any]) -> Any:
        answer = send()
        if name == "query":
            self.clock.advance(self.seconds_per_query)
            self.chunks_read += [item["pk"]["S"] + item["sk"]["S"] for item in answer["Items"] if "_chunk" in item]
        return answer


def test_a_look_builds_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _Flooded(chunks=3)
    monkeypatch.setattr(Chunk, "all_rows", None)

    outcomes = world.cold().accept_many(_CUSTOMER_VIEW, [world.view("flooder", number) for number in range(4)])

    assert [outcome.status for outcome in outcomes] == 3 * ["duplicate"] + ["accepted"]


def test_a_look_ends_with_the_time_and_goes_on_from_there() -> None:
    world = _Flooded()
    world.seconds_per_query = 1.0
    process = world.cold()
    own, other = world.view("victim", 1), world.view("victim", 2, earlier=120)

    statuses = []
    for _ in range(4):
        with ending_at(world.clock.now + 3):
            statuses.append([outcome.status for outcome in process.accept_many(_CUSTOMER_VIEW, [other, own])])

    assert statuses[0] == ["accepted", "failed"]
    assert statuses[-1] == ["duplicate", "duplicate"]
    assert ["duplicate", "accepted"] in statuses
    assert len(world.chunks_read) <= len(set(world.chunks_read)) + len(statuses)


@pytest.mark.parametrize("chunks", [0, 50, _CHUNKS])
def test_a_tenant_reads_no_chunk_of_another(chunks: int) -> None:
    world = _Flooded(_OWN, chunks)

    first, second = world.cold(), world.cold()
    assert first.accept(_OWN, world.view("victim", 1)).status == "accepted"
    assert second.accept(_OWN, world.view("victim", 1)).status == "duplicate"
    assert [view["id"] for view in second.events(_OWN, {"customer": "victim"})] == [1]
    assert len(world.chunks_read) == 2
    assert not any("flooder" in key for key in world.chunks_read)


def test_the_buckets_of_one_tenant_take_turns_with_those_of_others() -> None:
    world = _Flooded(_OWN, 0)
    process = world.cold()
    flood = [world.view("flooder", number, earlier=60 * number) for number in range(100)]
    order: list[str] = []

    def loop(work: Any, keys: Any) -> list[Any]:
        order.extend(key.part for key in keys)
        return [work(key) for key in keys]

    process._table.__dict__["each"] = loop
    outcomes = process.accept_many(_OWN, [*flood, world.view("victim", 1)])

    assert {outcome.status for outcome in outcomes} == {"accepted"}
    assert order.index("0#victim") == 1


def test_names_of_tenants_lead_into_no_other_log() -> None:
    world = _Flooded(_OWN, 0)
    process = world.cold()
    with pytest.raises(InvalidArgumentError, match="invalid customer=None"):
        process.events(_OWN)
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
    process.accept_many(_CUSTOMER_VIEW, own)
    assert process.retract(_CUSTOMER_VIEW, own[0])
    looked_at: list[str] = []
    digest = EventIdentity.digest

    def counted(identity: EventIdentity, values: Any) -> bytes:
        looked_at.append(values["customer"]["S"])
        return digest(identity, values)

    monkeypatch.setattr(EventIdentity, "digest", counted)
    assert [view["id"] for view in process.events(_CUSTOMER_VIEW, {"customer": "victim"})] == [1, 2, 3, 4]
    assert [view["id"] for view in process.events(_CUSTOMER_VIEW, {"id": 299})] == [299]
    assert looked_at == 6 * ["victim"] + ["flooder"]


def test_logs_used_longest_ago_are_forgotten_and_read_again(
    site: World, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_writes, "MOST_EVENTS", _MOST)
    now = int(site.clock()) // 60 * 60
    views = [[{"url": str(n), "at": now - 60 * minute} for n in range(20)] for minute in range(60)]
    for some in views:
        counters.accept_many(_SMALL_VIEW, some)
        logs = ChunkLogs.of_table(counters._table)
        assert logs._total == sum(len(log.chunks) + 8 for log in logs._logs.values()) <= _MOST
    again = counters.accept_many(_SMALL_VIEW, [view for some in views for view in some])
    assert {outcome.status for outcome in again} == {"duplicate"}


def test_puts_after_the_chunk_of_another_look_first(site: World) -> None:
    own, other, usage = site.reader(), site.reader(), site.table.usage

    def accept(by: Counters, url: str) -> int:
        """Return how many requests it takes."""
        before = usage.calls
        [outcome] = by.accept_many(_SMALL_VIEW, [{"url": url, "at": int(site.clock())}])
        assert outcome.status == "accepted"
        return int(usage.calls - before)

    accept(own, "first")
    assert [accept(own, f"alone {n}") for n in range(3)] == [1, 1, 1]
    accept(other, "another")
    accept(own, "refused")
    assert [accept(own, f"after {n}") for n in range(_WARY + 2)] == [2] * _WARY + [1, 1]


def test_events_of_one_partition_key_are_side_by_side_in_a_chunk(site: World, counters: Counters) -> None:
    mixed = [{"url": f"/{n % 7}", "id": n, "at": int(site.clock())} for n in range(100)]
    counters.accept_many(_HIT, mixed)
    [chunk] = [item[CHUNK] for item in site.table.items() if CHUNK in item]
    urls = [row.values["url"]["S"] for row in decode_chunk(chunk).all_rows()]
    assert urls == sorted(urls)
    assert len(set(urls)) == 7


def test_one_event_has_the_time_that_its_log_takes() -> None:
    world = _Flooded()
    world.seconds_per_query = LONGEST_REQUEST

    assert world.cold().accept(_CUSTOMER_VIEW, world.view("other", 0)).status == "accepted"
