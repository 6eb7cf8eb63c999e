"""Statuses on groups: exact, drifted, unknown, waits. What has gone leaves a group with more than its sources."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from counters_lambda.counting.counted_names import CountedNames
from counters_lambda.counting.verification import CHANGED_MEANWHILE, Verification
from dynamodb_counters import Aggregate, Average, Count, Event, Histogram, Packed, Ranking, Sum, TableKeys, Window
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._registry import DECLARED, Registry, entries_of, entry_key, write_registry
from dynamodb_counters.errors import BackfillError
from simulation.world import World, interrupt
from tests.exactly_once.test_run_commands import command, lines
from tests.exactly_once.test_runs import ORDER, compared_and_ended

VIEW = Event("view", pk="URL#{url}", sk="T#{at}#{id}", retention=timedelta(days=35))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count(), "weight": Sum("weight")})
MEASURES: Any = {"mean": Average("weight"), "sizes": Histogram("weight", bounds=(0, 5))}
HEAVY = Aggregate("heavy", VIEW, pk="HEAVY", sk="ALL", measures=MEASURES)
FOREVER = replace(VIEW, retention=None)
LASTING = replace(VIEWS, source=FOREVER)
PAGED = replace(VIEWS, pk="PAGES", sk="{url}", source=FOREVER, pages=True)
RANKED = replace(VIEWS, name="ranked", source=FOREVER, pk="PAGE#{url}", ranking=Ranking("views", leaderboard="PAGES"))
JOB = Event("job", pk="JOB#{id}", sk="JOB")
JOBS = Aggregate("jobs", JOB, pk="JOBS", sk="NUMBER", measures={"jobs": Count()})


class Site(World):
    """A table whose aggregator counts views as they come."""

    views = 0

    def view(self, times: int = 1, url: str = "/", event: Event = VIEW, **more: Any) -> None:
        for _ in range(times):
            self.views += 1
            self.accept(event, {"url": url, "at": int(self.clock()), "id": self.views, "weight": 2, **more})
        self.deliver_new()


def expired(*declared: Aggregate) -> Site:
    """Seven views are counted, of which the first three have expired."""
    site = Site(*declared)
    site.view(3)
    assert site.expire(36)
    site.view(4)
    return site


LEAVING = replace(VIEWS, name="leaving", pk="LEAVING#{url}", on_expiry="subtract")
PER_DAY = Aggregate("per_day", VIEW, by="at:day", measures={"views": Count()}, retention=timedelta(days=40))
ELSEWHERE = {ttl: replace(ORDER, where=None, keys=TableKeys("id", ttl=ttl)) for ttl in (None, "expiresAt")}
TOTALS = {"total": Sum("price")}


@pytest.mark.parametrize(
    ("declaration", "may_exceed"),
    [
        *((LASTING, False), (VIEWS, True), (LEAVING, False)),
        (Window("hours", FOREVER, by="url", time="at"), False),
        (Window("hours", VIEW, by="url", time="at"), True),
        (Aggregate("sales", ORDER, pk="SALES", sk="ALL", measures=TOTALS), False),
        (Aggregate("sales", ELSEWHERE[None], pk="SALES", sk="ALL", measures=TOTALS), False),
        (Aggregate("sales", ELSEWHERE["expiresAt"], pk="SALES", sk="ALL", measures=TOTALS), True),
        (Aggregate("over", VIEWS, pk="OVER", sk="ALL", measures={"pages": Count()}), False),
        (Aggregate("over", PER_DAY, pk="OVER", sk="ALL", measures={"days": Count()}), True),
    ],
)
def test_a_group_may_exceed_sources_that_expire(declaration: Aggregate | Window, may_exceed: bool) -> None:
    entries = {entry.name: entry for entry in entries_of([declaration])}
    header = {DECLARED: {"S": encode((declaration,), attributes=True)}}
    assert Registry(header, entries).may_exceed(declaration) == may_exceed
    noted = {name: replace(entry, surplus=True) for name, entry in entries.items()}
    assert Registry(header, noted).may_exceed(declaration) == (declaration.on_expiry == "keep")


def test_what_no_code_declares_any_more_may_expire() -> None:
    assert Registry({}, {entry.name: entry for entry in entries_of([LASTING])}).may_exceed(LASTING)


OF_EACH_KIND = pytest.mark.parametrize("packed", [None, Packed("at", timedelta(minutes=10))], ids=["items", "chunks"])


def five_views(packed: Packed | None) -> tuple[Site, Event, Aggregate, Aggregate]:
    """Return a table that counts five views, which stay for good, in two ways."""
    event = replace(VIEW, packed=packed, retention=None)
    views = replace(VIEWS, source=event)
    live = replace(views, name="live", pk="LIVE#{url}", on_expiry="subtract")
    site = Site(views, live)
    events = [{"url": "/", "at": int(site.clock()), "id": number, "weight": 2} for number in range(5)]
    site.counters.accept_many(event, events).raise_for_rejected()
    site.deliver_new()
    return site, event, views, live


@OF_EACH_KIND
def test_what_is_erased_and_stays_counted_is_unknown_never_drift(packed: Packed | None) -> None:
    site, event, views, live = five_views(packed)
    site.spoil(views, "views", 7, url="/")
    assert site.missing() == [("drifted", {"views": -7})]
    site.spoil(views, "views", -7, url="/")
    site.erase(event, {"id": 1}, "keep")
    site.deliver_new()
    assert [site.counters.get(aggregate, url="/")["views"] for aggregate in (views, live)] == [5, 4]
    assert site.missing() == [("unknown", {"views": -1, "weight": -2})]
    site.spoil(live, "views", 7, url="/")
    site.spoil(views, "views", -3, url="/")
    assert site.missing() == [("drifted", {"views": -7}), ("drifted", {"views": 2}), ("unknown", {"weight": -2})]


@OF_EACH_KIND
@pytest.mark.parametrize(("phase", "count"), [("waiting", 4), ("scanning", 5), ("draining", 5), ("adding", 5)])
def test_an_erasure_during_a_backfill_keeps_counts_from_its_cut_on(
    packed: Packed | None, phase: str, count: int
) -> None:
    site, event, views, _ = five_views(packed)
    for step in site.backfill("views").steps():
        if step.phase == phase:
            site.erase(event, {"id": 1}, "keep")
    site.deliver_new()
    assert site.read(views, url="/")[0] == {"views": count, "weight": 2 * count}
    assert site.missing() == ([] if count == 4 else [("unknown", {"views": -1, "weight": -2})])


def surplus(site: Site) -> dict[str, bool]:
    return {name: entry.surplus for name, entry in site.registry.names.items()}


@OF_EACH_KIND
@pytest.mark.parametrize("counts", ["keep", "take_back"])
def test_a_name_exceeds_its_sources_once_something_was_erased_that_it_counts(
    packed: Packed | None, counts: Any
) -> None:
    site, event, _, _ = five_views(packed)
    assert surplus(site) == {"views": False, "live": False}
    site.erase(event, {"id": 1}, counts)
    site.deliver_new()
    # Rows that take back leave a chunk, too.
    assert surplus(site) == {"views": counts == "keep" or packed is not None, "live": False}


def test_events_that_expire_stay_counted_although_their_retention_was_given_up() -> None:
    site = Site(VIEWS)
    site.view(3)
    site.deploy(LASTING)
    assert site.expire(36)
    site.view(4, event=FOREVER)
    assert site.missing() == [("unknown", {"views": -3, "weight": -6})]


def test_a_name_that_is_filled_anew_holds_no_more_than_its_sources() -> None:
    site = expired(VIEWS)
    assert surplus(site) == {"views": True}
    site.fill("views")
    assert surplus(site) == {"views": False}
    assert site.missing() == []


def test_what_a_name_counts_too_much_is_noted_once_and_never_of_a_name_that_is_gone() -> None:
    site = Site(VIEWS)
    process, other = (CountedNames(site.store, (VIEWS,)) for _ in range(2))
    process.refresh()
    other.refresh()
    process.note_surplus(["views"])
    assert surplus(site) == {"views": True}
    site.delete(entry_key("views"))
    process.note_surplus(["views"])
    other.note_surplus(["views"])
    assert site.item(entry_key("views")) is None


def test_a_change_of_a_name_that_was_noted_meanwhile_is_refused() -> None:
    site = Site(VIEWS)
    before = site.registry
    process = CountedNames(site.store, (VIEWS,))
    process.refresh()
    process.note_surplus(["views"])
    entry = before.entries["views"]
    assert not write_registry(site.store, before, [(entry, entry.entering("stale", site.clock()))])
    site.enter("views", "stale")
    assert surplus(site) == {"views": True}


def test_expired_items_make_a_group_no_smaller() -> None:
    site = expired(VIEWS, HEAVY)
    assert site.missing() == [
        ("unknown", {"mean.count": -3, "mean.sum": -6, "sizes.0": -3}),
        ("unknown", {"views": -3, "weight": -6}),
    ]
    for name in ("mean.count", "mean.sum", "sizes.0"):
        site.spoil(HEAVY, name, -7)
    for name in ("views", "weight"):
        site.spoil(VIEWS, name, -20, url="/")
    differences = site.verify().differences
    assert [(difference.name, difference.status, dict(difference.missing)) for difference in differences] == [
        ("heavy", "drifted", {"mean.count": 4, "sizes.0": 4}),
        ("heavy", "unknown", {"mean.sum": 1}),
        ("views", "drifted", {"views": 17}),
        ("views", "unknown", {"weight": 14}),
    ]
    reason = "at least so much: events may have expired, or been erased, that it counted, too"
    assert {difference.reason for difference in differences if difference.status == "drifted"} == {reason}
    # A group that is gone has lost all there is.
    site.delete(site.group_item(VIEWS, url="/"))
    assert site.missing()[-1] == ("drifted", {"views": 4, "weight": 8})


def test_commands_say_how_many_groups_cannot_be_verified_and_leave_them() -> None:
    """Two groups, of which one counts what has expired besides."""
    site = expired(VIEWS)
    site.view(4, url="/about")
    site.skip()
    done = command(site, "verify")
    *groups, summary = lines(done.out)
    assert done.code == 4
    assert summary.startswith("2 groups compared: none drifted, 1 cannot be verified, 0 wait for the quarantine; ")
    assert any(line.startswith("views url=/ views=-3 weight=-6 unknown events may have expired") for line in groups)
    assert command(site, "verify", "--repair", answer=lambda _: False).code == 4
    # Drift comes before what is unknown.
    site.spoil(VIEWS, "views", -2, url="/about")
    assert command(site, "verify").code == 1
    done = command(site, "verify", "--repair", "--yes")
    assert (done.code, lines(done.out)) == (4, ["1 item repaired"])
    assert [site.counters.get(VIEWS, url=url)["views"] for url in ("/", "/about")] == [7, 4]


@pytest.mark.parametrize("spoiled", [{"views": -8}, {"_score": 5}, {"views": 1, "_score": -3}, {"weight": 1}])
def test_scores_are_verified_and_repaired_on_their_own(spoiled: dict[str, int]) -> None:
    site = Site(RANKED)
    site.view(14, event=FOREVER)
    for name, by in spoiled.items():
        site.spoil(RANKED, name, by, url="/")
    missing, verifying = {name: -by for name, by in spoiled.items()}, site.verify()
    assert [(difference.status, difference.missing) for difference in verifying.differences] == [("drifted", missing)]
    assert verifying.repair() == (1, 0)
    assert site.missing() == []
    [item] = [item for item in site.table.items() if "_score" in item]
    assert [item[name]["N"] for name in ("_score", "views", "weight")] == ["14", "14", "28"]


def test_a_sum_of_many_digits_is_repaired_to_the_last_one() -> None:
    site, weight = Site(LASTING), Decimal("12345678901234567890123456789.0625")
    site.view(event=FOREVER, weight=weight)
    site.spoil(LASTING, "weight", -12345678901234567890123456789, url="/")
    site.verify().repair()
    assert site.counters.get(LASTING, {"url": "/"}).measures["weight"] == weight


@pytest.mark.parametrize("name", ["weight", "_r"])
def test_a_repair_leaves_an_item_that_cannot_take_it_alone(name: str) -> None:
    """Its sum stands in no record: once redriven from the quarantine, another repair might have added it, too."""
    site = Site(LASTING)
    site.view(3, event=FOREVER)
    site.spoil(LASTING, "views", -1, url="/")
    key = site.group_item(LASTING, url="/")
    site.write(item := {**(site.item(key) or {}), name: {"S": "text"}})
    assert site.verify().repair() == (0, 1)
    assert (site.waiting(), site.item(key)) == (0, item)


def test_a_repair_of_a_page_leaves_spoiled_groups_and_those_that_another_came_between() -> None:
    site = Site(PAGED)
    for url in "ab":
        site.view(3, url=url, event=FOREVER)
    [page] = [item for item in site.table.items() if item["pk"]["S"].startswith("PAGES#")]
    low = next(name for name in page if name.endswith("=a") and page[name].get("N") == "3")
    bad = next(name for name in page if name.endswith("=b") and page[name].get("N") == "6")
    site.write({**page, low: {"N": "2"}, bad: {"S": "text"}})
    assert site.verify().repair() == (1, 1)
    assert site.counters.get(PAGED, url="a").measures["views"] == 3
    site.write({**page, **{name: {"N": "2"} for name in page if page[name].get("N") == "3"}})
    verifying = site.verify()
    site.verify().repair()
    # One group was read before the other repair, one after it.
    verifying.differences[1] = replace(verifying.differences[1], repairs=1)
    assert verifying.repair() == (0, 1)


def test_a_repair_leaves_a_name_that_was_filled_anew_meanwhile() -> None:
    site = Site(LASTING)
    site.view(3, event=FOREVER)
    site.spoil(LASTING, "views", -1, url="/")
    verifying = site.verify()
    site.fill("views")
    assert verifying.repair() == (0, 1)


@pytest.fixture
def jobs() -> World:
    world = World(JOBS, shards=3)
    world.counters.record_once(JOB, {"id": 0}, [JOBS])
    world.deliver_all()
    return world


@pytest.mark.parametrize("spoiled", [0, 5])
def test_counts_of_a_transaction_just_now_are_no_drift_and_not_repaired(
    jobs: World, monkeypatch: pytest.MonkeyPatch, spoiled: int
) -> None:
    """The transaction counts once the log has passed the scan, and its record comes later."""
    jobs.spoil(JOBS, "jobs", spoiled)
    interrupt(monkeypatch, Verification, "_finish", lambda: jobs.counters.record_once(JOB, {"id": 1}, [JOBS]))
    actual = [(difference.status, difference.reason) for difference in jobs.verify().differences]
    assert actual == ([("unknown", CHANGED_MEANWHILE)] if spoiled else [])


def test_no_transactions_are_waited_for_once_another_process_has_ended_the_run(jobs: World) -> None:
    _, second = compared_and_ended(jobs)
    jobs.spoil(JOBS, "jobs", 5)
    with pytest.raises(BackfillError, match="another process has ended run"):
        list(islice(second, 1000))
