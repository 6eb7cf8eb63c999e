"""Explanations on a table in memory: the lines of every kind of declaration, what is left out, and what differs."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections import Counter as Sums
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Count,
    Counter,
    Distinct,
    Event,
    Extremes,
    InvalidArgumentError,
    Items,
    Packed,
    Percentiles,
    Ranks,
    Sum,
    TableKeys,
    Window,
)
from dynamodb_counters._reads.events import UNEXPLAINED
from simulation.counters_in_memory import CountersInMemory, counters_in_memory

SALE = Event("sale", key=("shop", "time", "id"), version="revision")
CLICK = Event("click", key=("ad", "time", "id"), packed=Packed(time="time", bucket=timedelta(minutes=10)))
SHOPS = Aggregate("shops", SALE, by="shop", sales=Count(), taken=Sum("price"))
BIG = Aggregate("big", SALE, by="shop", where=Attr("price").ge(10), taken=Sum("price"))
RECENT = Window("recent", SALE, pk="SHOP#{shop}", time="time", retention=timedelta(days=7))
STOCK = Counter("stock", by="shop")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def sale(number: int, price: Any = 5, *, shop: str = "a", revision: int = 1, **more: Any) -> dict[str, Any]:
    at = (NOW - timedelta(minutes=number)).isoformat()
    return {"shop": shop, "ad": shop, "time": at, "id": f"s{number}", "price": price, "revision": revision, **more}


def adds_up(counters: CountersInMemory, declaration: Any, values: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return the numbers of a group, once its lines were found to add up to it without a difference."""
    answer = counters.explain(declaration, values, scan=True, **more)
    sums: Sums[str] = Sums()
    for line in answer.lines:
        sums.update(dict(line.adds))
    assert {name: number for name, number in sums.items() if number} == answer.numbers
    assert (answer.difference, answer.reason, answer.count) == ({}, "", len(answer.lines))
    return dict(answer.numbers)


@pytest.mark.parametrize("event", [SALE, CLICK], ids=["one by one", "packed"])
def test_an_erased_event_that_stays_counted_is_a_difference(event: Event) -> None:
    shops = replace(SHOPS, source=event)
    with counters_in_memory([shops], now=NOW) as counters:
        counters.accept_many(event, [sale(1), sale(2)])
        counters.erase(event, {"id": "s1"}, counts="keep")
        counters.accept(event, sale(3))
        answer = counters.explain(shops, {"shop": "a"}, scan=True)
        assert answer.numbers == {"sales": 3, "taken": 15}
        assert (answer.count, answer.difference) == (2, {"sales": 1, "taken": 5})
        assert answer.reason == UNEXPLAINED


@pytest.mark.parametrize("amount", [-3, 2])
def test_a_group_that_was_changed_by_hand_shows_exactly_that_as_a_difference(amount: int) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        counters._counting.spoil(SHOPS, "sales", amount, shop="a")
        answer = counters.explain(SHOPS, shop="a")
        assert answer.difference == {"sales": amount}
        assert answer.numbers["sales"] == 2 + amount
        assert answer.reason == UNEXPLAINED


def test_rows_of_packed_events_that_were_taken_back_stand_with_what_took_them_back() -> None:
    clicks = Aggregate("clicks", CLICK, by="ad", clicks=Count(), paid=Sum("price"))
    with counters_in_memory([clicks], now=NOW) as counters:
        counters.accept_many(CLICK, [sale(1), sale(2), sale(11), sale(1, shop="b")])
        counters.retract(CLICK, sale(11))
        counters.retract(CLICK, sale(30))
        answer = counters.explain(clicks, ad="a")
        assert answer.numbers == {"clicks": 2, "paid": 10}
        assert sorted(line.adds["clicks"] for line in answer.lines) == [-1, 1, 1, 1]
        assert not answer.difference


def test_events_that_where_leaves_out_are_no_lines_and_those_that_wait_are_a_difference() -> None:
    pace = Window("pace", SALE, by="shop", time="time", retention=timedelta(days=3))
    with counters_in_memory([BIG, SHOPS, pace], now=NOW, quarantine="keep") as counters:
        counters.accept(SALE, sale(-20))
        counters.accept_many(SALE, [sale(1), sale(2, 10), sale(3, "free"), sale(0, 10)])
        assert [line.key["id"] for line in counters.explain(BIG, shop="a").lines] == ["s2", "s0"]
        assert [line.key["id"] for line in counters.explain(SHOPS, shop="a").lines] == ["s2", "s1", "s0", "s-20"]
        answer = counters.explain(pace, {"shop": "a"}, start=NOW - HOUR, end=NOW + 2 * HOUR)
        assert (answer.numbers, answer.count, answer.difference) == ({"total": 4}, 5, {"total": -1})
        assert answer.reason == UNEXPLAINED


