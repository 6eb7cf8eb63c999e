"""Groups in pages on every engine: counted, split, listed, incremented, reset, and left out one by one."""

from __future__ import annotations

from typing import Any

from dynamodb_counters import Aggregate, Count, Counters, Event, Sum
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from tests.integration.stores import Store
from tests.unit.fold.streams import Record, image, record

VIEW = Event("view", key=("url", "id"))
VIEWS = Aggregate("views", VIEW, by=("url", "client"), n=Count(), size=Sum("size"), pages=True)
BUSY = Aggregate("busy", VIEWS, by="client", urls=Count(), size=Sum("size"), pages=True)


def _view(number: int, url: str, size: int = 1) -> Record:
    return record(10**21 + number, image("view", url=url, client="c", size=size))


def _views(first: int, count: int, size: int = 1) -> list[Record]:
    return [_view(number, f"/{number % 100}" + "x" * 20, size) for number in range(first, first + count)]


def _pages(store: Store) -> list[Any]:
    return [item for item in store.items() if item["sk"]["S"].startswith(PAGE_PREFIX)]


def test_groups_in_pages_count_once_and_split(store: Store) -> None:
    records = _views(1, 150)
    store.deliver(records[:80], VIEWS, BUSY)
    store.deliver(records, VIEWS, BUSY)
    store.deliver(records, VIEWS, BUSY)
    cold = Counters(store.name, client=store.client, clock=store.clock)  # type: ignore[arg-type]
    wanted = {f"/{number}" + "x" * 20: 2 if 1 <= number <= 50 else 1 for number in range(100)}
    assert {url: cold.get(VIEWS, url=url, client="c")["n"] for url in list(wanted)[::9]} == dict(
        list(wanted.items())[::9]
    )
    listed = {group.values["url"]: group["n"] for _, group in store.counters.scan(VIEWS, consistent=True)}
    assert listed == wanted
    assert len([page for page in _pages(store) if "_level" in page]) >= 2


def test_increments_and_resets_of_groups_in_pages(store: Store) -> None:
    store.deploy(VIEWS)
    store.deliver(_views(1, 100), VIEWS)
    store.deliver(_views(101, 100), VIEWS)
    cold = Counters(store.name, client=store.client, clock=store.clock)  # type: ignore[arg-type]
    url = "/7" + "x" * 20
    assert cold.increment(VIEWS, url=url, client="c", amount={"n": 5, "size": 2}) == {"n": 7, "size": 4}
    assert cold.reset(VIEWS, url=url, client="c") == {"n": 7, "size": 4}
    assert store.counters.get(VIEWS, url=url, client="c", consistent=True).measures == {"n": 0, "size": 0}


def test_a_sum_that_does_not_fit_is_set_aside_alone(store: Store) -> None:
    store.deliver(_views(1, 3, size=10**38 - 1), VIEWS)
    store.deliver([*_views(101, 1, size=5), *_views(204, 1, size=6)], VIEWS)
    groups = {group.values["url"].rstrip("x"): group["size"] for _, group in store.counters.scan(VIEWS)}
    assert groups == {"/1": 10**38 - 1, "/2": 10**38 - 1, "/3": 10**38 - 1, "/4": 6}
    assert [entry.content["numbers"] for entry in store.counters.quarantined()] == [{"n": "1", "size": "5"}]


def test_a_group_that_is_a_text_waits_alone(store: Store) -> None:
    store.deliver(_views(1, 3), VIEWS)
    [page] = _pages(store)
    key, name = {"pk": page["pk"], "sk": page["sk"]}, "=/1" + "x" * 20 + "#c"
    assert name in page
    store.client.put_item(TableName=store.name, Item={**page, name: {"S": "taken"}})
    of_the_text = [*_views(101, 1), *_views(201, 1)]

    deliveries = [of_the_text, of_the_text, [*of_the_text, *_views(202, 1)]]
    assert [store.deliver(batch, VIEWS).quarantined for batch in deliveries] == [1, 0, 0]

    assert [entry.content["numbers"] for entry in store.counters.quarantined()] == [{"n": "2", "size": "2"}]
    [mended] = _pages(store)
    store.client.put_item(TableName=store.name, Item={**mended, **key, name: page[name]})
    groups = {group.values["url"].rstrip("x"): group["n"] for _, group in store.counters.scan(VIEWS)}
    assert groups == {"/1": 1, "/2": 2, "/3": 1}


def test_a_page_whose_version_is_a_text_holds_nothing_up(store: Store) -> None:
    store.deliver(_views(1, 3), VIEWS)
    [page] = _pages(store)
    spoiled = {**page, "_v": {"S": "taken"}}
    store.client.put_item(TableName=store.name, Item=spoiled)
    batch = _views(101, 2)
    assert [store.deliver(batch, VIEWS).quarantined for _ in range(2)] == [2, 0]
    assert _pages(store) == [spoiled]


def test_a_batch_that_one_request_cannot_hold_splits_its_page_first(store: Store) -> None:
    records = [_view(number, f"/{number}") for number in range(1, 900)]
    store.deliver(records, VIEWS)
    store.deliver(records, VIEWS)
    assert {group["n"] for _, group in store.counters.scan(VIEWS)} == {1}
    assert len(list(store.counters.scan(VIEWS))) == 899
