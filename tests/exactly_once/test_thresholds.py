"""Thresholds: the outbox holds each crossing of a group's own history once, whatever is delivered, and nothing else."""

from __future__ import annotations

import collections
import contextlib
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Average, Count, Counter, Distinct, Event, Packed, Sum, Threshold
from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Declarable, flatten
from dynamodb_counters._declarations.thresholds import watched
from dynamodb_counters._fold.crossings import crossings
from dynamodb_counters._fold.records import Change
from dynamodb_counters.errors import CommitError
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying
from simulation.night import scaled
from simulation.oracle.crossings import Crossed, crossed, held
from simulation.schedules.housekeeping import narrow_pages
from simulation.workbench import Workbench

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = Event("view", key="id", version="revision")
CLICK = Event("click", key=("id", "at"), packed=Packed("at"))
VIEWS = Aggregate("views", VIEW, by="url")
PAGED = Aggregate("paged", VIEW, by="url", pages=True)
SPENT = Aggregate("spent", VIEW, by="url", measures={"spent": Sum("bytes")})
VISITORS = Distinct("visitors", VIEW, by="url", member="client")
CLICKS = Aggregate("clicks", CLICK, by="url")
STOCK = Counter("stock", by="url")
LEVELS = [2, 5, 9]
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)

THRESHOLDS = [
    Threshold("up", VIEWS, at=LEVELS),
    Threshold("both", VIEWS, at=LEVELS, direction="both"),
    Threshold("highest", VIEWS, at=LEVELS, direction="both", burst="highest"),
    Threshold("in-pages", PAGED, at=LEVELS, direction="both"),
    Threshold("highest-in-pages", PAGED, at=LEVELS, direction="both", burst="highest"),
    Threshold("debt", SPENT, at=[-50, 0, 80], direction="both"),
    Threshold("people", VISITORS, at=[2, 4], direction="both"),
    Threshold("packed", CLICKS, at=[3, 7], direction="down"),
    Threshold("counter", STOCK, at=LEVELS, direction="both", burst="highest"),
]
DECLARED: list[Declarable] = [VIEWS, PAGED, SPENT, VISITORS, CLICKS, STOCK]


def _records(counters: CountersInMemory) -> Iterator[dict[str, Any]]:
    stream = counters._memory.tables[counters.table_name].stream
    for shard in stream.shards():
        yield from stream.read(shard.id, None, 10**9).records


def _due(counters: CountersInMemory, thresholds: Iterable[Threshold]) -> list[Crossed]:
    found = []
    for record in _records(counters):
        name = record["dynamodb"].get("NewImage", {}).get("_type", {}).get("S")
        found += crossed(record, [one for one in thresholds if watched(one.aggregate).name == name])
    return found


def _outbox(counters: CountersInMemory) -> list[dict[str, Any]]:
    return [item for item in counters._tables[0].items() if item["_type"]["S"] == "_crossing"]


def _change(counters: CountersInMemory, rng: random.Random, known: dict[str, int], number: int) -> None:
    """Accept, correct or retract events; increment or reset a counter."""
    url = rng.choice("ab")
    act = rng.randrange(10)
    if act < 5:
        new = [f"e{number}-{n}" for n in range(rng.choice((1, 1, 4, 12)))]
        known |= dict.fromkeys(new, 1)
        counters.accept_many(VIEW, [_view(rng, each, url, 1) for each in new]).raise_for_rejected()
        clicks = [{"id": each, "at": counters.clock.now.isoformat(), "url": url} for each in new]
        counters.accept_many(CLICK, clicks).raise_for_rejected()
    elif act < 8 and known:
        for key in rng.sample(sorted(known), min(len(known), rng.choice((1, 5)))):
            if rng.random() < 0.5:
                known[key] += 1
                counters.accept(VIEW, _view(rng, key, rng.choice("ab"), known[key]))
            else:
                known.pop(key)
                counters.retract(VIEW, {"id": key})
    elif act == 8:
        counters.increment(STOCK, url=url, amount=rng.choice((-3, 4, 12)))
    else:
        counters.reset(STOCK, url=url)


def _view(rng: random.Random, key: str, url: str, revision: int) -> dict[str, Any]:
    size, client = rng.randint(-40, 60), f"c{rng.randrange(6)}"
    return {"id": key, "url": url, "bytes": size, "client": client, "revision": revision}


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_the_outbox_holds_each_crossing_once(seed: int) -> None:
    rng, known = random.Random(seed), dict[str, int]()
    with counters_in_memory([*DECLARED, *THRESHOLDS], now=NOW, seed=seed, faults=FAULTS) as counters:
        for number in range(30):
            _change(counters, rng, known, number)
            if rng.random() < 0.2:
                counters.clock.advance(timedelta(minutes=rng.randrange(90)))
        due, there = _due(counters, THRESHOLDS), _outbox(counters)
    assert collections.Counter(map(held, there)) == collections.Counter(due), seed
    assert len({item["id"]["S"] for item in there}) == len(there) > 10, seed


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_a_threshold_that_counts_once_has_each_level_of_a_group_once(seed: int) -> None:
    once = [replace(THRESHOLDS[place], once=True) for place in (1, 4, 8)]
    rng, known = random.Random(seed), dict[str, int]()
    with counters_in_memory([*DECLARED, *once], now=NOW, seed=seed, faults=FAULTS) as counters:
        for number in range(30):
            _change(counters, rng, known, number)
        due, there = {each[:1] + each[2:4] for each in _due(counters, once)}, _outbox(counters)
    kinds = collections.Counter((item["group"]["M"]["url"]["S"], *held(item)[:1], *held(item)[2:4]) for item in there)
    assert set(kinds.values()) == {1}, seed
    assert {kind[1:] for kind in kinds} == due, seed


