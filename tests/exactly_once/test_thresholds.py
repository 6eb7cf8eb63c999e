"""Thresholds: the outbox holds each crossing of a group's own history once, and each is delivered."""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest

from counters_lambda.counting.counted_names import plan_of
from counters_lambda.counting.crossings import crossings
from dynamodb_counters import Aggregate, Average, Counter, Distinct, Event, Packed, Sum, Threshold
from dynamodb_counters._assumptions import RUN_OPEN_AFTER
from dynamodb_counters._declarations import Declarable, flatten
from dynamodb_counters._declarations.composites import watched
from dynamodb_counters._fold.records import Change, changes_of
from dynamodb_counters.errors import CommitError
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.faults.hooked_client import HookedClient, failing
from simulation.memory.client_errors import failure
from simulation.night import scaled
from simulation.pairs.crossings import Crossed, crossed, line
from simulation.pairs.housekeeping import narrow_pages
from simulation.world import World
from tests.exactly_once.notices import LARGEST, Bus, NotifierMapping

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
    result = []
    for record in _records(counters):
        name = record["dynamodb"].get("NewImage", {}).get("_type", {}).get("S")
        result += crossed(record, [threshold for threshold in thresholds if watched(threshold.aggregate).name == name])
    return result


def _outbox(counters: CountersInMemory) -> list[dict[str, Any]]:
    return [item for item in counters._tables[0].items() if item["_type"]["S"] == "_crossing"]


def _change(counters: CountersInMemory, rng: random.Random, revisions: dict[str, int], number: int) -> None:
    """Accept, correct or retract events; increment or reset a counter."""
    url = rng.choice("ab")
    act = rng.randrange(10)
    if act < 5:
        new = [f"e{number}-{n}" for n in range(rng.choice((1, 1, 4, 12)))]
        revisions |= dict.fromkeys(new, 1)
        counters.accept_many(VIEW, [_view(rng, key, url, 1) for key in new]).raise_for_rejected()
        clicks = [{"id": key, "at": counters.clock.now.isoformat(), "url": url} for key in new]
        counters.accept_many(CLICK, clicks).raise_for_rejected()
    elif act < 8 and revisions:
        for key in rng.sample(sorted(revisions), min(len(revisions), rng.choice((1, 5)))):
            if rng.random() < 0.5:
                revisions[key] += 1
                counters.accept(VIEW, _view(rng, key, rng.choice("ab"), revisions[key]))
            else:
                revisions.pop(key)
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
    rng, revisions = random.Random(seed), dict[str, int]()
    with counters_in_memory([*DECLARED, *THRESHOLDS], now=NOW, seed=seed, faults=FAULTS) as counters:
        for number in range(30):
            _change(counters, rng, revisions, number)
            if rng.random() < 0.2:
                counters.clock.advance(timedelta(minutes=rng.randrange(90)))
        due, there = _due(counters, THRESHOLDS), _outbox(counters)
    assert collections.Counter(map(line, there)) == collections.Counter(due), seed
    assert len({item["id"]["S"] for item in there}) == len(there) > 10, seed


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_a_threshold_that_counts_once_has_each_level_of_a_group_once(seed: int) -> None:
    once = [replace(THRESHOLDS[place], once=True) for place in (1, 4, 8)]
    rng, revisions = random.Random(seed), dict[str, int]()
    with counters_in_memory([*DECLARED, *once], now=NOW, seed=seed, faults=FAULTS) as counters:
        for number in range(30):
            _change(counters, rng, revisions, number)
        due, there = {crossing[:1] + crossing[2:4] for crossing in _due(counters, once)}, _outbox(counters)
    kinds = collections.Counter((item["group"]["M"]["url"]["S"], *line(item)[:1], *line(item)[2:4]) for item in there)
    assert set(kinds.values()) == {1}, seed
    assert {kind[1:] for kind in kinds} == due, seed


def test_an_average_crosses_a_line_where_there_is_one() -> None:
    speed = Aggregate("speed", VIEW, by="url", measures={"mean": Average("bytes")})
    threshold = Threshold("slow", speed, at=[10], direction="both")
    rng = random.Random(1)
    with counters_in_memory([speed, threshold], now=NOW) as counters:
        for number, size in enumerate((4, 30, 1, 1)):
            counters.accept(VIEW, {**_view(rng, f"{number}", "/", 1), "bytes": size})
        rows = sorted((item["direction"]["S"], item["old"]["S"], item["new"]["S"]) for item in _outbox(counters))
    assert [(direction, new) for direction, _, new in rows] == [("down", "9"), ("up", "17")]


def watch(usage: Aggregate, *levels: Any, name: str = "plan", **options: Any) -> Any:
    return flatten([usage, Threshold(name, usage, at=levels, **{"direction": "both", **options})])


