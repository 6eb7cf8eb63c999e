"""Groups in pages: exact whatever is delivered again, however pages split, and equal to an item per group."""

from __future__ import annotations

import random
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, InvalidArgumentError, Packed, Sum
from dynamodb_counters._commit.commit import PageSplits
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import BITS, is_full
from dynamodb_counters._items.bookkeeping import WRITE_UNIT_BYTES, item_bytes, write_units
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from simulation.counters_in_memory import counters_in_memory
from simulation.workbench import Workbench

START = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = Event("view", key=("url", "time", "client"), version="revision")
PACKED = Event("click", key=("url", "time", "client"), packed=Packed("time"))


def _event(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "url": f"/{rng.randrange(300)}" + "x" * rng.choice((0, 0, 5, 40)),
        "time": (START + timedelta(seconds=number)).isoformat(),
        "client": f"c{rng.randrange(20)}",
        "size": rng.randrange(2000),
        "revision": 1,
    }


def _pages(counters: Any) -> list[dict[str, Any]]:
    items = counters.client.scan(TableName=counters.table_name)["Items"]
    return [item for item in items if item["sk"]["S"].startswith(PAGE_PREFIX)]


def test_pages_of_a_large_batch_are_made_in_one_transaction_and_stay_whole() -> None:
    bench = Workbench([Aggregate("views", PACKED, by="url", pages=True)])
    events = [{**_event(random.Random(1), 1), "url": f"/{n}" + "x" * 30} for n in range(1000)]
    bench.counters.accept_many(PACKED, events)
    before = copy(bench.table.usage)
    bench.deliver(bench.records())
    pages = [item for item in bench.table.items() if item["sk"]["S"].startswith(PAGE_PREFIX)]
    written = sum(write_units(item_bytes(page)) for page in pages)
    assert len(pages) == 16
    assert any(map(is_full, pages))
    # Two units for each page that is made, and those of its update; the rest is the shard's.
    assert bench.table.usage.writes - before.writes <= 2 * len(pages) + written + 8


def test_a_page_that_is_written_for_few_groups_at_a_time_splits_at_one_write_unit() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    with counters_in_memory([views], now=START) as counters:
        for number in range(100):
            counters.accept(VIEW, {**_event(random.Random(1), number), "url": f"/{number}" + "x" * 30})
        pages = _pages(counters)
    assert not any(map(is_full, pages))


def test_a_listing_has_every_group_once() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    with counters_in_memory([views], now=START) as counters:
        counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": f"/{n}"} for n in range(1000)])
        listed = list(counters.groups(views))
    assert sorted(group.values["url"] for group in listed) == sorted(f"/{n}" for n in range(1000))


def test_a_page_that_a_process_has_read_is_found_at_once() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    bench = Workbench([views])
    bench.counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": f"/{n}" + "x" * 30} for n in range(2000)])
    for start in range(0, 2000, 20):
        bench.deliver(bench.records()[start : start + 20])
    cold = Counters(bench.table.name, client=bench.table, clock=bench.clock)  # type: ignore[arg-type]
    some = [f"/{n}" + "x" * 30 for n in random.Random(1).sample(range(2000), 100)]
    for url in some:
        cold.get(views, url=url)
    before = bench.table.usage.calls
    for url in some:
        cold.get(views, url=url)
    assert bench.table.usage.calls - before == len(some)


def test_a_page_takes_one_write_unit_and_is_half_full_at_least() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    with counters_in_memory([views], now=START) as counters:
        for number in range(800):
            counters.accept(VIEW, {**_event(random.Random(number), 1), "url": f"/{number}" + "x" * 20})
        sizes = [item_bytes(page) for page in _pages(counters)]
    assert max(sizes) <= WRITE_UNIT_BYTES
    assert sum(sizes) / len(sizes) > WRITE_UNIT_BYTES / 2


def test_a_text_that_is_longer_than_a_page_has_one_of_its_own() -> None:
    views = Aggregate("views", VIEW, by=("url", "client"), n=Count(), size=Sum("size"), pages=True)
    urls = ["x" * 8000, "é" * 4000, "#%~", "", "~abc", "=", "a=b", "/"]
    with counters_in_memory([views], now=START) as counters:
        events = [{**_event(random.Random(n), n), "url": url, "client": "c" + "#" * n} for n, url in enumerate(urls)]
        counters.accept_many(VIEW, events).raise_for_rejected()
        read = [counters.get(views, url=each["url"], client=each["client"]).measures for each in events]
        listed = {(group.values["url"], group.values["client"]) for group in counters.groups(views)}
    assert read == [{"n": 1, "size": each["size"]} for each in events]
    assert listed == {(each["url"], each["client"]) for each in events}


def test_a_sum_that_does_not_fit_leaves_the_other_groups_of_its_page_alone() -> None:
    sizes = Aggregate("sizes", VIEW, by="url", size=Sum("size"), pages=True)
    bench, delivered = Workbench([sizes]), 0
    for number, size in ((1, 10**38 - 1), (2, 5)):
        events = [{**_event(random.Random(1), number), "url": url, "size": size} for url in ("/a", "/b")]
        bench.counters.accept_many(VIEW, [events[0], {**events[1], "size": number}])
        # Both in one batch.
        records = bench.records()[delivered:]
        bench.deliver(records)
        delivered += len(records)
    entries = [entry.content for entry in bench.counters.quarantined()]
    read = [bench.counters.get(sizes, url=url)["size"] for url in ("/a", "/b")]
    assert read == [10**38 - 1, 3]
    assert [(entry["group"], entry["numbers"]) for entry in entries] == [(["/a"], {"size": "5"})]


