"""Members of a `Distinct` expire, and its numbers stay: no member counts twice, whatever comes late or again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from counters_lambda.counting.verification import Difference
from dynamodb_counters import Aggregate, Count, Counter, Distinct, Event, InvalidArgumentError
from dynamodb_counters._tiers import DAY, HOUR
from dynamodb_counters.errors import CommitError
from simulation.faults.hooked_client import failing
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.world import World, reach

VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
VISITORS = Distinct("visitors", VIEW, pk="SITE", sk="VISITORS#{at:day}", member="client", retention=timedelta(days=2))
VIEWS = Aggregate("views", VIEW, pk="SITE", sk="VIEWS", measures={"views": Count()})
FRIDAY = {"at:day": "2026-11-20"}
ANN = {**FRIDAY, "client": "ann"}
CLOSED = datetime(2026, 11, 23, tzinfo=UTC).timestamp()


class Site(World):
    """A table that counts visitors, on Friday at 10."""

    def view(self, number: int, client: str = "ann", at: str = "2026-11-20T10:00:00Z") -> list[Record]:
        return self.accept(VIEW, {"id": str(number), "client": client, "at": at})

    def until(self, moment: float) -> None:
        self.clock.advance(moment - self.clock())

    def visitors(self, day: int = 20) -> int:
        return int(self.counters.get(VISITORS.total, {"at:day": f"2026-11-{day}"})["distinct"])

    def of_ann(self) -> int:
        """Return how many items a member has."""
        return int(self.counters.get(VISITORS._parts[0], ANN)["items"])

    def views(self) -> int:
        return int(self.counters.get(VIEWS)["views"])


@pytest.fixture
def site() -> Site:
    return Site(VISITORS, VIEWS)


def _counted(site: Site) -> None:
    site.view(1)
    site.deliver_all()
    assert (site.visitors(), site.of_ann()) == (1, 1)


def test_deltas_that_an_item_could_not_take_are_late_after_the_retention(site: Site) -> None:
    _counted(site)
    refused = failure("UpdateItem", "ValidationException")
    client = failing(site.table, "update_item", lambda update: "MEMBER" in update["Key"]["sk"]["S"], refused)
    before = len(site.records())
    site.view(2)
    site.deliver(site.records()[before:], by=site.process(client))
    [entry] = site.counters.quarantined()
    site.until(CLOSED)
    before = len(site.records())
    assert site.counters.redrive(entry)
    assert (site.deliver(site.records()[before:]).late, site.of_ann()) == (1, 1)


def test_a_batch_that_fails_beyond_the_retention_counts_its_member_once(site: Site) -> None:
    site.until(CLOSED - HOUR)
    site.view(1)
    refused = failure("UpdateItem", "AccessDeniedException")
    client = failing(site.table, "update_item", lambda update: update["Key"]["sk"]["S"] == "VIEWS", refused)
    with pytest.raises(CommitError):
        site.deliver(site.young(site.records()), by=site.process(client))
    site.until(CLOSED + 20 * HOUR)
    site.table.expire()
    site.deliver_all()
    assert (site.visitors(), site.views()) == (1, 1)


def test_a_transaction_counts_no_member_after_the_retention(site: Site) -> None:
    site.until(CLOSED)
    counted = site.counters.record_once(
        VIEW, {"id": "1", "client": "ann", "at": "2026-11-20T10:00:00Z"}, [VISITORS._parts[0], VIEWS]
    )
    assert (counted.status, site.of_ann(), site.views()) == ("accepted", 0, 1)


@pytest.mark.parametrize("name", ["increment", "reset"])
def test_groups_whose_retention_is_over_take_no_direct_change(site: Site, name: str) -> None:
    change, visits = getattr(site.counters, name), Counter("visits", by="at:day", retention=timedelta(days=2))
    site.deploy(VISITORS._parts[0], visits)
    assert change(visits, FRIDAY) == {"visits": 1 if name == "increment" else 0}
    site.until(CLOSED)
    with pytest.raises(InvalidArgumentError, match=r"^invalid values=.*a group of 'visits' whose retention is not"):
        change(visits, FRIDAY)
    with pytest.raises(InvalidArgumentError, match=r"^invalid at:day='Friday': expected a UTC day"):
        change(visits, {"at:day": "Friday"})


def _verified(site: Site, at: float) -> list[Difference]:
    """Differences found by a verification that begins at a time, an hour after the shard was awake."""
    site.until(at - HOUR)
    site.skip()
    site.view(3, "eve", datetime.fromtimestamp(site.clock(), UTC).isoformat())
    site.settle()
    site.until(at)
    site.table.expire()
    site.deliver_new()
    return site.verify().differences


@pytest.mark.parametrize("hours", [-1, 1, 25, 71, 72, 200])
@pytest.mark.parametrize("deletes", [True, False])
def test_a_verification_takes_nothing_that_is_over_for_drift(
    site: Site, monkeypatch: pytest.MonkeyPatch, hours: int, *, deletes: bool
) -> None:
    _counted(site)
    site.view(2, "bob", "2026-11-20T12:00:00Z")
    site.deliver_all()
    site.counters.retract(VIEW, {"id": "2"})
    site.deliver_all()
    if not deletes:
        monkeypatch.setattr(site.table, "expire", lambda: None)
    assert _verified(site, CLOSED + hours * HOUR) == []


def _added() -> Site:
    """Return views of five days, one of a visitor each, before visitors are declared."""
    site = Site(VIEWS)
    for number, day in enumerate((16, 17, 18, 19, 20)):
        site.view(number, f"c{number}", f"2026-11-{day}T10:00:00Z")
    site.deliver_all()
    site.deploy(VISITORS, VIEWS)
    site.skip()
    return site


def test_a_backfill_that_rested_adds_no_member_that_may_be_gone() -> None:
    site = _added()
    step = reach(site.backfill().steps(), "adding")
    site.deliver_new()
    site.deliver_new()
    site.clock.advance(4 * DAY)
    assert len(site.table.expire()) > 0
    site.fill(run=step.run)
    # The 18th, counted until the 21st, may be gone since the 24th: counted before, and not once more.
    members = {item["sk"]["S"] for item in site.table.items() if "#MEMBER#" in item["sk"]["S"]}
    assert members == {"VISITORS#2026-11-19#MEMBER#c3", "VISITORS#2026-11-20#MEMBER#c4"}
    assert [site.visitors(day) for day in (18, 19, 20)] == [1, 1, 1]