def test_an_average_crosses_a_line_where_there_is_one() -> None:
    speed = Aggregate("speed", VIEW, by="url", measures={"mean": Average("bytes")})
    threshold = Threshold("slow", speed, at=[10], direction="both")
    rng = random.Random(1)
    with counters_in_memory([speed, threshold], now=NOW) as counters:
        for number, size in enumerate((4, 30, 1, 1)):
            counters.accept(VIEW, {**_view(rng, f"{number}", "/", 1), "bytes": size})
        found = sorted((item["direction"]["S"], item["old"]["S"], item["new"]["S"]) for item in _outbox(counters))
    assert [(direction, new) for direction, _, new in found] == [("down", "9"), ("up", "17")]


def test_nothing_is_written_where_nothing_is_crossed() -> None:
    with counters_in_memory([VIEWS, Threshold("far", VIEWS, at=[10**6])], now=NOW) as counters:
        counters.accept_many(VIEW, [_view(random.Random(n), f"{n}", "/", 1) for n in range(50)])
        assert _outbox(counters) == []
        assert Count() == VIEWS.measures["views"]


def _bench(*levels: int, usage: Aggregate = VIEWS, **options: Any) -> Workbench:
    bench = Workbench(flatten([usage, Threshold("plan", usage, at=levels, **options)]))
    bench.aggregator.handle({})
    return bench


def _accept(bench: Workbench, *keys: str, url: str = "/") -> None:
    for key in keys:
        bench.counters.accept(VIEW, {"id": key, "url": url, "revision": 1})


def _crossings(bench: Workbench) -> list[dict[str, Any]]:
    return [item for item in bench.table.items() if item["_type"]["S"] == "_crossing"]


def test_a_crossing_that_is_there_stays() -> None:
    left: list[int] = []
    for calls in range(12):
        bench = _bench(1)
        _accept(bench, "a")
        bench.deliver(bench.records())
        with contextlib.suppress(Crashed):
            bench.deliver(bench.records(), by=bench.process(Dying(bench.store.client, calls, after=True)))
        before = _crossings(bench)
        bench.deliver_all()
        assert before in ([], _crossings(bench))
        left.append(len(before))
    assert {0, 1} == {*left}


def test_a_batch_whose_crossing_is_refused_is_delivered_again() -> None:
    bench = _bench(1)
    _accept(bench, "a")
    bench.deliver(bench.records())
    busy = bench.process(_Refusing(bench.store.client))
    with pytest.raises(CommitError):
        bench.deliver(bench.records(), by=busy)
    assert _crossings(bench) == []
    bench.deliver_all()
    assert len(_crossings(bench)) == 1


def test_crossings_of_a_group_are_put_in_order() -> None:
    bench = _bench(1, 2, 3, direction="both")
    _accept(bench, "a", "b", "c")
    bench.deliver(bench.records())
    puts: list[str] = []
    bench.deliver(bench.records(), by=bench.process(_Refusing(bench.store.client, puts)))
    assert puts == sorted(puts, key=lambda sk: Decimal(sk.split("#")[2]))
    assert len(puts) == 3


def test_a_record_that_is_redriven_crosses_no_line_again() -> None:
    bench = _bench(1)
    _accept(bench, "a")
    bench.deliver(bench.records())
    [record] = [each for each in bench.records() if each["dynamodb"]["NewImage"]["_type"] == {"S": "views"}]
    plan = plan_of(read_registry(bench.store))
    again = {**record, "dynamodb": {**record["dynamodb"], "SequenceNumber": "9" * 30}}
    assert len(crossings(plan, [Change(record)], collections.Counter())) == 1
    assert crossings(plan, [Change(again, record)], collections.Counter()) == []


def test_changes_in_shards_whose_numbers_are_alike_have_crossings_each() -> None:
    bench = _bench(1)
    _accept(bench, "a")
    bench.deliver(bench.records())
    [record] = [each for each in bench.records() if each["dynamodb"]["NewImage"]["_type"] == {"S": "views"}]
    plan = plan_of(read_registry(bench.store))
    keys = {
        crossing["sk"]["S"]
        for event in ("1", "2", "1")
        for crossing in crossings(plan, [Change({**record, "eventID": event})], collections.Counter())
    }
    assert len(keys) == 2


def test_a_page_that_splits_crosses_no_line() -> None:
    with narrow_pages(2):
        bench = _bench(1, usage=PAGED)
        for url in "abcdefgh":
            _accept(bench, url, url=url)
            bench.deliver_all()
    assert len([item for item in bench.table.items() if item["sk"]["S"].startswith("PAGE#")]) > 2
    found = [item["group"]["M"]["url"]["S"] for item in _crossings(bench)]
    assert sorted(found) == list("abcdefgh")


class _Refusing:
    """A client that notes what is put into the outbox; without a list, it refuses that."""

    def __init__(self, client: Any, puts: list[str] | None = None) -> None:
        self._client, self._puts, self._number = client, puts, count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **request: Any) -> Any:
        if request["Item"]["_type"] == {"S": "_crossing"}:
            if self._puts is None:
                raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "PutItem")
            if next(self._number) == 0:
                # Others would overtake it.
                time.sleep(0.1)
            self._puts.append(request["Item"]["sk"]["S"])
        return self._client.put_item(**request)