def test_a_page_expires_with_all_of_its_groups() -> None:
    daily = Aggregate("daily", VIEW, by=("time:day", "url"), retention=timedelta(days=1), pages=True)
    with counters_in_memory([daily], now=START) as counters:
        counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": f"/{n}"} for n in range(200)])
        assert len(list(counters.groups(daily, {"time:day": "2026-01-01"}))) == 200
        counters.clock.advance(timedelta(days=10))
        with pytest.raises(InvalidArgumentError, match="a day whose retention, 1 day, 0:00:00, is not over"):
            list(counters.groups(daily, {"time:day": "2026-01-01"}))
        assert _pages(counters) == []


@pytest.mark.parametrize("missing", ["the new page", "the old one's change"])
def test_half_of_a_split_that_was_restored_stops_nothing(missing: str) -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    events = [{**_event(random.Random(1), 1), "url": f"/{n}" + "x" * 20} for n in range(40)]
    with counters_in_memory([views], now=START) as counters:
        counters.accept_many(VIEW, events[:10])
        [before] = _pages(counters)
        counters.accept_many(VIEW, events[10:])
        _, *new = sorted(_pages(counters), key=lambda page: str(page["sk"]["S"]))
        if missing == "the new page":
            for page in new:
                key = {name: page[name] for name in ("pk", "sk")}
                counters._memory.delete_item(TableName=counters.table_name, Key=key)
        else:
            counters._memory.put_item(TableName=counters.table_name, Item=before)
        held = {group.values["url"]: group["views"] for group in counters.groups(views)}
        cold = Counters(counters.table_name, client=counters.client, clock=counters.clock)
        counters.accept_many(VIEW, [{**each, "client": "new"} for each in events])
        wanted = {each["url"]: held.get(each["url"], 0) + 1 for each in events}
        assert {url: cold.get(views, url=url)["views"] for url in wanted} == wanted
        assert {group.values["url"]: group["views"] for group in counters.groups(views)} == wanted


def test_pages_that_expire_one_by_one_keep_no_one_waiting() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    over = Aggregate("over", views, urls=Count(), views=Sum("views"))
    events = [{**_event(random.Random(1), 1), "url": f"/{n}"} for n in range(250)]
    with counters_in_memory([views, over], now=START) as counters:
        counters.accept_many(VIEW, events)
        gone = max(_pages(counters), key=lambda page: str(page["sk"]["S"]))
        counters.client.delete_item(TableName=counters.table_name, Key={name: gone[name] for name in ("pk", "sk")})
        lost = {name[1:] for name in gone if name.startswith("=")}
        for client in (counters, Counters(counters.table_name, client=counters.client)):
            assert {each["url"] for each in events if not client.get(views, url=each["url"])["views"]} == lost
            assert {group.values["url"] for group in client.groups(views)} == {each["url"] for each in events} - lost
        counters.accept_many(VIEW, [{**each, "client": "later"} for each in events])
        assert {each["url"] for each in events if counters.get(views, url=each["url"])["views"] == 1} == lost
        assert counters.get(over).measures == {"urls": 250, "views": 500 - len(lost)}


def test_a_lost_page_splits_before_a_batch_with_more_groups_than_it_can_hold() -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    bench = Workbench([views])
    urls = [f"/{number}" for number in range(6000)]
    bench.counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": url} for url in urls[:2000]])
    bench.deliver(bench.records())
    page = next(item for item in bench.table.items() if item["sk"]["S"] == f"{PAGE_PREFIX}views#8")
    first, level = 1 << BITS - 1, int(page["_level"]["N"])
    bench.table.delete_item(TableName=bench.table.name, Key={name: page[name] for name in ("pk", "sk")})
    layout, counted = ItemLayout(views), len(bench.records())
    inside = [url for url in urls[2000:] if first <= layout.address((url,))[1] < first + (1 << BITS - level)]
    bench.counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": url} for url in inside])
    bench.deliver(bench.records()[counted:])
    assert len(inside) > 200
    assert {bench.counters.get(views, url=url)["views"] for url in inside} == {1}


def test_a_reader_asks_strongly_only_once_a_page_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    views = Aggregate("views", VIEW, by="url", pages=True)
    asked: list[tuple[bool, bool]] = []
    with counters_in_memory([views], now=START) as counters:
        counters.accept_many(VIEW, [{**_event(random.Random(1), 1), "url": f"/{n}"} for n in range(1000)])
        get = counters._memory.get_item

        def noted(**request: Any) -> Any:
            answer = get(**request)
            if "PAGE#" in request["Key"]["sk"]["S"]:
                asked.append((request["ConsistentRead"], "Item" in answer))
            return answer

        monkeypatch.setattr(counters._memory, "get_item", noted)
        guessed = 0
        for number in range(0, 1000, 17):
            asked.clear()
            Counters(counters.table_name, client=counters.client).get(views, url=f"/{number}")
            missing = [not found for _, found in asked]
            assert [strongly for strongly, _ in asked] == [any(missing[:index]) for index in range(len(asked))]
            guessed += len(asked) > 1
    assert guessed


def test_a_split_that_another_writer_outran_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, tries = Workbench([Aggregate("views", VIEW, by="url", pages=True)]), list[int]()

    def refused(*_: object) -> list[object]:
        tries.append(1)
        return []

    monkeypatch.setattr(PageSplits, "_divide", refused)
    bench.counters.accept_many(
        VIEW, [{**_event(random.Random(1), n), "url": f"/{n % 30}" + "x" * 30} for n in range(31)]
    )
    records = bench.records()
    for start in range(0, 30, 5):
        bench.deliver(records[start : start + 5])
    before = len(tries)
    bench.deliver(records[30:])
    assert len(tries) == before + 1
