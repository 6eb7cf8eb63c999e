"""Each guard of pages alone, in the situation it is there for: pages split once they have more than two groups."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._backfill import runner
from dynamodb_counters._fold import updates
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import BITS, Page
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from dynamodb_counters._layouts import PageLevels
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Hook, HookedClient, failing, once
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.schedules.housekeeping import narrow_pages
from simulation.world import World

VIEW = Event("view", key=("url", "client"))
VIEWS = Aggregate("views", VIEW, by="url", pages=True)
SITES = Aggregate("sites", VIEWS, pk="SITES", sk="ALL", measures={"urls": Count()})
MOST_EXPRESSION_BYTES = 4096
FEW, MANY = ("/0", "/1"), [f"/{number}" for number in range(12)]


@pytest.fixture(autouse=True)
def _narrow() -> Iterator[None]:
    with narrow_pages(2):
        yield


@pytest.fixture
def world() -> World:
    return World(VIEWS)


def _view(world: World, urls: Collection[str], client: str) -> list[Record]:
    """Accept a view of each; return the records of these."""
    return world.accept(VIEW, *({"url": url, "client": client} for url in urls))


def _split(world: World) -> None:
    """Have pages split that another process counts in."""
    world.deliver(_view(world, MANY, "split"), by=world.process())
    assert len(_pages(world)) > 4


def _pages(world: World) -> list[Any]:
    return [item for item in world.table.items() if item["sk"]["S"].startswith(PAGE_PREFIX)]


def _views(world: World, urls: Collection[str] = MANY) -> set[int]:
    """How often each was viewed, as a process reads it that knows of nothing."""
    return {
        group["views"] for group in world.reader().get_many([(VIEWS, {"url": url}) for url in urls], consistent=True)
    }


def _hooked(world: World, hook: Hook) -> Any:
    """A process that has read the registry."""
    process = world.process(HookedClient(world.table, hook))
    process.handle({})
    return process


def _beginning(bits: str) -> str:
    """A group whose hash begins with some bits."""
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

    late = once(["transact_write_items"], meanwhile)
    world.deliver(_view(world, [MANY[2]], "last"), by=_hooked(world, late))
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
    one, two = _beginning("00"), _beginning("01")
    records = _view(world, [one, two], "first")
    left = [failure("UpdateItem", "AccessDeniedException")]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and left and request["Key"]["sk"]["S"] == "PAGE#views#0":
            raise left.pop()
        return send()

    process = _hooked(world, hook)
    _levels(process)._latest["views", "views"] = 2
    with pytest.raises(CommitError):
        world.deliver(records, by=process)
    world.deliver(records, by=world.process())
    assert _views(world, [one, two]) == {1}


def test_a_split_counts_nothing() -> None:
    world = World(VIEWS, SITES)
    world.deliver(_view(world, MANY, "first"))
    changes = [(record, record["dynamodb"].get("OldImage") or {}) for record in world.records()]
    halves = [each for each, old in changes if each["dynamodb"]["NewImage"].get("_level") != old.get("_level")]
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


@pytest.mark.parametrize("most", [3, 500_000])
def test_each_part_of_a_baseline_is_added_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(runner, "MOST_HELD", most)
    world = World(Aggregate("all", VIEW, pk="ALL", sk="ALL", measures={"n": Count()}))
    _view(world, MANY, "first")
    world.deliver_all()
    world.deploy(VIEWS)
    world.deliver_new()
    world.fill()
    assert _views(world) == {1}


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

    with narrow_pages(100), patch.object(updates, "_MOST_ADDED", 200):
        world.deliver(_view(world, urls, "first"), by=_hooked(world, hook))
    assert _views(world, urls) == {1}


def test_a_page_moves_past_what_a_group_that_is_a_text_cannot_take(world: World) -> None:
    world.deliver(_view(world, FEW[:1], "first"))
    [page] = _pages(world)
    world.write({**page, f"={FEW[0]}": {"S": "taken"}})
    records = [*_view(world, FEW[:1], "second"), *_view(world, FEW[:1], "third")]
    assert world.deliver(records).quarantined == 1
    [entry] = world.counters.quarantined()
    assert entry.content["numbers"] == {"views": "2"}