def test_a_chunk_that_cannot_be_read_is_no_line_and_hides_no_other() -> None:
    clicks = Aggregate("clicks", CLICK, by="ad", n=Count())
    with counters_in_memory([clicks], now=NOW, quarantine="keep") as counters:
        counters.accept_many(CLICK, [sale(1)])
        [chunk] = [item for item in counters.client.scan(TableName=counters.table_name)["Items"] if "_chunk" in item]
        spoiled = {**chunk, "sk": {"S": f"{chunk['sk']['S']}9"}, "_chunk": {"B": b"x"}}
        counters.client.put_item(TableName=counters.table_name, Item=spoiled)
        assert adds_up(counters, clicks, {"ad": "a"}) == {"n": 1}


def test_a_group_that_is_over_shows_what_it_counted_in_time() -> None:
    daily = Aggregate("daily", SALE, by=("shop", "time:day"), n=Count(), retention=timedelta(days=2))
    with counters_in_memory([daily], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        counters.clock.advance(timedelta(days=3))
        assert adds_up(counters, daily, {"shop": "a", "time:day": "2026-11-20"}) == {"n": 1}
        counters.accept(SALE, sale(2))
        answer = counters.explain(daily, {"shop": "a", "time:day": "2026-11-20"})
        assert (answer.numbers, answer.difference) == ({"n": 1}, {"n": -1})


def test_a_line_has_the_key_of_an_event_a_group_or_an_item_and_adds_something() -> None:
    shelves = Aggregate("shelves", STOCK, sk="ALL", pk="SHELVES", skus=Count())
    tickets = Aggregate("tickets", Items("ticket", where=Attr("ticket").exists()), pk="T", sk="ALL", n=Count())
    paid = Window("paid", SALE, pk="PAID", time="time", measure=Sum("price"))
    with counters_in_memory([STOCK, shelves, tickets, paid], now=NOW) as counters:
        counters.accept_many(SALE, [sale(2000), sale(2)])
        counters.increment(STOCK, {"shop": "a"}, amount=3)
        counters.table.put_item(Item={"pk": "T#1", "sk": "#", "ticket": True})
        answers = [counters.explain(declared, {}, scan=True).lines for declared in (shelves, tickets, paid)]
    event = {name: str(sale(2)[name]) for name in ("shop", "time", "id")}
    assert [[line.key for line in lines] for lines in answers] == [[{"shop": "a"}], [{"pk": "T#1", "sk": "#"}], [event]]


def test_a_window_is_explained_over_the_last_day_unless_a_span_is_given() -> None:
    with counters_in_memory([RECENT], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(60 * 30)])
        assert adds_up(counters, RECENT, {"shop": "a"}) == {"total": 1}
        assert adds_up(counters, RECENT, {"shop": "a"}, start=NOW - 48 * HOUR, end=NOW) == {"total": 2}
        assert adds_up(counters, RECENT, {"shop": "a"}, start=NOW - 48 * HOUR, end=NOW - 6 * HOUR) == {"total": 1}
    # One that retains less, as far back as it does.
    short = replace(RECENT, retention=3 * HOUR)
    with counters_in_memory([short], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(60 * 2)])
        assert adds_up(counters, short, {"shop": "a"}) == {"total": 2}


def test_the_first_lines_are_shown_and_all_add_up() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(number) for number in range(9)])
        answer = counters.explain(SHOPS, limit=2, shop="a")
        assert ([line.key["id"] for line in answer.lines], answer.count) == (["s8", "s7"], 9)
        assert (answer.numbers, answer.difference) == ({"sales": 9, "taken": 45}, {})
        none = counters.explain(SHOPS, limit=0, shop="a")
        assert (none.lines, none.count, none.difference) == ([], 9, {})


EVERYTHING: list[Any] = [
    SHOPS,
    Window("pace", SALE, by="shop", time="time", retention=timedelta(days=3)),
    Distinct("buyers", SALE, by="shop", member="buyer", pages=True),
    Aggregate("level", SALE, by=("shop", "buyer"), n=Count(), taken=Sum("price")),
    Percentiles("prices", SALE, by="shop", attribute="price"),
    Extremes("ends", SALE, by="shop", attribute="price"),
    Ranks("board", SALE, by="shop", score="price", least=-(10**6), most=10**6, places=2),
    ActiveMembers("active", SALE, by="shop", member="buyer", time="time", longest=timedelta(days=3)),
    Aggregate("days", SALE, by=("shop", "time:day"), n=Count()),
    Aggregate("site", SHOPS, most=Sum("taken"), shops=Count()),
    Aggregate("in_stock", STOCK, most=Sum("stock"), shops=Count()),
    Aggregate("tags", SALE, by="tags[]", n=Count(), pages=True),
    Aggregate("spread", SALE, pk="SPREAD#{shop}", sk="{buyer}", n=Count(), write_shards=3),
    Aggregate("paged", SALE, pk="PAGED#{shop}", sk="{buyer}", n=Count(), pages=True),
]


