"""Groups in pages: each guard alone, in the situation it is there for; and what pages hold and cost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from counters_lambda.counting import runner
from counters_lambda.counting.commit import PageSplits
from dynamodb_counters import Aggregate, Count, Counters, Event, InvalidArgumentError, Packed, Sum
from dynamodb_counters._fold import layouts
from dynamodb_counters._fold.layouts import BITS, ItemLayout, Page, is_full
from dynamodb_counters._items.schema import PAGE_PREFIX, WRITE_UNIT_BYTES, item_bytes, write_units
from dynamodb_counters._registry import PageLevels
from dynamodb_counters.errors import CommitError
from simulation.counters_in_memory import counters_in_memory
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Hook, HookedClient, failing, once
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.pairs.housekeeping import narrow_pages
from simulation.world import World

VIEW = Event("view", key=("url", "client"))
PACKED = Event("click", key=("url", "time", "client"), packed=Packed("time"))
START = datetime(2026, 1, 1, tzinfo=UTC)
VIEWS = Aggregate("views", VIEW, by="url", pages=True)
SITES = Aggregate("sites", VIEWS, pk="SITES", sk="ALL", measures={"urls": Count()})
MOST_EXPRESSION_BYTES = 4096
FEW, MANY = ("/0", "/1"), [f"/{number}" for number in range(12)]


@pytest.fixture
def narrow() -> Iterator[None]:
    """Pages split once they have more than two groups."""
    with narrow_pages(2):
        yield


@pytest.fixture
def world(narrow: None) -> World:
    return World(VIEWS)


def _view(world: World, urls: Collection[str], client: str) -> list[Record]:
    """Accept a view of each; return the records of these."""
    return world.accept(VIEW, *({"url": url, "client": client} for url in urls))


def _split(world: World) -> None:
    """Have pages split that another process counts in."""
    world.deliver(_view(world, MANY, "split"), by=world.process())
    assert len(_pages(world)) > 4


def _pages(world: Any) -> list[dict[str, Any]]:
    """Pages of a world, or of counters in memory."""
    items = (world.table if isinstance(world, World) else world._tables[0]).items()
    return sorted((item for item in items if item["sk"]["S"].startswith(PAGE_PREFIX)), key=lambda page: page["sk"]["S"])


def _views(world: World, urls: Collection[str] = MANY) -> set[int]:
    """Return how often each was viewed, as a process reads it that knows of nothing."""
    groups = world.reader().get_many([(VIEWS, {"url": url}) for url in urls], consistent=True)
    return {group["views"] for group in groups}


def _hooked(world: World, hook: Hook) -> Any:
    """Return a process that has read the registry."""
    process = world.process(HookedClient(world.table, hook))
    process.handle({})
    return process


def _beginning(bits: str) -> str:
    """Return a group whose hash begins with some bits."""
    layout, urls = ItemLayout(VIEWS), (f"/{number}" for number in range(10_000))
    return next(url for url in urls if f"{layout.address((url,))[1]:0{BITS}b}".startswith(bits))


def _levels(process: Any) -> PageLevels:
    levels: PageLevels = process._committer._levels
    return levels


def test_a_process_that_knows_pages_from_before_they_split_finds_the_others(world: World) -> None:
    old = world.process()
    world.deliver(_view(world, FEW, "first"), by=old)
    _split(world)
    world.deliver(_view(world, MANY[:4], "last"), by=old)
    assert _views(world, FEW) == {3}
    assert _views(world, MANY[2:4]) == {2}


def test_a_page_that_split_off_knows_what_its_groups_have_counted(world: World) -> None:
    records = _view(world, MANY, "first")
    world.deliver(records)
    world.deliver(records, by=world.process())
    world.deliver([*records, *_view(world, MANY, "later")], by=world.process())
    assert _views(world) == {2}


def test_a_page_keeps_what_it_counts_while_another_process_splits_it(world: World) -> None:
    world.deliver(_view(world, FEW, "first"))

    def meanwhile() -> None:
        with narrow_pages(100):
            world.deliver(_view(world, FEW, "meanwhile"))

    world.deliver(_view(world, [MANY[2]], "last"), by=_hooked(world, once(["transact_write_items"], meanwhile)))
    assert _views(world, FEW) == {2}


def test_a_process_that_dies_while_a_page_splits_leaves_no_half(world: World) -> None:
    with narrow_pages(100):
        world.deliver(_view(world, MANY[:4], "first"))
    records = _view(world, MANY[4:5], "last")
    is_new: Callable[[Any], bool] = lambda put: put["Item"]["sk"]["S"].startswith(f"{PAGE_PREFIX}views#8")  # noqa: E731
    with contextlib.suppress(Crashed):
        world.deliver(records, by=world.process(failing(world.table, "put_item", is_new)))
    world.deliver(records, by=world.process())
    assert _views(world, MANY[:5]) == {1}


def test_all_groups_of_a_batch_that_lie_in_a_page_are_in_one_request(world: World) -> None:
    home, other = _beginning("1000"), _beginning("11")
    world.deliver(_view(world, ["/0", "/1", "/2", home], "first"))
    with narrow_pages(100):
        process = world.process()
        process.handle({})
        _levels(process).learn("views", Page("views", 1 << BITS - 1, 1), {"_level": {"N": "1"}})
        _levels(process)._latest["views", "views"] = 4
        world.deliver(_view(world, [other, home], "last"), by=process)
    assert _views(world, [other]) == {1}


def test_a_page_of_which_a_part_fails_is_written_by_the_next_delivery_alone(world: World) -> None:
    url, other = _beginning("00"), _beginning("01")
    records = _view(world, [url, other], "first")

    def refuse() -> None:
        raise failure("UpdateItem", "AccessDeniedException")

    # Once: the page of the other group is not there, so that its next request is to the first page.
    process = _hooked(world, once(["update_item"], refuse, lambda update: update["Key"]["sk"] == {"S": "PAGE#views#0"}))
    _levels(process)._latest["views", "views"] = 2
    with pytest.raises(CommitError):
        world.deliver(records, by=process)
    world.deliver(records, by=world.process())
    assert _views(world, [url, other]) == {1}


@pytest.mark.usefixtures("narrow")
def test_a_split_counts_nothing() -> None:
    world = World(VIEWS, SITES)
    world.deliver(_view(world, MANY, "first"))
    changes = [(record, record["dynamodb"].get("OldImage") or {}) for record in world.records()]
    halves = [record for record, old in changes if record["dynamodb"]["NewImage"].get("_level") != old.get("_level")]
    assert halves
    assert world.deliver(halves).touched == 0
    world.deliver_all()
    assert world.counters.get(SITES)["urls"] == len(MANY)


def test_a_reader_that_guesses_wrong_asks_on(world: World) -> None:
    world.deliver(_view(world, FEW, "first"))
    stale, cold = world.reader(), world.reader()
    assert stale.get(VIEWS, url="/0")["views"] == 1
    _split(world)
    PageLevels.of_table(cold._table)._latest["views", "views"] = 40
    for counters in (stale, cold):
        assert {counters.get(VIEWS, url=url)["views"] for url in FEW} == {2}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("most", [3, 500_000])
def test_each_part_of_a_baseline_is_added_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(runner, "MOST_HELD", most)
    world = World(Aggregate("all", VIEW, pk="ALL", sk="ALL", measures={"n": Count()}))
    _view(world, MANY, "first")
    world.deliver_all()
    world.deploy(VIEWS)
    world.fill()
    assert _views(world) == {1}


@pytest.mark.usefixtures("narrow")
def test_a_page_is_lost_only_by_the_word_of_the_page_that_it_has_split_off_from() -> None:
    no_table: Any = None
    levels, half, other = PageLevels(no_table), Page("p", 0b110 << BITS - 3, 3), Page("p", 0b101 << BITS - 3, 3)
    for page in (other, half):
        assert not levels.learn("views", page, {})
    assert not levels.locate("views", "p", half.first).is_lost
    levels.learn("views", Page("p", 1 << BITS - 1, 1), {"_level": {"N": "3"}})
    assert not levels.learn("views", half, {})
    assert levels.locate("views", "p", half.first).is_lost


def test_a_repair_finds_the_groups_wherever_they_lie(world: World) -> None:
    _view(world, MANY, "first")
    world.deliver_all()
    for page in _pages(world):
        for name in [name for name in page if name.startswith("=")][:1]:
            world.write({**page, name: {"N": str(int(page[name]["N"]) + 5)}})
    verifying = world.verify()
    PageLevels.of_table(verifying.table).__init__(verifying.table)  # type: ignore[misc]
    done, refused = verifying.repair()
    assert (done > 1, refused) == (True, 0)
    assert verifying.repair()[0] == 0
    assert _views(world) == {1}


def test_no_request_is_larger_than_dynamodb_takes(world: World) -> None:
    urls = [f"/{number}" for number in range(600)]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        assert len(request.get("UpdateExpression", "")) <= MOST_EXPRESSION_BYTES
        return send()

    with narrow_pages(100), patch.object(layouts, "_MOST_ADDED", 200):
        world.deliver(_view(world, urls, "first"), by=_hooked(world, hook))
    assert _views(world, urls) == {1}


def test_a_page_moves_past_what_a_group_that_is_a_text_cannot_take(world: World) -> None:
    world.deliver(_view(world, FEW[:1], "first"))
    [page] = _pages(world)
    world.write({**page, f"={FEW[0]}": {"S": "taken"}})
    assert world.deliver([*_view(world, FEW[:1], "second"), *_view(world, FEW[:1], "third")]).quarantined == 1
    [entry] = world.counters.quarantined()
    assert entry.content["numbers"] == {"views": "2"}


def _event(url: str, client: str = "c", **values: Any) -> dict[str, Any]:
    return {"url": url, "client": client, "time": START.isoformat(), "size": 7, "revision": 1, **values}


def _events(*numbers: int, length: int = 30, client: str = "c") -> list[dict[str, Any]]:
    return [_event(f"/{number}" + "x" * length, client) for number in numbers]


def test_pages_of_a_large_batch_are_made_in_one_transaction_and_stay_whole() -> None:
    world = World(Aggregate("views", PACKED, by="url", pages=True))
    records = world.accept(PACKED, *_events(*range(1000)))
    before = world.table.usage.writes
    world.deliver(records)
    pages = _pages(world)
    units = sum(write_units(item_bytes(page)) for page in pages)
    assert len(pages) == 16
    assert any(map(is_full, pages))
    # Two units for each page that is made, and those of its update; the rest is the shard's.
    assert world.table.usage.writes - before <= 2 * len(pages) + units + 8


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
        read = [counters.get(views, url=event["url"], client=event["client"]).measures for event in events]
        listed = {(group.values["url"], group.values["client"]) for group in counters.groups(views)}
    assert read == [{"n": 1, "size": event["size"]} for event in events]
    assert listed == {(event["url"], event["client"]) for event in events}


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
                counters._memory.delete_item(TableName=counters.table_name, Key={"pk": page["pk"], "sk": page["sk"]})
        else:
            counters._memory.put_item(TableName=counters.table_name, Item=before)
        counts = {group.values["url"]: group["views"] for group in counters.groups(VIEWS)}
        cold = Counters(counters.table_name, client=counters.client, clock=counters.clock)
        counters.accept_many(VIEW, [{**event, "client": "new"} for event in events])
        expected = {event["url"]: counts.get(event["url"], 0) + 1 for event in events}
        assert {url: cold.get(VIEWS, url=url)["views"] for url in expected} == expected
        assert {group.values["url"]: group["views"] for group in counters.groups(VIEWS)} == expected


def test_pages_that_expire_one_by_one_keep_no_one_waiting() -> None:
    over = Aggregate("over", VIEWS, urls=Count(), views=Sum("views"))
    events = _events(*range(250), length=0)
    urls = {event["url"] for event in events}
    with counters_in_memory([VIEWS, over], now=START) as counters:
        counters.accept_many(VIEW, events)
        *_, page = _pages(counters)
        counters.client.delete_item(TableName=counters.table_name, Key={name: page[name] for name in ("pk", "sk")})
        page_urls = {name[1:] for name in page if name.startswith("=")}
        for client in (counters, Counters(counters.table_name, client=counters.client)):
            assert {url for url in urls if not client.get(VIEWS, url=url)["views"]} == page_urls
            assert {group.values["url"] for group in client.groups(VIEWS)} == urls - page_urls
        counters.accept_many(VIEW, [{**event, "client": "later"} for event in events])
        assert {url for url in urls if counters.get(VIEWS, url=url)["views"] == 1} == page_urls
        assert counters.get(over).measures == {"urls": 250, "views": 500 - len(page_urls)}


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
    world, requests, guessed = World(VIEWS), list[tuple[bool, bool]](), 0
    world.deliver(world.accept(VIEW, *(events := _events(*range(1000)))))

    def note(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        answer = send()
        if name == "get_item" and PAGE_PREFIX in request["Key"]["sk"]["S"]:
            requests.append((request["ConsistentRead"], "Item" in answer))
        return answer

    for event in events[::17]:
        requests.clear()
        world.reader(HookedClient(world.table, note)).get(VIEWS, url=event["url"])
        missing = [not hit for _, hit in requests]
        assert [strongly for strongly, _ in requests] == [any(missing[:index]) for index in range(len(requests))]
        guessed += len(requests) > 1
    assert guessed


def test_a_split_that_another_writer_outran_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, tries = World(VIEWS), list[int]()

    def outrun(*_: object) -> list[object]:
        tries.append(1)
        return []

    monkeypatch.setattr(PageSplits, "_divide", outrun)
    records = world.accept(VIEW, *_events(*range(31)))
    for start in range(0, 30, 5):
        world.deliver(records[start : start + 5])
    before = len(tries)
    world.deliver(records[30:])
    assert len(tries) == before + 1
