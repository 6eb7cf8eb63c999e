"""Explanations on a table in memory: the lines of every kind of declaration, what is left out, and what differs."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter as Sums
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
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
    Sum,
    TableKeys,
    Window,
)
from simulation.counters_in_memory import CountersInMemory, counters_in_memory

SALE = Event("sale", key=("shop", "time", "id"), version="revision")
CLICK = Event("click", key=("ad", "time", "id"), packed=Packed(time="time", bucket=timedelta(minutes=10)))
ORDER = Items("order", pk="CUSTOMER#{customer}", sk="ORDER#{order}")
SHOPS = Aggregate("shops", SALE, by="shop", sales=Count(), taken=Sum("price"))
BIG = Aggregate("big", SALE, by="shop", where=Attr("price").ge(10), taken=Sum("price"))
RECENT = Window("recent", SALE, pk="SHOP#{shop}", time="time", retention=timedelta(days=7))
STOCK = Counter("stock", by="shop")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def sale(number: int, price: Any = 5, *, shop: str = "a", revision: int = 1, **more: Any) -> dict[str, Any]:
    at = (NOW - timedelta(minutes=number)).isoformat()
    return {"shop": shop, "ad": shop, "time": at, "id": f"s{number}", "price": price, "revision": revision, **more}


def kinds(lines: Iterable[Any]) -> Sums[str]:
    return Sums(line.kind for line in lines)


def adds_up(counters: CountersInMemory, declaration: Any, values: dict[str, str], **more: Any) -> dict[str, Any]:
    """The numbers of a group, once its lines were found to add up to it without a difference."""
    found = counters.explain(declaration, values, scan=True, **more)
    sums: Sums[str] = Sums()
    for line in found.lines():
        sums.update(dict(line.adds))
    assert {name: number for name, number in sums.items() if number} == found.numbers
    assert not found.difference, found.rest
    return dict(found.numbers)


def test_the_lines_of_a_group_are_its_events_by_key_and_add_up_to_it() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(2, 7), sale(1, 5), sale(3, 1, shop="b")])
        found = counters.explain(SHOPS, shop="a")
        assert found.numbers == {"sales": 2, "taken": 12}
        assert [(line.key["id"], dict(line.adds)) for line in found.lines()] == [
            ("s2", {"sales": 1, "taken": 7}),
            ("s1", {"sales": 1, "taken": 5}),
        ]
        [(_, record)] = found.position.items()
        assert record.isdecimal()


@pytest.mark.parametrize("event", [SALE, CLICK], ids=["one by one", "packed"])
def test_an_erased_event_that_stays_counted_is_a_difference_with_what_may_be_its_reason(event: Event) -> None:
    shops = replace(SHOPS, source=event)
    with counters_in_memory([shops], now=NOW) as counters:
        counters.accept_many(event, [sale(1), sale(2)])
        counters.erase(event, {"id": "s1"}, counts="keep")
        counters.accept(event, sale(3))
        found = counters.explain(shops, {"shop": "a"}, scan=True)
        assert found.numbers == {"sales": 3, "taken": 15}
        assert kinds(found.lines()) == {"counted": 2, "difference": 1}
        [rest] = found.rest
        assert (dict(rest.adds), "been erased" in rest.reason) == ({"sales": 1, "taken": 5}, True)


@pytest.mark.parametrize("amount", [-3, 2])
def test_a_group_that_was_changed_by_hand_shows_exactly_that_as_a_difference(amount: int) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        [place] = [item for item in counters._tables[0].items() if item.get("_type") == {"S": "shops"}]
        counters.client.update_item(
            TableName=counters.table_name,
            Key={name: place[name] for name in ("pk", "sk")},
            UpdateExpression="ADD sales :amount",
            ExpressionAttributeValues={":amount": {"N": str(amount)}},
        )
        found = counters.explain(SHOPS, shop="a")
        assert found.difference == {"sales": amount}
        assert found.numbers["sales"] == 2 + amount
        assert [line.reason for line in found.rest] == ["nothing explains it: verify, and repair"]


def test_a_retracted_event_is_no_line_and_a_replaced_one_is_its_latest_version() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        counters.accept(SALE, sale(2, 9, revision=2))
        counters.retract(SALE, sale(1))
        assert [dict(line.adds) for line in counters.explain(SHOPS, shop="a").lines()] == [{"sales": 1, "taken": 9}]


def test_rows_of_packed_events_that_were_taken_back_stand_with_what_took_them_back() -> None:
    clicks = Aggregate("clicks", CLICK, by="ad", clicks=Count(), paid=Sum("price"))
    with counters_in_memory([clicks], now=NOW) as counters:
        counters.accept_many(CLICK, [sale(1), sale(2), sale(11), sale(1, shop="b")])
        counters.retract(CLICK, sale(11))
        counters.retract(CLICK, sale(30))
        found = counters.explain(clicks, ad="a")
        assert found.numbers == {"clicks": 2, "paid": 10}
        assert kinds(found.lines()) == {"counted": 3, "taken back": 1, "left out": 1}
        assert {line.reason for line in found.lines()} == {"", "it was retracted", "it was retracted before it came"}


def test_events_that_where_leaves_out_or_that_wait_have_their_reasons() -> None:
    pace = Window("pace", SALE, by="shop", time="time", retention=timedelta(days=3))
    with counters_in_memory([BIG, pace], now=NOW, quarantine="keep") as counters:
        counters.accept(SALE, sale(-20))
        counters.accept_many(SALE, [sale(1), sale(2, 10), sale(3, "free"), sale(0, 10)])
        lines = {line.key["id"]: line for line in counters.explain(BIG, shop="a").lines()}
        assert {name: (line.kind, line.reason) for name, line in lines.items()} == {
            "s1": ("left out", "the declaration's `where` leaves it out"),
            "s2": ("counted", ""),
            "s0": ("counted", ""),
            "s3": ("left out", "the declaration's `where` leaves it out"),
            "s-20": ("left out", "the declaration's `where` leaves it out"),
        }
        found = counters.explain(pace, shop="a", start=NOW - timedelta(hours=1), end=NOW + timedelta(hours=2))
        assert found.numbers == {"total": 4}
        assert kinds(found.lines()) == {"counted": 5, "waiting": 1}
        [waits] = [line for line in found.lines() if line.kind == "waiting"]
        assert dict(waits.adds) == {"total": -1}
        assert "in the future" in waits.reason


def test_an_event_that_cannot_be_counted_is_left_out_with_the_reason() -> None:
    with counters_in_memory([SHOPS], now=NOW, quarantine="keep") as counters:
        counters.accept_many(SALE, [sale(1), sale(2, "free")])
        [_, other] = sorted(counters.explain(SHOPS, shop="a").lines(), key=lambda line: line.kind)
        assert (other.kind, other.key["id"], dict(other.adds)) == ("left out", "s2", {})
        assert "attribute 'price' is not a number" in other.reason


EVERYTHING: list[Any] = [
    SHOPS,
    Window("pace", SALE, by="shop", time="time", retention=timedelta(days=3)),
    Distinct("buyers", SALE, by="shop", member="buyer", pages=True),
    Aggregate("level", SALE, by=("shop", "buyer"), n=Count(), taken=Sum("price")),
    Percentiles("prices", SALE, by="shop", attribute="price"),
    Extremes("ends", SALE, by="shop", attribute="price"),
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
            one = sale(number, draw.randint(1, 40), shop=shop, revision=draw.randint(1, 5))
            one |= {"buyer": draw.choice("xyz"), "tags": draw.sample(["r", "g", "b"], draw.randint(0, 3))}
            act = draw.random()
            if act < 0.7:
                counters.accept(SALE, one)
            elif act < 0.8:
                counters.record_once(SALE, one, [SHOPS])
            elif act < 0.9:
                counters.retract(SALE, one)
            else:
                counters.increment(STOCK, shop=shop, amount=draw.randint(-2, 3))
        for declaration in EVERYTHING:
            compare(counters, declaration)


def compare(counters: CountersInMemory, declaration: Any) -> None:
    """Every group adds up, to what is read of it."""
    span = {"start": NOW - timedelta(hours=1), "end": NOW + timedelta(minutes=1)}
    for shop in "ab":
        fields = getattr(declaration, "fields", ("shop",))
        values = {"shop": shop} if "shop" in fields else {"tags[]": "r"} if declaration.name == "tags" else {}
        numbers = adds_up(counters, declaration, values, **(span if isinstance(declaration, Window) else {}))
        if declaration is SHOPS:
            assert numbers == {name: n for name, n in counters.get(SHOPS, shop=shop).measures.items() if n}
        elif isinstance(declaration, Window):
            count = counters.window(declaration, shop=shop).between(span["start"], span["end"]).count
            assert numbers.get("total", 0) == count
        elif isinstance(declaration, Distinct):
            assert numbers.get("distinct", 0) == counters.get(declaration, shop=shop)["distinct"]
        elif isinstance(declaration, Percentiles):
            assert sum(numbers.values()) == counters.distribution(declaration, shop=shop).count


def test_items_of_a_source_table_are_explained_by_their_keys() -> None:
    orders = Items("order", pk="{customer}", sk="{order}", keys=TableKeys("owner", "range"))
    spent = Aggregate("spent", orders, by="customer", spent=Sum("price"))
    with counters_in_memory([spent], now=NOW) as counters:
        counters.table.put_item(Item={"owner": "ann", "range": "1", "price": 5})
        counters.table.put_item(Item={"owner": "ann", "range": "2", "price": 6})
        counters.table.put_item(Item={"owner": "bob", "range": "1", "price": 7})
        assert adds_up(counters, spent, {"customer": "ann"}) == {"spent": 11}
        keys = [dict(line.key) for line in counters.explain(spent, customer="ann", scan=True).lines()]
        assert keys == [{"owner": "ann", "range": "1"}, {"owner": "ann", "range": "2"}]


def test_a_scan_is_refused_with_its_price_unless_it_is_asked_for() -> None:
    site = Aggregate("site", SALE, taken=Sum("price"))
    with counters_in_memory([site, SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        with pytest.raises(InvalidArgumentError, match="expected True, for a Scan that takes 1 read units"):
            counters.explain(site)
        assert counters.explain(site, scan=True).numbers == {"taken": 5}
        assert counters.explain(SHOPS, shop="a").numbers == {"sales": 1, "taken": 5}


def test_events_of_other_partitions_are_not_read() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(number, shop="b") for number in range(50)])
        counters.accept(SALE, sale(1))
        queried = list[Any]()
        asked = counters._memory.query

        def query(**request: Any) -> Any:
            answer = asked(**request)
            queried.extend(item for item in answer["Items"] if item.get("_type") == {"S": "sale"})
            return answer

        counters._memory.query = query  # type: ignore[method-assign]
        assert counters.explain(SHOPS, shop="a").numbers == {"sales": 1, "taken": 5}
        assert len(queried) == 1


def test_only_declarations_with_groups_are_explained() -> None:
    level = Aggregate("level", SALE, by=("shop", "id"), n=Count())
    with counters_in_memory([level], now=NOW) as counters:
        for refused in (SALE, "level", STOCK):
            with pytest.raises(InvalidArgumentError, match="expected an Aggregate of events or items, Window, Dis"):
                counters.explain(refused, shop="a")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="values for shop"):
            counters.explain(level)


def program() -> str:
    page = (Path(__file__).parents[3] / "docs" / "explain.md").read_text(encoding="utf-8")
    [found] = re.findall(r"```python\n(import hashlib.*?)```", page, re.DOTALL)
    return str(found)


def test_the_program_of_the_docs_recomputes_the_sum_from_the_file_and_finds_a_change(tmp_path: Path) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(number, Decimal("0.1") * number) for number in range(1, 9)])
        lines = list(counters.explain(SHOPS, shop="a").file())
        assert lines == list(counters.explain(SHOPS, shop="a").file())
    checked = tmp_path / "check.py"
    checked.write_text(program(), encoding="utf-8")
    assert len([line for line in program().splitlines() if line]) <= 10

    def check(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "acme-2026-11.jsonl").write_bytes(text.encode())
        return subprocess.run([sys.executable, checked], cwd=tmp_path, capture_output=True, text=True, check=False)

    good = check("".join(lines))
    assert (good.returncode, good.stdout) == (0, "{'sales': '8', 'taken': '3.6'} is right\n"), good.stderr
    for changed in ("".join(lines[1:]), "".join(lines).replace("0.8", "0.9")):
        found = check(changed)
        assert (found.returncode, found.stderr) == (1, "the file was changed\n")


@pytest.mark.parametrize("by", [("ad", "time:day", "paid:day"), ("ad", "paid:day", "time:day")])
def test_packed_events_are_read_by_their_own_time_not_by_another_one(by: tuple[str, ...]) -> None:
    payments = Aggregate("payments", CLICK, by=by, paid=Sum("price"))
    with counters_in_memory([payments], now=NOW) as counters:
        counters.accept(CLICK, sale(1, paid="2026-11-25T08:00:00Z"))
        values = {"ad": "a", "time:day": "2026-11-20", "paid:day": "2026-11-25"}
        assert adds_up(counters, payments, values) == {"paid": 5}


def test_groups_that_begin_in_an_interval_are_explained_to_their_end() -> None:
    days = Aggregate("days", CLICK, by=("ad", "time:day"), n=Count())
    with counters_in_memory([days], now=NOW) as counters:
        counters.accept_many(CLICK, [sale(1), sale(700)])
        midnight = NOW.replace(hour=0)
        more = {"start": midnight, "end": midnight + timedelta(hours=6)}
        assert adds_up(counters, days, {"ad": "a"}, **more) == {"n": 2}


@pytest.mark.parametrize(
    ("declared", "start", "end", "message"),
    [
        (SHOPS, NOW, None, "invalid end=None: expected both ends of a span, or neither"),
        (SHOPS, NOW, NOW + HOUR, "expected no span: groups of 'shops' have no time"),
        (RECENT, None, None, "invalid start=None: expected a start and an end, as 'recent' counts over time"),
        (RECENT, NOW, NOW, "expected a moment after start"),
        (RECENT, NOW.replace(tzinfo=None), NOW, "expected a datetime with a time zone"),
        (RECENT, NOW.replace(year=1970), NOW.replace(year=9998), "expected a span of at most 100,000 buckets"),
    ],
)
def test_a_span_that_no_group_can_have_is_refused(declared: Any, start: Any, end: Any, message: str) -> None:
    refused = pytest.raises(InvalidArgumentError, match=re.escape(message))
    with counters_in_memory([SHOPS, RECENT], now=NOW) as counters, refused:
        counters.explain(declared, shop="a", start=start, end=end)


def test_groups_of_a_partition_in_write_shards_are_explained() -> None:
    spread = Aggregate("spread", SALE, pk="SHOP#{shop}", sk="BUYER#{buyer}", n=Count(), write_shards=3)
    with counters_in_memory([spread], now=NOW) as counters:
        counters.accept_many(SALE, [sale(number, buyer=str(number % 2)) for number in range(7)])
        assert adds_up(counters, spread, {"shop": "a"}) == {"n": 7}
        assert adds_up(counters, spread, {"shop": "a", "buyer": "1"}) == {"n": 3}
