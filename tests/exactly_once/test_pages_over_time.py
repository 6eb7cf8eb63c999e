"""Groups in pages over redefinitions: backfills, verification and repair while pages split."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, Sum
from dynamodb_counters._declarations import Declaration, flatten
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, backfill, verify

VIEW = Event("view", key=("url", "id"))


def _declared(*, pages: bool) -> tuple[Declaration, ...]:
    pairs = Aggregate("pairs", VIEW, by=("url", "client"), n=Count(), size=Sum("size"), pages=pages)
    over = Aggregate("over", pairs, by="client", urls=Count(), size=Sum("size"), where=Attr("n").ge(1), pages=pages)
    return flatten((pairs, over, Distinct("visitors", VIEW, by="url", member="client", pages=pages)))


def _write(bench: Workbench, rng: random.Random, first: int, count: int) -> None:
    for number in range(first, first + count):
        event = {
            "url": f"/{rng.randrange(60)}",
            "id": number,
            "client": f"c{rng.randrange(40)}" + "x" * 20,
            "size": number,
        }
        bench.counters.accept(VIEW, event)


def _items(bench: Workbench) -> list[dict[str, Any]]:
    pages = bench.table.get_paginator("scan").paginate(TableName=bench.table.name)
    return [item for page in pages for item in page["Items"]]


def _pages(bench: Workbench) -> list[dict[str, Any]]:
    return [item for item in _items(bench) if item["sk"]["S"].startswith(PAGE_PREFIX)]


@pytest.mark.parametrize("pages", [True, False], ids=["into pages", "out of pages"])
def test_a_backfill_moves_groups_between_items_and_pages_under_traffic(*, pages: bool) -> None:
    rng, bench = random.Random(7), Workbench(_declared(pages=not pages), shards=2)
    stream = Stream(bench)
    _write(bench, rng, 0, 400)
    stream.deliver()
    [pairs, *_] = _declared(pages=not pages)
    assert isinstance(pairs, Aggregate)
    bench.counters.increment(pairs, url="/1", client="direct", amount={"n": 3})
    bench.declare(_declared(pages=pages))
    bench.clock.advance(3600)
    number = 400
    run = backfill(bench, stream)
    for _ in run.steps():
        _write(bench, rng, number, 5)
        number += 5
        stream.deliver()
    bench.clock.advance(3600)
    bench.deliver_all()
    assert verify(bench, stream).differences == []
    wanted: dict[tuple[str, str], list[int]] = {("/1", "direct"): [3, 0]}
    for item in _items(bench):
        if item.get("_type") == {"S": "view"}:
            known = wanted.setdefault((item["url"]["S"], item["client"]["S"]), [0, 0])
            known[0] += 1
            known[1] += int(item["size"]["N"])
    pairs, over, _, visitors = _declared(pages=pages)
    assert isinstance(pairs, Aggregate)
    for (url, client), (n, size) in wanted.items():
        assert bench.counters.get(pairs, url=url, client=client).measures == {"n": n, "size": size}
    by_url = {url: sum(one == url and client != "direct" for one, client in wanted) for url, _ in wanted}
    assert isinstance(visitors, Aggregate)
    assert isinstance(over, Aggregate)
    assert {url: bench.counters.get(visitors, url=url)["distinct"] for url in by_url} == by_url
    by_client = {client: sum(one == client for _, one in wanted) for _, client in wanted}
    assert {client: bench.counters.get(over, client=client)["urls"] for client in by_client} == by_client
    assert bool([page for page in _pages(bench) if "~1" in page["sk"]["S"]]) == pages


def test_a_backfill_that_is_done_again_adds_nothing_to_pages() -> None:
    rng, bench = random.Random(8), Workbench(_declared(pages=False))
    stream = Stream(bench)
    _write(bench, rng, 0, 300)
    stream.deliver()
    bench.declare(_declared(pages=True))
    bench.clock.advance(3600)
    run = backfill(bench, stream)
    run_id = next(progress.run for progress in run.steps() if progress.phase == "adding")
    before = {page["sk"]["S"]: page for page in _pages(bench)}
    # Another process, which knows nothing of what was added.
    assert [*backfill(bench, stream, run=run_id).steps()][-1].phase == "complete"
    after = {page["sk"]["S"]: page for page in _pages(bench)}
    assert before
    assert {key: after[key] for key in before} == before
    bench.clock.advance(3600)
    stream.deliver()
    assert verify(bench, stream).differences == []


def test_a_page_is_repaired_as_a_whole_and_once() -> None:
    rng, bench = random.Random(9), Workbench(_declared(pages=True))
    stream = Stream(bench)
    _write(bench, rng, 0, 300)
    bench.deliver_all()
    stream.skip()
    spoiled = [page for page in _pages(bench) if "PAGE#pairs#" in page["sk"]["S"]][:2]
    for page in spoiled:
        names = sorted(name for name in page if name.startswith("="))[:3]
        for name in names:
            page[name] = {"N": str(int(page[name]["N"]) + 10)}
        bench.table.put_item(TableName=bench.table.name, Item=page)
    run = verify(bench, stream)
    assert {tuple(each.missing.items()) for each in run.differences if each.name == "pairs"} == {(("n", -10),)}
    count = len({each.ref for each in run.differences})
    assert count >= 6
    assert run.repair() == (count, 0)
    assert run.repair() == (0, count)
    stream.deliver()
    assert verify(bench, stream).differences == []
