"""Each guard of pages alone, in the situation it is there for: pages split once they have more than two groups."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Counters, Event
from dynamodb_counters._backfill import runner
from dynamodb_counters._fold import updates
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import BITS, Page
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from dynamodb_counters._layouts import PageLevels
from dynamodb_counters.errors import CommitError
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Hook, HookedClient, failing, once
from simulation.memory.memory_stream import Record
from simulation.schedules.housekeeping import narrow_pages
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Live, Stream, fill, verification

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
def bench() -> Workbench:
    bench = Workbench([VIEWS])
    bench.aggregator.handle({})
    return bench


def _view(bench: Workbench, urls: Collection[str], client: str) -> list[Record]:
    """Accept a view of each; return the records of these."""
    before = len(bench.records())
    bench.counters.accept_many(VIEW, [{"url": url, "client": client} for url in urls]).raise_for_rejected()
    return bench.records()[before:]


def _split(bench: Workbench) -> None:
    """Have pages split that another process counts in."""
    bench.deliver(_view(bench, MANY, "split"), by=bench.process())
    assert len(_pages(bench)) > 4


def _pages(bench: Workbench) -> list[Any]:
    return [item for item in bench.table.items() if item["sk"]["S"].startswith(PAGE_PREFIX)]


def _views(bench: Workbench, urls: Collection[str] = MANY) -> set[int]:
    """How often each was viewed, as a process reads it that knows of nothing."""
    cold = Counters(bench.table.name, client=bench.store.client, clock=bench.clock)
    return {group["views"] for group in cold.get_many([(VIEWS, {"url": url}) for url in urls], consistent=True)}


def _hooked(bench: Workbench, hook: Hook) -> Any:
    """A process that has read the registry."""
    process = bench.process(HookedClient(bench.table, hook))
    process.handle({})
    return process


def _beginning(bits: str) -> str:
    """A group whose hash begins with some bits."""
    layout, urls = ItemLayout(VIEWS), (f"/{number}" for number in range(10_000))
    return next(url for url in urls if f"{layout.address((url,))[1]:0{BITS}b}".startswith(bits))


def _levels(process: Any) -> PageLevels:
    levels: PageLevels = process._committer._levels
    return levels


def test_a_process_that_knows_pages_from_before_they_split_finds_the_others(bench: Workbench) -> None:
    old = bench.process()
    bench.deliver(_view(bench, FEW, "first"), by=old)
    _split(bench)
    bench.deliver(_view(bench, MANY[:4], "last"), by=old)
    assert _views(bench, FEW) == {3}
    assert _views(bench, MANY[2:4]) == {2}


def test_a_page_that_split_off_knows_what_its_groups_have_counted(bench: Workbench) -> None:
    records = _view(bench, MANY, "first")
    bench.deliver(records)
    bench.deliver(records, by=bench.process())
    bench.deliver([*records, *_view(bench, MANY, "later")], by=bench.process())
    assert _views(bench) == {2}


def test_a_page_keeps_what_it_counts_while_another_process_splits_it(bench: Workbench) -> None:
    bench.deliver(_view(bench, FEW, "first"))

    def meanwhile() -> None:
        with narrow_pages(100):
            bench.deliver(_view(bench, FEW, "meanwhile"))

    late = once(["transact_write_items"], meanwhile)
    bench.deliver(_view(bench, [MANY[2]], "last"), by=_hooked(bench, late))
    assert _views(bench, FEW) == {2}


def test_a_process_that_dies_while_a_page_splits_leaves_no_half(bench: Workbench) -> None:
    with narrow_pages(100):
        bench.deliver(_view(bench, MANY[:4], "first"))
    records = _view(bench, MANY[4:5], "last")
    is_new: Callable[[Any], bool] = lambda put: put["Item"]["sk"]["S"].startswith(f"{PAGE_PREFIX}views#8")  # noqa: E731
    with contextlib.suppress(Crashed):
        bench.deliver(records, by=bench.process(failing(bench.table, "put_item", is_new)))
    bench.deliver(records, by=bench.process())
    assert _views(bench, MANY[:5]) == {1}


def test_all_groups_of_a_batch_that_lie_in_a_page_are_in_one_request(bench: Workbench) -> None:
    home, other = _beginning("1000"), _beginning("11")
    bench.deliver(_view(bench, ["/0", "/1", "/2", home], "first"))
    with narrow_pages(100):
        process = bench.process()
        process.handle({})
        _levels(process).learn("views", Page("views", 1 << BITS - 1, 1), {"_level": {"N": "1"}})
        _levels(process)._latest["views", "views"] = 4
        bench.deliver(_view(bench, [other, home], "last"), by=process)
    assert _views(bench, [other]) == {1}


def test_a_page_of_which_a_part_fails_is_written_by_the_next_delivery_alone(bench: Workbench) -> None:
    one, two = _beginning("00"), _beginning("01")
    records = _view(bench, [one, two], "first")
    left = [ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "UpdateItem")]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and left and request["Key"]["sk"]["S"] == "PAGE#views#0":
            raise left.pop()
        return send()

    process = _hooked(bench, hook)
    _levels(process)._latest["views", "views"] = 2
    with pytest.raises(CommitError):
        bench.deliver(records, by=process)
    bench.deliver(records, by=bench.process())
    assert _views(bench, [one, two]) == {1}


def test_a_split_counts_nothing() -> None:
    bench = Workbench([VIEWS, SITES])
    bench.deliver(_view(bench, MANY, "first"))
    changes = [(record, record["dynamodb"].get("OldImage") or {}) for record in bench.records()]
    halves = [each for each, old in changes if each["dynamodb"]["NewImage"].get("_level") != old.get("_level")]
    assert halves
    assert bench.deliver(halves).touched == 0
    bench.deliver_all()
    assert bench.counters.get(SITES)["urls"] == len(MANY)


def test_a_reader_that_guesses_wrong_asks_on(bench: Workbench) -> None:
    bench.deliver(_view(bench, FEW, "first"))
    stale, cold = (Counters(bench.table.name, client=bench.store.client, clock=bench.clock) for _ in range(2))
    assert stale.get(VIEWS, url="/0")["views"] == 1
    _split(bench)
    PageLevels.of_table(cold._table)._latest["views", "views"] = 40
    for counters in (stale, cold):
        assert {counters.get(VIEWS, url=url)["views"] for url in FEW} == {2}


@pytest.mark.parametrize("most", [3, 500_000])
def test_each_part_of_a_baseline_is_added_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(runner, "MOST_HELD", most)
    bench = Workbench([Aggregate("all", VIEW, pk="ALL", sk="ALL", measures={"n": Count()})])
    _view(bench, MANY, "first")
    bench.deliver_all()
    bench.deploy([VIEWS])
    stream = Stream(bench)
    stream.deliver()
    fill(bench, stream)
    assert _views(bench) == {1}


def test_a_page_is_lost_only_by_the_word_of_the_page_that_it_has_split_off_from() -> None:
    no_table: Any = None
    levels, half, other = PageLevels(no_table), Page("p", 0b110 << BITS - 3, 3), Page("p", 0b101 << BITS - 3, 3)
    for page in (other, half):
        assert not levels.learn("views", page, {})
    assert not levels.locate("views", "p", half.first).is_lost
    levels.learn("views", Page("p", 1 << BITS - 1, 1), {"_level": {"N": "3"}})
    assert not levels.learn("views", half, {})
    assert levels.locate("views", "p", half.first).is_lost


def test_a_repair_finds_the_groups_wherever_they_lie() -> None:
    live = Live(VIEWS)
    _view(live.bench, MANY, "first")
    live.bench.deliver_all()
    for page in _pages(live.bench):
        [name, *_] = [name for name in page if name.startswith("=")] or [""]
        if name:
            live.bench.table.update_item(
                TableName=live.bench.table.name,
                Key={"pk": page["pk"], "sk": page["sk"]},
                UpdateExpression="ADD #n :n",
                ExpressionAttributeNames={"#n": name},
                ExpressionAttributeValues={":n": {"N": "5"}},
            )
    verifying = verification(live.bench, live.stream)
    list(verifying.steps())
    PageLevels.of_table(verifying.table).__init__(verifying.table)  # type: ignore[misc]
    done, refused = verifying.repair()
    assert (done > 1, refused) == (True, 0)
    assert verifying.repair()[0] == 0
    assert _views(live.bench) == {1}


def test_no_request_is_larger_than_dynamodb_takes(bench: Workbench) -> None:
    urls = [f"/{number}" for number in range(600)]

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        assert len(request.get("UpdateExpression", "")) <= MOST_EXPRESSION_BYTES
        return send()

    with narrow_pages(100), patch.object(updates, "_MOST_ADDED", 200):
        bench.deliver(_view(bench, urls, "first"), by=_hooked(bench, hook))
    assert _views(bench, urls) == {1}


def test_a_page_moves_past_what_a_group_that_is_a_text_cannot_take(bench: Workbench) -> None:
    bench.deliver(_view(bench, FEW[:1], "first"))
    [page] = _pages(bench)
    bench.table.put_item(TableName=bench.table.name, Item={**page, f"={FEW[0]}": {"S": "taken"}})
    records = [*_view(bench, FEW[:1], "second"), *_view(bench, FEW[:1], "third")]
    assert bench.deliver(records).quarantined == 1
    [entry] = bench.counters.quarantined()
    assert entry.content["numbers"] == {"views": "2"}
