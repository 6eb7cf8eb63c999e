"""Mechanisms that keep packed events exact, one at a time: several processes, each with a cache, and one log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Aggregate, Attribute, Count, Counters, Event, Packed, Sum
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters.errors import InvalidArgumentError
from simulation.faults.hooked_client import HookedClient, once
from simulation.oracle.layout import rows_of
from simulation.world import World

RETENTION = timedelta(hours=1)
DAY = 86_400
SALE = Event(
    "sale", pk="SHOP#{shop}", sk="SALE#{at}#{id}", retention=RETENTION, packed=Packed("at", timedelta(minutes=10))
)
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"sales": Count(), "amount": Sum("amount")})
_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
_URLS = Aggregate("urls", _VIEW, pk="URL#{url}", sk="ALL", measures={"n": Count()})
_TAGS = Aggregate("tags", _VIEW, pk="TAG#{tags[]}", sk="CAT#{cats[]}", measures={"n": Count()})


class Log(World):
    """A table of packed events; processes that accept are made as needed."""

    def __init__(self, *declarations: Aggregate) -> None:
        super().__init__(*(declarations or (SALES,)))
        self.now = int(self.clock())

    def sale(self, number: int, amount: Any = 5) -> dict[str, Any]:
        return {"shop": "x", "at": self.now, "id": number, "amount": amount}

    def chunks(self) -> list[dict[str, Any]]:
        items = [dict(item) for item in self.table.items() if "_chunk" in item]
        return sorted(items, key=lambda item: str(item["sk"]["S"]))

    def rows(self) -> list[tuple[str, int, Any]]:
        """Sign, id and amount of all rows in the log."""
        rows = [row for chunk in self.chunks() for row in rows_of(chunk)]
        return [(sign, values["id"], values.get("amount")) for sign, values in rows]

    def counted(self, aggregate: Aggregate = SALES) -> dict[str, Any]:
        self.deliver_all()
        return dict(self.counters.get(aggregate, {"shop": "x"}).measures)


@pytest.fixture
def world() -> Log:
    return Log()


def _status(counters: Counters, *sales: dict[str, Any]) -> list[str]:
    return [outcome.status for outcome in counters.accept_many(SALE, sales)]


def _loss(times: int) -> Callable[..., Any]:
    """Return a hook that loses the answers to the first puts of a chunk."""
    losses = [times]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        answer = send()
        if name == "put_item" and "_chunk" in request["Item"] and losses[0]:
            losses[0] -= 1
            raise ReadTimeoutError(endpoint_url="http://lost")
        return answer

    return hook


def test_an_event_of_an_earlier_chunk_is_a_duplicate_to_a_process_that_has_just_started(world: Log) -> None:
    writer = world.reader()
    for number in range(4):
        assert _status(writer, world.sale(number)) == ["accepted"]
    assert _status(world.reader(), *map(world.sale, range(5))) == 4 * ["duplicate"] + ["accepted"]
    assert world.counted() == {"sales": 5, "amount": 25}


def test_a_chunk_overwrites_no_other(world: Log) -> None:
    stale, other = world.reader(), world.reader()
    assert _status(stale, world.sale(1)) == ["accepted"]
    assert _status(other, world.sale(2)) == ["accepted"]
    assert _status(stale, world.sale(3)) == ["accepted"]
    assert [number for _, number, _ in world.rows()] == [1, 2, 3]
    assert world.counted() == {"sales": 3, "amount": 15}


def test_rows_that_others_have_put_meanwhile_are_decided_again(world: Log) -> None:
    other = world.reader()
    hook = once(["put_item"], lambda: _status(other, world.sale(1), world.sale(2)), lambda put: "_chunk" in put["Item"])
    writer = world.reader(HookedClient(world.table, hook))
    assert _status(writer, world.sale(2), world.sale(3)) == ["duplicate", "accepted"]
    assert [number for _, number, _ in world.rows()] == [1, 2, 3]
    assert world.counted() == {"sales": 3, "amount": 15}


@pytest.mark.parametrize("losses", [1, 3])
def test_a_put_whose_answer_was_lost_is_known_by_its_batch_id(world: Log, losses: int) -> None:
    writer = world.reader(HookedClient(world.table, _loss(losses)))
    assert _status(writer, world.sale(1), world.sale(2)) == ["accepted", "accepted"]
    assert _status(writer, world.sale(2), world.sale(3)) == ["duplicate", "accepted"]
    assert len(world.rows()) == 3


def test_a_retraction_by_a_process_with_an_old_cache_finds_the_event(world: Log) -> None:
    stale = world.reader()
    assert _status(stale, world.sale(1)) == ["accepted"]
    assert _status(world.reader(), world.sale(2)) == ["accepted"]
    assert stale.retract(SALE, world.sale(2))
    assert world.counted() == {"sales": 1, "amount": 5}


def test_values_taken_back_are_those_of_the_log_not_of_the_caller(world: Log) -> None:
    assert _status(world.reader(), world.sale(1, amount=5), world.sale(2, amount=5)) == ["accepted", "accepted"]
    assert world.reader().retract(SALE, world.sale(1, amount=1000))
    again = [world.sale(2, amount=7), world.sale(3), world.sale(3, amount=7)]
    assert _status(world.reader(), *again) == ["duplicate", "accepted", "duplicate"]
    assert world.rows() == [("+", 1, 5), ("+", 2, 5), ("-", 1, 5), ("+", 3, 5)]
    assert world.counted() == {"sales": 2, "amount": 10}


def test_an_event_that_was_retracted_stays_so(world: Log) -> None:
    writer = world.reader()
    assert _status(writer, world.sale(1)) == ["accepted"]
    assert not writer.retract(SALE, world.sale(2))
    assert writer.retract(SALE, world.sale(1))
    for process in (writer, world.reader()):
        assert _status(process, world.sale(1), world.sale(2), world.sale(1, amount=7)) == 3 * ["duplicate"]
        assert not process.retract(SALE, world.sale(1))
    assert world.rows() == [("+", 1, 5), ("0", 2, None), ("-", 1, 5)]
    assert world.counted() == {"sales": 0, "amount": 0}


@pytest.mark.parametrize("deleted", [[0], [1], [0, 1]])
def test_a_bucket_with_a_hole_is_not_written(world: Log, deleted: list[int]) -> None:
    writer = world.reader()
    for number in range(3):
        assert _status(writer, world.sale(number)) == ["accepted"]
    # As TTL does, with no regard to the clock.
    for chunk in [world.chunks()[number] for number in deleted]:
        world.delete(chunk)
    rows = world.rows()
    assert _status(world.reader(), *map(world.sale, range(4))) == 4 * ["too_late"]
    assert _status(world.reader(), world.sale(9)) == ["too_late"]
    assert world.rows() == rows


def test_a_bucket_takes_no_events_long_before_its_chunks_expire(world: Log) -> None:
    begin = world.now // 600 * 600
    assert _status(world.reader(), world.sale(1)) == ["accepted"]
    [chunk] = world.chunks()
    too_late = begin + 600 + 3600
    assert int(chunk["ttl"]["N"]) == too_late + DAY
    world.clock.advance(too_late - world.clock() - 1)
    assert _status(world.reader(), world.sale(1), world.sale(2)) == ["duplicate", "accepted"]
    world.clock.advance(1)
    assert _status(world.reader(), world.sale(1), world.sale(3)) == ["too_late", "too_late"]


def _at_most(updates: int) -> Callable[..., Any]:
    """Return a hook that ends the test if there are more updates."""
    countdown = count(updates, -1)

    def hook(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        assert name not in ("update_item", "batch_execute_statement") or next(countdown)
        return send()

    return hook


def test_a_chunk_that_was_counted_is_left_out_when_the_batch_is_folded_again(world: Log) -> None:
    writer = world.reader()
    for first in (0, 10):
        sales = [world.sale(number) | {"shop": "xy"[number % 2]} for number in range(first, first + 4)]
        assert set(_status(writer, *sales)) == {"accepted"}
    chunks = [record for record in world.records() if "_chunk" in record["dynamodb"]["NewImage"]]
    # No checkpoint has moved: the watermarks of both groups refuse the longer batch.
    for batch in (chunks[:1], chunks, chunks):
        world.deliver(batch, by=world.process(HookedClient(world.table, _at_most(20))))
    for shop in "xy":
        assert world.counters.get(SALES, {"shop": shop}).measures == {"sales": 4, "amount": 20}


_LAYOUTS = (
    *(Packed("at", timedelta(minutes=1)), Packed("at", parts=2), Packed("id")),
    *(Packed("at", partition_by="shop"), Packed("at", tenant="shop")),
)
_OTHERS = [
    replace(SALE, sk="{at}#SALE#{id}"),
    *(replace(SALE, retention=retention) for retention in (timedelta(days=7), timedelta(minutes=30), None)),
    *(replace(SALE, packed=packed) for packed in _LAYOUTS),
]


@pytest.mark.parametrize("other", _OTHERS)
def test_another_layout_or_retention_is_refused(world: Log, other: Event) -> None:
    assert _status(world.reader(), world.sale(1)) == ["accepted"]
    rows = world.rows()
    for call in (
        lambda: world.reader().accept(other, world.sale(1)),
        lambda: world.reader().accept_many(other, [world.sale(2)]),
        lambda: world.reader().retract(other, world.sale(1)),
        lambda: list(world.reader().events(other, {"shop": "x"})),
        lambda: world.reader().erase(other, {"id": 1}, counts="keep"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"^invalid packed=.*; a name keeps its layout: give the chan"):
            call()
    assert world.rows() == rows
    assert _status(world.reader(), world.sale(1)) == ["duplicate"]


def test_chunk_size_and_tolerance_are_no_part_of_the_layout(world: Log) -> None:
    other = replace(SALE, packed=Packed("at", timedelta(minutes=10), chunk_bytes=1024, future_tolerance=None))
    assert _status(world.reader(), world.sale(1)) == ["accepted"]
    assert world.reader().accept(other, world.sale(1)).status == "duplicate"


def test_attributes_come_and_go_without_a_layout(world: Log) -> None:
    """A chunk names its columns: an event that was accepted before an attribute was declared has none."""
    before = replace(SALE, attributes={"shop": str, "at": int, "id": int, "amount": int})
    after = replace(SALE, attributes={**before.attributes, "till": Attribute(str, required=False)})  # type: ignore[dict-item]
    assert world.reader().accept(before, world.sale(1)).status == "accepted"
    assert world.reader().accept(after, world.sale(2) | {"till": "t1"}).status == "accepted"
    assert world.reader().accept(before, world.sale(3)).status == "accepted"
    read = {sale["id"]: sale.get("till") for sale in world.reader().events(after, {"shop": "x"}, consistent=True)}
    assert read == {1: None, 2: "t1", 3: None}
    tills = Aggregate("tills", after, pk="TILL#{till?none}", sk="ALL", measures={"n": Count()})
    counting = Log(tills)
    for sale in (counting.sale(1), counting.sale(2) | {"till": "t1"}, counting.sale(3)):
        assert counting.reader().accept(after if "till" in sale else before, sale).status == "accepted"
    counting.deliver_all()
    counts = {till: counting.counters.get(tills, {"till?none": till})["n"] for till in ("none", "t1")}
    assert counts == {"none": 2, "t1": 1}


def test_a_long_log_that_cannot_be_read_on_hides_no_chunk_of_ones_own(
    world: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_writes, "_PAGE", 2)
    other = world.reader()
    assert _status(other, world.sale(0)) == ["accepted"]
    faults = ["lost", "unreadable", ""]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        answer = send()
        if name == "put_item" and "_chunk" in request["Item"] and faults[0] == "lost":
            # The answer is lost, and others write more than a page.
            faults.pop(0)
            for number in range(5, 10):
                assert _status(other, world.sale(number)) == ["accepted"]
            raise ReadTimeoutError(endpoint_url="http://lost")
        if name == "query" and faults[0] == "unreadable" and len(answer["Items"]) == 2:
            faults[0] = "unreadable from now on"
        elif name == "query" and faults[0] == "unreadable from now on":
            faults[0] = ""
            raise ReadTimeoutError(endpoint_url="http://lost")
        return answer

    writer = world.reader(HookedClient(world.table, hook))
    assert _status(writer, world.sale(1), world.sale(2)) == ["accepted", "accepted"]
    assert _status(writer, world.sale(3)) == ["accepted"]
    assert faults[0] == ""
    assert sorted(number for _, number, _ in world.rows()) == [0, 1, 2, 3, *range(5, 10)]


def test_a_log_that_is_full_refuses_other_events_and_knows_its_own(world: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_writes, "MOST_EVENTS", 5)
    writer = world.reader()
    assert _status(writer, *map(world.sale, range(3))) == ["accepted"] * 3
    for process in (writer, world.reader()):
        outcomes = process.accept_many(SALE, [world.sale(number) for number in range(2, 8)])
        assert [outcome.status for outcome in outcomes][3:] == ["rejected"] * 3
        full = "its part of the bucket has 500,000 events, which is the most"
        assert {outcome.reason for outcome in outcomes[3:]} == {full}
    assert sorted(number for _, number, _ in world.rows()) == list(range(5))
    # The next bucket is another log, and what is in this one is taken back.
    assert writer.accept(SALE, world.sale(9) | {"at": world.now - 600}).status == "accepted"
    assert world.reader().retract(SALE, world.sale(4))
    with pytest.raises(InvalidArgumentError, match="which is the most"):
        world.reader().retract(SALE, world.sale(9))
    assert _status(world.reader(), world.sale(4), world.sale(5)) == ["duplicate", "rejected"]
    assert world.counted() == {"sales": 5, "amount": 25}


@pytest.mark.parametrize(
    ("url", "members"), [("x" * 390_000, 1), ("/", 200)], ids=["a text that fills the item", "40,000 groups"]
)
def test_an_event_that_asks_for_too_much_stops_nothing(url: str, members: int) -> None:
    world = World(_URLS, _TAGS)
    lists = {name: [f"{name}{number}" for number in range(members)] for name in ("tags", "cats")}
    for number, values in enumerate(({"tags": ["a"], "cats": ["b"], "url": "/"}, {**lists, "url": url}) * 2):
        world.accept(_VIEW, {"id": number, **values})
    world.deliver_all()
    # It waits for the one aggregate of which it asks too much; the other counts it.
    assert world.counters.get(_URLS, {"url": "/"}).measures == {"n": 4 if url == "/" else 2}
    assert world.counters.get(_TAGS, {"tags[]": "a", "cats[]": "b"}).measures == {"n": 2}
    assert ["invalid group" in entry.reason for entry in world.counters.quarantined()] == [True, True]
