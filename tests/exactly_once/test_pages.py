"""Groups in pages: exact whatever is delivered again, however pages split, and equal to an item per group."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, InvalidArgumentError, Packed, Sum
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import BITS, is_full
from dynamodb_counters._items.bookkeeping import WRITE_UNIT_BYTES, item_bytes, write_units
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from simulation.counters_in_memory import counters_in_memory
from simulation.faults.hooked_client import HookedClient
from simulation.world import World

START = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = Event("view", key=("url", "time", "client"), version="revision")
PACKED = Event("click", key=("url", "time", "client"), packed=Packed("time"))


VIEWS = Aggregate("views", VIEW, by="url", pages=True)


def _event(url: str, client: str = "c", **values: Any) -> dict[str, Any]:
    return {"url": url, "client": client, "time": START.isoformat(), "size": 7, "revision": 1, **values}


def _events(*numbers: int, length: int = 30, client: str = "c") -> list[dict[str, Any]]:
    return [_event(f"/{number}" + "x" * length, client) for number in numbers]


def _pages(world: Any) -> list[dict[str, Any]]:
    """Pages of a world, or of counters in memory."""
    items = (world.table if isinstance(world, World) else world._tables[0]).items()
    return sorted((item for item in items if item["sk"]["S"].startswith(PAGE_PREFIX)), key=lambda page: page["sk"]["S"])


def test_pages_of_a_large_batch_are_made_in_one_transaction_and_stay_whole() -> None:
    world = World(Aggregate("views", PACKED, by="url", pages=True))
    records = world.accept(PACKED, *_events(*range(1000)))
    before = world.table.usage.writes
    world.deliver(records)
    pages = _pages(world)
    written = sum(write_units(item_bytes(page)) for page in pages)
    assert len(pages) == 16
    assert any(map(is_full, pages))
    # Two units for each page that is made, and those of its update; the rest is the shard's.
    assert world.table.usage.writes - before <= 2 * len(pages) + written + 8


def test_a_page_that_is_written_for_few_groups_at_a_time_takes_one_write_unit_and_is_half_full_at_least() -> None:
    with counters_in_memory([VIEWS], now=START) as counters:
        for event in _events(*range(800), length=20):
            counters.accept(VIEW, event)
        pages = _pages(counters)
    sizes = [item_bytes(page) for page in pages]
    assert not any(map(is_full, pages))
    assert max(sizes) <= WRITE_UNIT_BYTES
    assert sum(sizes) / len(sizes) > WRITE_UNIT_BYTES / 2


def test_a_page_that_a_process_has_read_is_found_at_once() -> None:
    world = World(VIEWS)
    records = world.accept(VIEW, *(events := _events(*range(2000))))
    for start in range(0, 2000, 20):
        world.deliver(records[start : start + 20])
    cold = world.reader()
    for _ in range(2):
        before = world.table.usage.calls
        for event in events[::20]:
            cold.get(VIEWS, url=event["url"])
    assert world.table.usage.calls - before == 100


def test_a_text_that_is_longer_than_a_page_has_one_of_its_own() -> None:
    views = Aggregate("views", VIEW, by=("url", "client"), n=Count(), size=Sum("size"), pages=True)
    urls = ["x" * 8000, "é" * 4000, "#%~", "", "~abc", "=", "a=b", "/"]
    with counters_in_memory([views], now=START) as counters:
        events = [_event(url, "c" + "#" * n, size=n) for n, url in enumerate(urls)]
        counters.accept_many(VIEW, events).raise_for_rejected()
        read = [counters.get(views, url=each["url"], client=each["client"]).measures for each in events]
        listed = {(group.values["url"], group.values["client"]) for group in counters.groups(views)}
    assert read == [{"n": 1, "size": each["size"]} for each in events]
    assert listed == {(each["url"], each["client"]) for each in events}


def test_a_sum_that_does_not_fit_leaves_the_other_groups_of_its_page_alone() -> None:
    sizes = Aggregate("sizes", VIEW, by="url", size=Sum("size"), pages=True)
    world = World(sizes)
    for number, size in ((1, 10**38 - 1), (2, 5)):
        # Both in one batch.
        world.deliver(world.accept(VIEW, _event("/a", f"{number}", size=size), _event("/b", f"{number}", size=number)))
    entries = [entry.content for entry in world.counters.quarantined()]
    assert [world.counters.get(sizes, url=url)["size"] for url in ("/a", "/b")] == [10**38 - 1, 3]
    assert [(entry["group"], entry["numbers"]) for entry in entries] == [(["/a"], {"size": "5"})]


def test_a_page_expires_with_all_of_its_groups() -> None:
    daily = Aggregate("daily", VIEW, by=("time:day", "url"), retention=timedelta(days=1), pages=True)
    with counters_in_memory([daily], now=START) as counters:
        counters.accept_many(VIEW, _events(*range(200)))
        assert len(list(counters.groups(daily, {"time:day": "2026-01-01"}))) == 200
        counters.clock.advance(timedelta(days=10))
        with pytest.raises(InvalidArgumentError, match="a day whose retention, 1 day, 0:00:00, is not over"):
            list(counters.groups(daily, {"time:day": "2026-01-01"}))
        assert _pages(counters) == []


@pytest.mark.parametrize("missing", ["the new page", "the old one's change"])
def test_half_of_a_split_that_was_restored_stops_nothing(missing: str) -> None:
    events = _events(*range(40), length=20)
    with counters_in_memory([VIEWS], now=START) as counters:
        counters.accept_many(VIEW, events[:10])
        [before] = _pages(counters)
        counters.accept_many(VIEW, events[10:])
        _, *new = _pages(counters)
        if missing == "the new page":
            for page in new:
                key = {name: page[name] for name in ("pk", "sk")}
                counters._memory.delete_item(TableName=counters.table_name, Key=key)
        else:
            counters._memory.put_item(TableName=counters.table_name, Item=before)
        held = {group.values["url"]: group["views"] for group in counters.groups(VIEWS)}
        cold = Counters(counters.table_name, client=counters.client, clock=counters.clock)
        counters.accept_many(VIEW, [{**each, "client": "new"} for each in events])
        wanted = {each["url"]: held.get(each["url"], 0) + 1 for each in events}
        assert {url: cold.get(VIEWS, url=url)["views"] for url in wanted} == wanted
        assert {group.values["url"]: group["views"] for group in counters.groups(VIEWS)} == wanted


def test_pages_that_expire_one_by_one_keep_no_one_waiting() -> None:
    over = Aggregate("over", VIEWS, urls=Count(), views=Sum("views"))
    events = _events(*range(250), length=0)
    urls = {each["url"] for each in events}
    with counters_in_memory([VIEWS, over], now=START) as counters:
        counters.accept_many(VIEW, events)
        *_, gone = _pages(counters)
        counters.client.delete_item(TableName=counters.table_name, Key={name: gone[name] for name in ("pk", "sk")})
        lost = {name[1:] for name in gone if name.startswith("=")}
        for client in (counters, Counters(counters.table_name, client=counters.client)):
            assert {url for url in urls if not client.get(VIEWS, url=url)["views"]} == lost
            assert {group.values["url"] for group in client.groups(VIEWS)} == urls - lost
        counters.accept_many(VIEW, [{**each, "client": "later"} for each in events])
        assert {url for url in urls if counters.get(VIEWS, url=url)["views"] == 1} == lost
        assert counters.get(over).measures == {"urls": 250, "views": 500 - len(lost)}


def test_a_lost_page_splits_before_a_batch_with_more_groups_than_it_can_hold() -> None:
    world = World(VIEWS)
    world.deliver(world.accept(VIEW, *_events(*range(2000), length=0)))
    page = next(item for item in world.table.items() if item["sk"]["S"] == f"{PAGE_PREFIX}views#8")
    first, level = 1 << BITS - 1, int(page["_level"]["N"])
    world.delete(page)
    layout, urls = ItemLayout(VIEWS), (f"/{number}" for number in range(2000, 6000))
    inside = [url for url in urls if first <= layout.address((url,))[1] < first + (1 << BITS - level)]
    world.deliver(world.accept(VIEW, *map(_event, inside)))
    assert len(inside) > 200
    assert {world.counters.get(VIEWS, url=url)["views"] for url in inside} == {1}


def test_a_reader_asks_strongly_only_once_a_page_is_missing() -> None:
    world, asked, guessed = World(VIEWS), list[tuple[bool, bool]](), 0
    world.deliver(world.accept(VIEW, *(events := _events(*range(1000)))))

    def note(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        answer = send()
        if name == "get_item" and PAGE_PREFIX in request["Key"]["sk"]["S"]:
            asked.append((request["ConsistentRead"], "Item" in answer))
        return answer

    for event in events[::17]:
        asked.clear()
        world.reader(HookedClient(world.table, note)).get(VIEWS, url=event["url"])
        missing = [not found for _, found in asked]
        assert [strongly for strongly, _ in asked] == [any(missing[:index]) for index in range(len(asked))]
        guessed += len(asked) > 1
    assert guessed