@pytest.mark.parametrize("seed", range(8))
def test_every_kind_of_declaration_adds_up_whatever_has_happened(seed: int) -> None:
    draw = random.Random(seed)
    with counters_in_memory([*EVERYTHING, STOCK], now=NOW, seed=seed) as counters:
        for _ in range(40):
            number, shop = draw.randrange(12), draw.choice("ab")
            event = sale(number, draw.randint(1, 40), shop=shop, revision=draw.randint(1, 5))
            event |= {"buyer": draw.choice("xyz"), "tags": draw.sample(["r", "g", "b"], draw.randint(0, 3))}
            act = draw.random()
            if act < 0.7:
                counters.accept(SALE, event)
            elif act < 0.8:
                counters.record_once(SALE, event, [SHOPS])
            elif act < 0.9:
                counters.retract(SALE, event)
            else:
                counters.increment(STOCK, shop=shop, amount=draw.randint(-2, 3))
        for declaration in EVERYTHING:
            compare(counters, declaration)


def compare(counters: CountersInMemory, declaration: Any) -> None:
    """Every group adds up, to what is read of it."""
    span = {"start": NOW - timedelta(hours=1), "end": NOW + timedelta(minutes=1)}
    more: dict[str, Any] = span if isinstance(declaration, Window) else {}
    fields = getattr(declaration, "fields", ("shop",))
    choices = {"shop": "ab", "buyer": "xyz", "tags[]": "rgb", "time:day": ["2026-11-20"]}
    for texts in product(*map(choices.__getitem__, fields)):
        values = dict(zip(fields, texts, strict=True))
        numbers = adds_up(counters, declaration, values, **more)
        if isinstance(declaration, Window):
            count = counters.window(declaration, values).between(span["start"], span["end"]).count
            assert numbers.get("total", 0) == count
        elif isinstance(declaration, Distinct):
            assert numbers.get("distinct", 0) == counters.get(declaration, values)["distinct"]
        elif isinstance(declaration, Percentiles):
            assert sum(numbers.values()) == counters.get(declaration, values).count
        elif isinstance(declaration, Ranks):
            assert sum(numbers.values()) == counters.at(declaration, values, rank=1).of
        elif isinstance(declaration, Aggregate):
            assert numbers == {name: n for name, n in counters.get(declaration, values).measures.items() if n}


def test_items_of_a_source_table_are_explained_by_their_keys() -> None:
    orders = Items("order", pk="{customer}", sk="{order}", keys=TableKeys("owner", "range"))
    spent = Aggregate("spent", orders, by="customer", spent=Sum("price"))
    with counters_in_memory([spent], now=NOW) as counters:
        for owner, order, price in (("ann", "1", 5), ("ann", "2", 6), ("bob", "1", 7)):
            counters.table.put_item(Item={"owner": owner, "range": order, "price": price})
        assert adds_up(counters, spent, {"customer": "ann"}) == {"spent": 11}
        keys = [dict(line.key) for line in counters.explain(spent, customer="ann", scan=True).lines]
        assert keys == [{"owner": "ann", "range": "1"}, {"owner": "ann", "range": "2"}]


def test_a_scan_is_refused_with_its_price_unless_it_is_asked_for() -> None:
    site = Aggregate("site", SALE, taken=Sum("price"))
    with counters_in_memory([site, SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        with pytest.raises(InvalidArgumentError, match="expected True, for a Scan that takes 1 read units"):
            counters.explain(site)
        with pytest.raises(InvalidArgumentError, match="shop=None: expected a value for"):
            counters.explain(SHOPS)
        assert counters.explain(site, scan=True).numbers == {"taken": 5}
        assert counters.explain(SHOPS, shop="a").numbers == {"sales": 1, "taken": 5}


def test_events_of_other_partitions_are_not_read() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(number, shop="b", note="x" * 10_000) for number in range(50)])
        counters.accept(SALE, sale(1))
        before = counters._memory.usage.reads
        assert counters.explain(SHOPS, shop="a").numbers == {"sales": 1, "taken": 5}
        assert counters._memory.usage.reads - before < 10


