"""Members of a `Distinct` expire, and its numbers stay: no member counts twice, whatever comes late or again."""

from __future__ import annotations

import collections
from datetime import UTC, datetime, timedelta

import pytest

from dynamodb_counters import Aggregate, Count, Counter, Distinct, Event, InvalidArgumentError
from dynamodb_counters._backfill.verification import Difference
from dynamodb_counters._commit.batch import Report
from dynamodb_counters._timeline.tiers import DAY, HOUR
from dynamodb_counters.errors import CommitError
from simulation.faults.hooked_client import failing
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.night import scaled
from simulation.pairs import coverage, days
from simulation.pairs.days import ExpiringMembers
from simulation.world import World, reach

VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
VISITORS = Distinct("visitors", VIEW, pk="SITE", sk="VISITORS#{at:day}", member="client", retention=timedelta(days=2))
VIEWS = Aggregate("views", VIEW, pk="SITE", sk="VIEWS", measures={"views": Count()})
FRIDAY = {"at:day": "2026-11-20"}
ANN = {**FRIDAY, "client": "ann"}
CLOSED = datetime(2026, 11, 23, tzinfo=UTC).timestamp()
GONE = CLOSED + 3 * DAY
SEEDS = scaled(3)


@pytest.mark.parametrize("pages", [False, True], ids=["items", "pages"])
def test_every_number_is_exact_whatever_expires_and_comes_late(*, pages: bool) -> None:
    reached: collections.Counter[str] = collections.Counter()
    for seed in range(SEEDS):
        outcome = ExpiringMembers(seed, pages=pages).run()
        assert outcome.wrong == [], f"ExpiringMembers({seed}, pages={pages}).run()"
        reached += outcome.reached + outcome.faults
    wanted = {
        days.EXPIRED: 100,
        days.LATE: 300,
        coverage.TIMED_OUT: 50,
    }
    often = {name: times * SEEDS // 80 for name, times in wanted.items()}
    assert {name: reached[name] for name, times in often.items() if reached[name] < times} == {}


@pytest.fixture
def bench() -> World:
    """A table that counts visitors, on Friday at 10."""
    return World(VISITORS, VIEWS)


def _view(bench: World, number: int, client: str = "ann", at: str = "2026-11-20T10:00:00Z") -> None:
    assert bench.counters.accept(VIEW, {"id": str(number), "client": client, "at": at}).status == "accepted"


def _at(bench: World, moment: float) -> None:
    bench.clock.advance(moment - bench.clock())


def _deliver(bench: World, records: int | list[Record] = 0) -> Report:
    """Deliver records, or those from a place on."""
    found = bench.records()[records:] if isinstance(records, int) else records
    return bench.aggregator.handle({"shardId": bench.shards()[0], "Records": found})


def _number(bench: World, values: dict[str, str] = FRIDAY) -> int:
    return int(bench.counters.get(VISITORS.total, values).measures["distinct"])


def _items(bench: World) -> int:
    return int(bench.counters.get(VISITORS._parts[0], ANN).measures["items"])


def _stored(bench: World) -> int:
    """How many members there are in the table, where reads are refused."""
    return sum(item["_type"] == {"S": VISITORS._parts[0].name} for item in bench.table.items() if "_type" in item)


def _views(bench: World) -> int:
    return int(bench.counters.get(VIEWS, {}).measures["views"])


def _counted(bench: World) -> World:
    _view(bench, 1)
    bench.deliver_all()
    assert (_number(bench), _items(bench)) == (1, 1)
    return bench


def test_deltas_that_an_item_could_not_take_are_late_after_the_retention(bench: World) -> None:
    _counted(bench)
    refused = failure("UpdateItem", "ValidationException")
    client = failing(bench.table, "update_item", lambda update: "MEMBER" in update["Key"]["sk"]["S"], refused)
    before = len(bench.records())
    _view(bench, 2)
    bench.deliver(bench.records()[before:], by=bench.process(client))
    [entry] = bench.counters.quarantined()
    _at(bench, CLOSED)
    before = len(bench.records())
    assert bench.counters.redrive(entry)
    assert (_deliver(bench, before).late, _items(bench)) == (1, 1)


def test_a_batch_that_fails_beyond_the_retention_counts_its_member_once(bench: World) -> None:
    _at(bench, CLOSED - HOUR)
    _view(bench, 1)
    refused = failure("UpdateItem", "AccessDeniedException")
    client = failing(bench.table, "update_item", lambda update: update["Key"]["sk"]["S"] == "VIEWS", refused)
    with pytest.raises(CommitError):
        bench.deliver(bench.young(bench.records()), by=bench.process(client))
    _at(bench, CLOSED + 20 * HOUR)
    bench.table.expire()
    bench.deliver_all()
    assert (_number(bench), _views(bench)) == (1, 1)


def test_a_transaction_counts_no_member_after_the_retention(bench: World) -> None:
    _at(bench, CLOSED)
    counted = bench.counters.record_once(
        VIEW, {"id": "1", "client": "ann", "at": "2026-11-20T10:00:00Z"}, [VISITORS._parts[0], VIEWS]
    )
    assert (counted.status, _items(bench), _views(bench)) == ("accepted", 0, 1)


@pytest.mark.parametrize("name", ["increment", "reset"])
def test_groups_whose_retention_is_over_take_no_direct_change(bench: World, name: str) -> None:
    change, visits = getattr(bench.counters, name), Counter("visits", by="at:day", retention=timedelta(days=2))
    bench.deploy(VISITORS._parts[0], visits)
    assert change(visits, FRIDAY) == {"visits": 1 if name == "increment" else 0}
    _at(bench, CLOSED)
    with pytest.raises(InvalidArgumentError, match=r"^invalid values=.*a group of 'visits' whose retention is not"):
        change(visits, FRIDAY)
    with pytest.raises(InvalidArgumentError, match=r"^invalid at:day='Friday': expected a UTC day"):
        change(visits, {"at:day": "Friday"})


def _verified(bench: World, at: float) -> list[Difference]:
    """Differences found by a verification that begins at a time, an hour after the shard was awake."""
    _at(bench, at - HOUR)
    bench.skip()
    _view(bench, 3, "eve", datetime.fromtimestamp(bench.clock(), UTC).isoformat())
    bench.settle()
    _at(bench, at)
    bench.table.expire()
    bench.deliver_new()
    return bench.verify().differences


@pytest.mark.parametrize("hours", [-1, 1, 25, 71, 72, 200])
@pytest.mark.parametrize("deletes", [True, False])
def test_a_verification_takes_nothing_that_is_over_for_drift(
    bench: World, monkeypatch: pytest.MonkeyPatch, hours: int, *, deletes: bool
) -> None:
    _counted(bench)
    _view(bench, 2, "bob", "2026-11-20T12:00:00Z")
    bench.deliver_all()
    bench.counters.retract(VIEW, {"id": "2"})
    bench.deliver_all()
    if not deletes:
        monkeypatch.setattr(bench.table, "expire", lambda: None)
    assert _verified(bench, CLOSED + hours * HOUR) == []


def _added() -> World:
    """Views of five days, one of a visitor each, before visitors are declared."""
    bench = World(VIEWS)
    for number, day in enumerate((16, 17, 18, 19, 20)):
        _view(bench, number, f"c{number}", f"2026-11-{day}T10:00:00Z")
    bench.deliver_all()
    bench.deploy(VISITORS, VIEWS)
    bench.skip()
    return bench


def test_a_backfill_that_rested_adds_no_member_that_may_be_gone() -> None:
    bench = _added()
    step = reach(bench.backfill().steps(), "adding")
    bench.deliver_new()
    bench.deliver_new()
    bench.clock.advance(4 * DAY)
    assert len(bench.table.expire()) > 0
    bench.fill(run=step.run)
    # The 18th, counted until the 21st, may be gone since the 24th: counted before, and not once more.
    members = {item["sk"]["S"] for item in bench.table.items() if "#MEMBER#" in item["sk"]["S"]}
    assert members == {"VISITORS#2026-11-19#MEMBER#c3", "VISITORS#2026-11-20#MEMBER#c4"}
    assert [_number(bench, {"at:day": f"2026-11-{day}"}) for day in (18, 19, 20)] == [1, 1, 1]