class Views(World):
    """A table whose stream is delivered after each write."""

    number = 0

    def view(self, times: int = 1, url: str = "/") -> None:
        for _ in range(times):
            self.number += 1
            self.accept(VIEW, {"id": f"{self.number}", "url": url, "revision": 1})
        self.settle()

    def crossings(self) -> list[tuple[str, str]]:
        """Level and direction of each, in the order of sequence numbers."""
        items = sorted(self.items("_crossing"), key=lambda item: str(item["sequence"]["S"]))
        return [(item["level"]["S"], item["direction"]["S"]) for item in items]


def _counted(*levels: int, **options: Any) -> Views:
    """Count a view for each level, and deliver nothing of what that changed."""
    world = Views(*watch(VIEWS, *levels, **options))
    for key in levels:
        world.accept(VIEW, {"id": f"{key}", "url": "/", "revision": 1})
    world.deliver(world.records())
    return world


def _change_of(world: World) -> dict[str, Any]:
    [record] = [record for record in world.records() if record["dynamodb"]["NewImage"]["_type"] == {"S": "views"}]
    return record


def test_a_crossing_that_is_there_stays() -> None:
    counts: list[int] = []
    for calls in range(12):
        world = _counted(1)
        world.kill(world.records(), calls, after=True)
        before = world.items("_crossing")
        world.deliver_all()
        assert before in ([], world.items("_crossing"))
        counts.append(len(before))
    assert {0, 1} == {*counts}


def test_a_batch_whose_crossing_is_refused_is_delivered_again() -> None:
    world = _counted(1)
    refused = failure("PutItem", "AccessDeniedException")
    busy = failing(world.table, "put_item", lambda put: put["Item"]["_type"] == {"S": "_crossing"}, refused)
    with pytest.raises(CommitError):
        world.deliver(world.records(), by=world.process(busy))
    assert world.crossings() == []
    world.deliver_all()
    assert world.crossings() == [("1", "up")]


