"""Verdicts on groups: exact, drifted, unknown, waits. What has gone leaves a group with more than its sources."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Average,
    Count,
    Counter,
    Event,
    Histogram,
    Items,
    Packed,
    Ranking,
    Sum,
    TableKeys,
    Window,
)
from dynamodb_counters._backfill.verification import CHANGED_MEANWHILE, Difference, Verification
from dynamodb_counters._control.counted_names import CountedNames
from dynamodb_counters._control.registry import DECLARED, Registry, entries_of, entry_key, read_registry, write_registry
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import BackfillError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import (
    Live,
    Stream,
    backfill,
    before_the_end,
    compared_and_ended,
    fill,
    mend,
    spoil,
    verification,
    verify,
)
from tests.exactly_once.test_run_commands import Counters, Person, lines

VIEW = Event("view", pk="URL#{url}", sk="T#{at}#{id}", retention=timedelta(days=35))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count(), "weight": Sum("weight")})
HEAVY = Aggregate(
    "heavy",
    VIEW,
    pk="HEAVY",
    sk="ALL",
    measures={"mean": Average("weight"), "sizes": Histogram("weight", bounds=(0, 5))},
)
FOREVER = replace(VIEW, retention=None)
RANKED = Aggregate(
    "ranked",
    FOREVER,
    pk="PAGE#{url}",
    sk="ALL",
    measures={"views": Count(), "weight": Sum("weight")},
    ranking=Ranking(measure="views", leaderboard="PAGES"),
)
JOB = Event("job", pk="JOB#{id}", sk="JOB")
JOBS = Aggregate("jobs", JOB, pk="JOBS", sk="NUMBER", measures={"jobs": Count()})


class Site(Live):
    """A table whose aggregator counts views as they come."""

    def __init__(self, *declarations: Declaration) -> None:
        super().__init__(*declarations)
        self._views = 0

    def view(self, times: int = 1, url: str = "/", event: Event = VIEW) -> None:
        for _ in range(times):
            self._views += 1
            at = int(self.bench.clock())
            self.bench.counters.accept(event, {"url": url, "at": at, "id": self._views, "weight": 2})
        self.stream.deliver()

    def expire(self, days: float = 36) -> None:
        """Have the TTL process delete what is older; by then, the stream has other shards."""
        self.bench.clock.advance(days * DAY)
        for shard in self.bench.table.stream.open_shards():
            self.bench.table.stream.split(shard)
        assert self.bench.table.expire()

    def lose(self, declaration: Aggregate, **values: str) -> None:
        [key] = ItemLayout(declaration).keys(group_key(declaration, values))
        self.bench.table.delete_item(TableName=self.bench.table.name, Key=key)

    def found(self) -> list[tuple[str, dict[str, Any]]]:
        return found(self.verify())


def found(verifying: Verification) -> list[tuple[str, dict[str, Any]]]:
    return [(each.verdict, dict(each.missing)) for each in verifying.differences]


LEAVING = replace(VIEWS, name="leaving", pk="LEAVING#{url}", on_expiry="subtract")
PER_DAY = Aggregate("per_day", VIEW, by="at:day", measures={"views": Count()}, retention=timedelta(days=40))
ITEMS = Items("sale", where=Attr("price").exists())
ELSEWHERE = {ttl: Items("sale", keys=TableKeys("id", ttl=ttl)) for ttl in (None, "expiresAt")}
TOTALS = {"total": Sum("price")}


@pytest.mark.parametrize(
    ("declaration", "may_exceed"),
    [
        (replace(VIEWS, source=FOREVER), False),
        (VIEWS, True),
        (LEAVING, False),
        (Window("hours", FOREVER, by="url", time="at"), False),
        (Window("hours", VIEW, by="url", time="at"), True),
        (Aggregate("sales", ITEMS, pk="SALES", sk="ALL", measures=TOTALS), False),
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
    views = replace(VIEWS, source=FOREVER)
    assert Registry({}, {entry.name: entry for entry in entries_of([views])}).may_exceed(views)


@pytest.mark.parametrize("event", [FOREVER, VIEW], ids=["for good", "expires"])
@pytest.mark.parametrize("by", [-2, 0, 5])
def test_a_group_waits_for_the_quarantine_whatever_it_lacks(event: Event, by: int) -> None:
    tags = Aggregate("tags", event, pk="TAG#{tags[]}", sk="ALL", measures={"views": Count()}, max_groups=2)
    site = Site(tags)
    for number, names in enumerate(("a", "a", "abc")):
        view = {"url": "/", "at": int(site.bench.clock()), "id": number, "tags": [*names]}
        site.bench.counters.accept(event, view)
    site.stream.deliver()
    mend(site.bench, replace(tags, max_groups=3))
    spoil(site.bench, tags, "views", by, **{"tags[]": "a"})
    verifying = site.verify()
    assert {(each.verdict, each.reason) for each in verifying.differences} == {
        ("waits", "1 entry of the quarantine waits for it")
    }
    assert verifying.groups("waits").total() == 3
    assert verifying.repair() == (0, 0)


OF_EACH_KIND = pytest.mark.parametrize("packed", [None, Packed("at", timedelta(minutes=10))], ids=["items", "chunks"])


def five_views(packed: Packed | None) -> tuple[Site, Event, Aggregate, Aggregate]:
    """A table that counts five views, which stay for good, in two ways."""
    event = replace(VIEW, packed=packed, retention=None)
    views = replace(VIEWS, source=event)
    live = replace(views, name="live", pk="LIVE#{url}", on_expiry="subtract")
    site = Site(views, live)
    seen = [{"url": "/", "at": int(site.bench.clock()), "id": number, "weight": 2} for number in range(5)]
    site.bench.counters.accept_many(event, seen).raise_for_rejected()
    site.stream.deliver()
    return site, event, views, live


@OF_EACH_KIND
def test_what_is_erased_and_stays_counted_is_unknown_never_drift(packed: Packed | None) -> None:
    site, event, views, live = five_views(packed)
    spoil(site.bench, views, "views", 7, url="/")
    assert site.found() == [("drifted", {"views": -7})]
    spoil(site.bench, views, "views", -7, url="/")

    Eraser(site.bench.store, event, {"id": 1}).erase("keep")
    site.stream.deliver()
    assert [site.bench.counters.get(each, url="/")["views"] for each in (views, live)] == [5, 4]
    assert site.found() == [("unknown", {"views": -1, "weight": -2})]
    spoil(site.bench, live, "views", 7, url="/")
    spoil(site.bench, views, "views", -3, url="/")
    assert site.found() == [("drifted", {"views": -7}), ("drifted", {"views": 2}), ("unknown", {"weight": -2})]


@OF_EACH_KIND
@pytest.mark.parametrize(("phase", "kept"), [("waiting", 4), ("scanning", 5), ("draining", 5), ("adding", 5)])
def test_an_erasure_during_a_backfill_keeps_counts_from_its_cut_on(
    packed: Packed | None, phase: str, kept: int
) -> None:
    site, event, views, _ = five_views(packed)
    for step in backfill(site.bench, site.stream, names=["views"]).steps():
        if step.phase == phase:
            Eraser(site.bench.store, event, {"id": 1}).erase("keep")
    site.bench.clock.advance(61)
    site.stream.deliver()
    assert site.bench.counters.get(views, url="/").measures == {"views": kept, "weight": 2 * kept}
    assert site.found() == ([] if kept == 4 else [("unknown", {"views": -1, "weight": -2})])


def surplus(site: Site) -> dict[str, bool]:
    return {name: entry.surplus for name, entry in read_registry(site.bench.store).names.items()}


@OF_EACH_KIND
@pytest.mark.parametrize("counts", ["keep", "take_back"])
def test_a_name_exceeds_its_sources_once_something_was_erased_that_it_counts(
    packed: Packed | None, counts: Any
) -> None:
    site, event, _, _ = five_views(packed)
    assert surplus(site) == {"views": False, "live": False}
    Eraser(site.bench.store, event, {"id": 1}).erase(counts)
    site.stream.deliver()
    # Rows that take back leave a chunk, too.
    assert surplus(site) == {"views": counts == "keep" or packed is not None, "live": False}


def test_events_that_expire_stay_counted_although_their_retention_was_given_up() -> None:
    site = Site(VIEWS)
    site.view(3)
    site.bench.deploy([replace(VIEWS, source=FOREVER)])
    site.expire()
    site.view(4, event=FOREVER)
    assert site.found() == [("unknown", {"views": -3, "weight": -6})]


def test_a_name_that_is_filled_anew_holds_no_more_than_its_sources() -> None:
    site = Site(VIEWS)
    site.view(3)
    site.expire()
    site.view(4)
    assert surplus(site) == {"views": True}
    for _ in backfill(site.bench, site.stream, names=["views"]).steps():
        pass
    assert surplus(site) == {"views": False}
    assert site.found() == []


def test_what_a_name_counts_too_much_is_noted_once_and_never_of_a_name_that_is_gone() -> None:
    site = Site(VIEWS)
    process, other = (CountedNames(site.bench.store, (VIEWS,)) for _ in range(2))
    process.refresh()
    other.refresh()
    process.note_surplus(["views"])
    assert surplus(site) == {"views": True}
    key = {"TableName": site.bench.table.name, "Key": entry_key("views")}
    site.bench.table.delete_item(**key)
    process.note_surplus(["views"])
    other.note_surplus(["views"])
    assert "Item" not in site.bench.table.get_item(**key)


def test_a_change_of_a_name_that_was_noted_meanwhile_is_refused() -> None:
    site = Site(VIEWS)
    before = read_registry(site.bench.store)
    process = CountedNames(site.bench.store, (VIEWS,))
    process.refresh()
    process.note_surplus(["views"])
    entry = before.entries["views"]
    assert not write_registry(site.bench.store, before, [(entry, entry.entering("stale", site.bench.clock()))])
    again = read_registry(site.bench.store)
    entry = again.entries["views"]
    assert write_registry(site.bench.store, again, [(entry, entry.entering("stale", site.bench.clock()))])
    assert surplus(site) == {"views": True}


def test_a_counter_is_neither_verified_nor_backfilled() -> None:
    stock = Counter("stock", by="sku")
    site = Site(VIEWS, stock)
    site.view()
    site.bench.counters.increment(stock, sku="A-7")
    assert site.found() == []
    for make in (verification, backfill):
        with pytest.raises(BackfillError, match=r"invalid name='stock': .*, not a Counter"):
            next(make(site.bench, site.stream, names=["stock"]).steps())


def test_expired_items_make_a_group_no_smaller() -> None:
    site = Site(VIEWS, HEAVY)
    site.view(3)
    site.expire()
    site.view(4)
    assert site.found() == [
        ("unknown", {"mean.count": -3, "mean.sum": -6, "sizes.0": -3}),
        ("unknown", {"views": -3, "weight": -6}),
    ]
    for name in ("mean.count", "mean.sum", "sizes.0"):
        spoil(site.bench, HEAVY, name, -7)
    for name in ("views", "weight"):
        spoil(site.bench, VIEWS, name, -20, url="/")
    told = site.verify().differences
    assert [(each.name, each.verdict, dict(each.missing)) for each in told] == [
        ("heavy", "drifted", {"mean.count": 4, "sizes.0": 4}),
        ("heavy", "unknown", {"mean.sum": 1}),
        ("views", "drifted", {"views": 17}),
        ("views", "unknown", {"weight": 14}),
    ]
    assert {each.reason for each in told if each.verdict == "drifted"} == {
        "at least so much: events may have expired, or been erased, that it counted, too"
    }


def test_a_group_that_is_gone_has_lost_all_there_is() -> None:
    site = Site(VIEWS)
    site.view(3)
    site.expire()
    site.view(4)
    site.lose(VIEWS, url="/")
    assert site.found() == [("drifted", {"views": 4, "weight": 8})]


@pytest.fixture
def expired() -> Site:
    """Two groups of one, of which one counts what has expired besides."""
    site = Site(VIEWS)
    site.view(3)
    site.expire()
    site.view(4)
    site.view(4, url="/about")
    return site


def commands(site: Site) -> Counters:
    counters = Counters(site.bench)
    site.stream.skip()
    counters.stream = site.stream
    return counters


def test_verify_says_how_many_groups_cannot_be_verified(expired: Site) -> None:
    done = commands(expired)("verify")
    assert done.code == 4
    assert lines(done.out)[-1].startswith(
        "2 groups compared: none drifted, 1 cannot be verified, 0 wait for the quarantine; "
    )
    assert any(
        line.startswith("views url=/ views=-3 weight=-6 unknown events may have expired") for line in lines(done.out)
    )


def test_drift_comes_before_what_is_unknown(expired: Site) -> None:
    spoil(expired.bench, VIEWS, "views", -2, url="/about")
    assert commands(expired)("verify").code == 1


def test_a_repair_leaves_groups_that_may_count_what_has_expired(expired: Site) -> None:
    counters = commands(expired)
    assert counters("verify", "--repair", answer=Person()).code == 4
    spoil(expired.bench, VIEWS, "views", -2, url="/about")
    done = counters("verify", "--repair", "--yes")
    assert (done.code, lines(done.out)) == (4, ["1 item repaired"])
    assert expired.bench.counters.get(VIEWS, {"url": "/"}).measures["views"] == 7
    assert expired.bench.counters.get(VIEWS, {"url": "/about"}).measures["views"] == 4


@pytest.mark.parametrize(
    ("spoiled", "missing"),
    [
        ({"views": -8}, {"views": 8}),
        ({"_score": 5}, {"_score": -5}),
        ({"views": 1, "_score": -3}, {"_score": 3, "views": -1}),
        ({"weight": 1}, {"weight": -1}),
    ],
)
def test_scores_are_verified_and_repaired_on_their_own(spoiled: dict[str, int], missing: dict[str, int]) -> None:
    site = Site(RANKED)
    site.view(14, event=FOREVER)
    for name, by in spoiled.items():
        spoil(site.bench, RANKED, name, by, url="/")
    verifying = site.verify()
    assert found(verifying) == [("drifted", missing)]
    assert verifying.repair() == (1, 0)
    assert site.found() == []
    [item] = [item for item in site.bench.table.items() if "_score" in item]
    assert {name: item[name]["N"] for name in ("_score", "views", "weight")} == {
        "_score": "14",
        "views": "14",
        "weight": "28",
    }


def test_a_sum_of_many_digits_is_repaired_to_the_last_one() -> None:
    views = replace(VIEWS, source=FOREVER)
    site = Site(views)
    weight = Decimal("12345678901234567890123456789.0625")
    site.bench.counters.accept(FOREVER, {"url": "/", "at": int(site.bench.clock()), "id": 0, "weight": weight})
    site.stream.deliver()
    spoil(site.bench, views, "weight", -12345678901234567890123456789, url="/")
    site.verify().repair()
    assert site.bench.counters.get(views, {"url": "/"}).measures["weight"] == weight


@pytest.mark.parametrize("name", ["weight", "_r"])
def test_a_repair_leaves_an_item_that_cannot_take_it_alone(name: str) -> None:
    """Its sum stands in no record: once redriven from the quarantine, another repair might have added it, too."""
    views = replace(VIEWS, source=FOREVER)
    site = Site(views)
    site.view(3, event=FOREVER)
    spoil(site.bench, views, "views", -1, url="/")
    [key] = ItemLayout(views).keys(group_key(views, {"url": "/"}))
    item = {**site.bench.table.get_item(TableName=site.bench.table.name, Key=key)["Item"], name: {"S": "text"}}
    site.bench.table.put_item(TableName=site.bench.table.name, Item=item)
    assert site.verify().repair() == (0, 1)
    assert not [*site.bench.counters.quarantined()]
    assert site.bench.table.get_item(TableName=site.bench.table.name, Key=key)["Item"] == item


def test_a_spoiled_group_leaves_others_of_its_page_to_a_repair() -> None:
    views = replace(VIEWS, pk="PAGES", sk="{url}", source=FOREVER, pages=True)
    site = Site(views)
    for url in "ab":
        site.view(3, url=url, event=FOREVER)
    [page] = [item for item in site.bench.table.items() if item["pk"]["S"].startswith("PAGES#")]
    low = next(name for name in page if name.endswith("=a") and page[name].get("N") == "3")
    bad = next(name for name in page if name.endswith("=b") and page[name].get("N") == "6")
    site.bench.table.put_item(TableName=site.bench.table.name, Item={**page, low: {"N": "2"}, bad: {"S": "text"}})
    assert site.verify().repair() == (1, 1)
    assert site.bench.counters.get(views, url="a").measures["views"] == 3


def test_groups_of_a_page_are_left_that_another_repair_came_between() -> None:
    views = replace(VIEWS, pk="PAGES", sk="{url}", source=FOREVER, pages=True)
    site = Site(views)
    for url in "ab":
        site.view(3, url=url, event=FOREVER)
    [page] = [item for item in site.bench.table.items() if item["pk"]["S"].startswith("PAGES#")]
    low = {name: {"N": "2"} for name in page if page[name].get("N") == "3"}
    site.bench.table.put_item(TableName=site.bench.table.name, Item={**page, **low})
    verifying = site.verify()
    site.verify().repair()
    # One group was read before the other repair, one after it.
    verifying.differences[1] = replace(verifying.differences[1], repairs=1)
    assert verifying.repair() == (0, 1)


def test_a_repair_leaves_a_name_that_was_filled_anew_meanwhile() -> None:
    views = replace(VIEWS, source=FOREVER)
    site = Site(views)
    site.view(3, event=FOREVER)
    spoil(site.bench, views, "views", -1, url="/")
    verifying = site.verify()
    fill(site.bench, site.stream, names=["views"])
    assert verifying.repair() == (0, 1)


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench([JOBS], shards=3)
    bench.aggregator.handle({})
    bench.counters.record_once(JOB, {"id": 0}, [JOBS])
    bench.deliver_all()
    return bench


def counted_meanwhile(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> list[Difference]:
    """Verify, with a transaction that counts once the log has passed the scan, and whose record comes later."""
    before_the_end(monkeypatch, Verification, lambda: bench.counters.record_once(JOB, {"id": 1}, [JOBS]))
    return verify(bench, Stream(bench)).differences


def test_counts_of_a_transaction_just_now_are_no_drift(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted_meanwhile(bench, monkeypatch) == []


def test_a_group_that_drifted_and_that_a_transaction_counts_in_meanwhile_is_not_repaired(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(bench, JOBS, "jobs", 5)
    [found] = counted_meanwhile(bench, monkeypatch)
    assert (found.verdict, found.reason) == ("unknown", CHANGED_MEANWHILE)


def test_no_transactions_are_waited_for_once_another_process_has_ended_the_run(bench: Workbench) -> None:
    _, second = compared_and_ended(bench, Stream(bench))
    spoil(bench, JOBS, "jobs", 5)
    with pytest.raises(BackfillError, match="another process has ended run"):
        list(islice(second, 1000))