@pytest.mark.parametrize("by", [("ad", "time:day", "paid:day"), ("ad", "paid:day", "time:day")])
def test_packed_events_are_read_by_their_own_time_not_by_another_one(by: tuple[str, ...]) -> None:
    payments = Aggregate("payments", CLICK, by=by, paid=Sum("price"))
    with counters_in_memory([payments], now=NOW) as counters:
        counters.accept(CLICK, sale(1, paid="2026-11-25T08:00:00Z"))
        values = {"ad": "a", "time:day": "2026-11-20", "paid:day": "2026-11-25"}
        assert adds_up(counters, payments, values) == {"paid": 5}


LEVEL = Aggregate("level", SALE, by=("shop", "id"), n=Count())


@pytest.mark.parametrize(
    ("declared", "arguments", "message"),
    [
        (SHOPS, {"start": NOW, "end": NOW + HOUR}, "expected None: 'shops' is no Window"),
        (RECENT, {"start": NOW, "end": NOW}, "expected a moment after start"),
        (RECENT, {"start": NOW.replace(tzinfo=None), "end": NOW}, "expected a datetime with a time zone"),
        (RECENT, {"start": NOW - 8 * 24 * HOUR, "end": NOW}, "'recent' retains no more"),
        *((value, {}, "expected an Aggregate of events or items, Window, Dis") for value in (SALE, "level", STOCK)),
        (LEVEL, {}, "id=None: expected a value for"),
        (SHOPS, {"scan": "no"}, "invalid scan='no'"),
        *((SHOPS, {"limit": limit}, "invalid limit=") for limit in (None, "3", 1.5, -1, True)),
    ],
)
def test_what_no_group_can_have_is_refused(declared: Any, arguments: dict[str, Any], message: str) -> None:
    refused = pytest.raises(InvalidArgumentError, match=re.escape(message))
    with counters_in_memory([SHOPS, RECENT, LEVEL], now=NOW) as counters, refused:
        counters.explain(declared, **{"shop": "a", **arguments})


def test_memory_is_bounded_however_many_events_a_scan_finds() -> None:
    site = Aggregate("site", SALE, taken=Sum("price"))
    with counters_in_memory([site], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        [item] = [row for row in counters.client.scan(TableName="counters")["Items"] if row["_type"] == {"S": "sale"}]
        more = ({"Items": [{**item, "id": {"S": f"{page}-{n:07}"}} for n in range(10)]} for page in range(100))
        client: Any = counters._table.client
        paginator, scanner = client.get_paginator, SimpleNamespace(paginate=lambda **_: more)
        client.get_paginator = lambda name: scanner if name == "scan" else paginator(name)
        tracemalloc.start()
        try:
            answer = counters.explain(site, scan=True, limit=10)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (answer.count, len(answer.lines), answer.difference) == (1000, 10, {"taken": 5 - 1000 * 5})
    # A third of what all lines take.
    assert peak < 300_000


def meanwhile(counters: CountersInMemory, change: Callable[[], Any], *, ahead: bool = True) -> None:
    """Have something happen once, before or after the Query of the events."""
    memory: Any = counters._memory
    method = memory.query

    def query(**request: Any) -> Any:
        if "sale" not in repr(request):
            return method(**request)
        memory.query = method
        if ahead:
            change()
            return method(**request)
        answer = method(**request)
        change()
        return answer

    memory.query = query


@pytest.mark.parametrize(
    "change",
    [
        lambda counters: counters.accept(SALE, sale(3, 9)),
        lambda counters: counters.accept(SALE, sale(2, 9, revision=2)),
        lambda counters: counters.retract(SALE, sale(1)),
        lambda counters: counters.record_once(SALE, sale(3), [SHOPS]),
    ],
    ids=["accepted", "replaced", "retracted", "counted at once"],
)
def test_a_change_between_the_reads_is_a_difference(change: Callable[[Any], Any]) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        meanwhile(counters, lambda: change(counters), ahead=False)
        answer = counters.explain(SHOPS, shop="a")
        assert answer.count == 2
        assert (bool(answer.difference), answer.reason) == (True, UNEXPLAINED)
        assert counters.explain(SHOPS, shop="a").difference == {}


def test_a_change_that_both_the_lines_and_the_last_read_show_is_no_difference() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        meanwhile(counters, lambda: counters.accept(SALE, sale(2)))
        answer = counters.explain(SHOPS, shop="a")
        assert (answer.numbers, answer.count, answer.difference) == ({"sales": 2, "taken": 10}, 2, {})