def test_crossings_of_a_group_are_put_in_order() -> None:
    world, begun, puts = _counted(1, 2, 3), list[str](), list[str]()

    def slow(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "put_item" and request["Item"]["_type"] == {"S": "_crossing"}:
            begun.append(request["Item"]["sk"]["S"])
            if len(begun) == 1:
                # Others would overtake it.
                time.sleep(0.1)
            puts.append(request["Item"]["sk"]["S"])
        return send()

    world.deliver(world.records(), by=world.process(HookedClient(world.table, slow)))
    assert puts == sorted(puts, key=lambda sk: Decimal(sk.split("#")[2]))
    assert len(puts) == 3


def test_a_record_that_is_redriven_crosses_no_line_again() -> None:
    world = _counted(1)
    record, plan = _change_of(world), plan_of(world.registry)
    again = {**record, "dynamodb": {**record["dynamodb"], "SequenceNumber": "9" * 30}}
    assert len(crossings(plan, [Change(record)], collections.Counter())) == 1
    assert crossings(plan, [Change(again, record)], collections.Counter()) == []


def test_changes_in_shards_whose_numbers_are_alike_have_crossings_each() -> None:
    world = _counted(1)
    record, plan = _change_of(world), plan_of(world.registry)
    changes = [Change({**record, "eventID": event}) for event in ("1", "2", "1")]
    assert len({put["sk"]["S"] for change in changes for put in crossings(plan, [change], collections.Counter())}) == 2


def test_a_page_that_splits_crosses_no_line() -> None:
    with narrow_pages(2):
        world = Views(*watch(PAGED, 1))
        for url in "abcdefgh":
            world.view(url=url)
    assert len([item for item in world.table.items() if item["sk"]["S"].startswith("PAGE#")]) > 2
    assert sorted(item["group"]["M"]["url"]["S"] for item in world.items("_crossing")) == list("abcdefgh")


OF_EACH_LAYOUT = pytest.mark.parametrize("usage", [VIEWS, PAGED], ids=["items", "pages"])


@OF_EACH_LAYOUT
def test_what_a_name_counts_before_its_baseline_is_added_crosses_no_line(usage: Aggregate) -> None:
    world = Views(*watch(usage, 3, 6))
    world.view(4)
    for step in world.backfill(usage.name).steps():
        world.view(3 if step.phase == "scanning" and world.number < 7 else 0)
    world.clock.advance(RUN_OPEN_AFTER + 1)  # A record's time is in whole seconds.
    # As a process does that has read the registry since.
    world.deliver_all()
    assert world.crossings() == [("3", "up")]
    for number in ("7", "6"):
        world.counters.retract(VIEW, {"id": number})
    world.settle()
    assert world.crossings() == [("3", "up"), ("6", "down")]


@OF_EACH_LAYOUT
def test_a_threshold_watches_from_when_every_process_knows_of_it(usage: Aggregate) -> None:
    world = Views(usage)
    world.view(4)
    early = changes_of(world.records())
    world.deploy(*watch(usage, 3, 6))
    # However late, and by whom, they are delivered.
    assert crossings(plan_of(world.registry), early, collections.Counter()) == []
    world.view(2)
    world.deliver_all()
    assert world.crossings() == [("6", "up")]


def test_a_threshold_keeps_its_levels() -> None:
    world = Views(*watch(VIEWS, 3))
    world.deploy(*watch(VIEWS, 2))
    world.view(4)
    assert world.crossings() == [("3", "up")]
    world.deploy(*watch(VIEWS, 5, name="plan_v2"))
    world.view(2)
    assert world.crossings() == [("3", "up"), ("5", "up")]


def test_a_group_that_expires_crosses_nothing() -> None:
    world = Views(*watch(Aggregate("daily", VIEW, by=("url", "at:day"), retention=timedelta(days=1)), 2))
    world.accept(VIEW, *({"id": f"{n}", "url": "/", "at": int(world.clock()), "revision": 1} for n in range(3)))
    world.settle()
    assert world.crossings() == [("2", "up")]
    assert world.expire(8), "the group is still there"
    world.settle()
    assert world.crossings() == [("2", "up")]


def test_items_that_other_code_has_spoiled_cross_nothing_and_hold_up_nothing() -> None:
    rng = random.Random(0)
    levels = [-1, 0, Decimal("1E-130"), 10**37, Decimal("9.9E+125")]
    world = Views(*watch(VIEWS, *levels), *watch(PAGED, Decimal("1E-130"), 1, name="in-pages"))
    values: Any = ({"S": "x"}, {"N": "1"}, {"NULL": True}, {"L": []}, {"B": b"1"}, {"N": "9.9E+125"}, {"BOOL": True})
    for number in range(60):
        world.view(url=f"c{number % 7}")
        for item in [*world.items("views"), *world.items("paged")]:
            if rng.random() < 0.5:
                world.write({**item, rng.choice(("_other", "%=c1", "units2")): rng.choice(values)})
    world.deliver_all()
    for url in range(7):
        for usage in (VIEWS, PAGED):
            assert [*world.counters.get(usage, url=f"c{url}").measures.values()] == [len(range(url, 60, 7))]


def test_each_change_that_a_spoiled_item_keeps_from_crossing_is_counted() -> None:
    world = Views(*watch(VIEWS, 1, 9))
    world.view(5)
    [item] = world.items("views")
    # Of the second, the image before is the spoiled one.
    for spoiled in ({"views": {"S": "x"}}, {}, {"pk": {"S": "USAGE"}}):
        position = len(world.records())
        world.write({**item, **spoiled})
        assert world.deliver(world.records()[position:]).skipped_thresholds == {"plan": 1}


# Deliveries: counting goes on while EventBridge refuses, and at the limits of numbers

CALL = Event("call", key="id", version="revision")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE")
PLAN = Threshold("plan", USAGE, at=[1, 2, 4, 7], direction="both")
FEW_FAULTS = Faults(crash=0.2, redeliver=0.3, split=0.1)
_OUTAGE = timedelta(hours=1)
LARGE_USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE", units=Sum("units"))
TINY = Decimal("1E-130")
HUGE = Decimal("1E+125")
EDGES: Final = (2**53, LARGEST, LARGEST + 1, 10**20, 10**37)
LEVELS_AT_EDGES: list[Any] = [-HUGE, *(-edge for edge in reversed(EDGES)), 0, TINY, *EDGES, HUGE, 5 * HUGE]
LARGE_PLAN = Threshold("plan", LARGE_USAGE, at=LEVELS_AT_EDGES, direction="both")
UNITS: Final[dict[str, tuple[int | Decimal, ...]]] = {
    "whole": (1, -1, *EDGES, *(-edge for edge in EDGES)),
    "fraction": (Decimal("0.5"), LARGEST, -LARGEST, Decimal("-9223372036854775808.5")),
    "tiny": (TINY, 5 * TINY, -2 * TINY),
    "huge": (HUGE, -2 * HUGE, 3 * HUGE),
}
"""Numbers of each group: a sum of both huge and tiny ones has too many digits to be stored."""
_MOST_TRIES: Final = 10_000


def _finish(counters: CountersInMemory, mapping: NotifierMapping) -> list[dict[str, Any]]:
    """Deliver until nothing is left of the stream; return the items of the outbox."""
    assert any(not mapping.deliver() for _ in range(_MOST_TRIES)), "a shard waits"
    return _outbox(counters)


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_an_outage_of_eventbridge_holds_up_no_count_and_loses_no_crossing(seed: int) -> None:
    rng = random.Random(seed)
    with counters_in_memory([USAGE, PLAN], now=NOW, seed=seed, faults=FEW_FAULTS) as counters:
        ends, stream = NOW, counters._memory.tables[counters.table_name].stream
        bus = Bus(rng, lambda: counters.clock.now < ends)
        mapping = NotifierMapping(stream, rng, bus)
        there = dict.fromkeys("ab", 0)
        for number in range(12):
            customer = rng.choice("ab")
            if number == 3:
                ends = counters.clock.now + _OUTAGE
            if there[customer] and rng.random() < 0.4:
                there[customer] -= 1
                counters.retract(CALL, {"id": f"{customer}{there[customer]}"})
            else:
                counters.accept(CALL, {"id": f"{customer}{there[customer]}", "customer": customer, "revision": number})
                there[customer] += 1
            mapping.deliver()
            assert counters.get(USAGE, customer=customer)["usage"] == there[customer], seed
        counters.clock.advance(_OUTAGE)
        outbox = _finish(counters, mapping)
        records = [*_records(counters)]
    assert {detail["id"] for detail in bus.details} == {item["id"]["S"] for item in outbox}, seed
    for customer in ("a", "b"):
        details = [detail for detail in bus.details if detail["group"]["customer"] == customer]
        lines = {detail["id"]: (detail["sequence"], detail["level"]) for detail in details}
        assert [*lines.values()] == [*_lines_of(records, customer)], (seed, customer)


def _lines_of(records: list[dict[str, Any]], customer: str) -> Iterator[tuple[str, int]]:
    """Record and level of each crossing of a group, in the order in which its number went up and down."""
    for record in records:
        images = [record["dynamodb"].get(name) or {} for name in ("OldImage", "NewImage")]
        if images[1].get("_type") == {"S": "usage"} and record["dynamodb"]["Keys"]["pk"] == {"S": f"USAGE#{customer}"}:
            old, new = (int(image.get("usage", {"N": "0"})["N"]) for image in images)
            levels = [level for level in PLAN.at if min(old, new) < level <= max(old, new)]
            sequence = record["dynamodb"]["SequenceNumber"].zfill(40)
            yield from ((sequence, int(level)) for level in (levels if old < new else reversed(levels)))


def _delivered(seed: int, is_lasting: Callable[[dict[str, Any]], bool]) -> tuple[Bus, list[dict[str, Any]]]:
    """Details that EventBridge has taken, and items of the outbox, once nothing is left of the stream."""
    rng = random.Random(seed)
    with counters_in_memory([LARGE_USAGE, LARGE_PLAN], now=NOW, seed=seed, faults=FEW_FAULTS) as counters:
        stream = counters._memory.tables[counters.table_name].stream
        bus = Bus(rng, is_lasting=is_lasting)
        mapping = NotifierMapping(stream, rng, bus)
        for number in range(12):
            customer = rng.choice([*UNITS])
            event = {"id": f"{customer}{number % 3}", "customer": customer, "units": rng.choice(UNITS[customer])}
            counters.accept(CALL, event | {"revision": number})
            mapping.deliver()
            counters.get(LARGE_USAGE, customer=customer)
        counters.require_all_counted()
        return bus, _finish(counters, mapping)


def test_every_crossing_is_delivered_with_all_its_digits_and_no_shard_waits() -> None:
    crossed = 0
    for seed in range(scaled(6)):
        bus, outbox = _delivered(seed, lambda _: False)
        details = {detail["id"]: detail for detail in bus.details}
        assert {*details} == {item["id"]["S"] for item in outbox}, seed
        for item in outbox:
            for name in ("level", "old", "new"):
                number = details[item["id"]["S"]][name]
                assert Decimal(number) == Decimal(item[name]["S"]), (seed, name)
                assert isinstance(number, str) == (not -LARGEST - 1 <= Decimal(number) <= LARGEST), (seed, name)
        crossed += len(outbox)
    assert crossed > scaled(45)


def test_a_crossing_that_is_refused_for_ever_holds_up_no_other() -> None:
    lasting = 0
    for seed in range(scaled(8)):
        bus, outbox = _delivered(seed, lambda detail: int(detail["id"], 16) % 3 == 0)
        expected = {item["id"]["S"] for item in outbox if int(item["id"]["S"], 16) % 3}
        assert {detail["id"] for detail in bus.details} == expected, seed
        lasting += len(outbox) - len(expected)
    assert lasting > scaled(12)
