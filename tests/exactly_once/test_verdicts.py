"""Verdicts on counts whose sources expire: certain by sign, by age and by key."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Average, Count, Counter, Event, Histogram, Packed, Ranking, Sum, Window
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._commit.batch import ExpiredItems, read_expired
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import BackfillError
from tests.exactly_once.test_backfill import Live, backfill, spoil, verification
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
DAYS = Aggregate("days", VIEW, pk="URL#{url}", sk="DAY#{at:day}", measures={"views": Count()})
HOURS = Window("hours", VIEW, pk="URL#{url}", time="at", longest=timedelta(hours=3), future_tolerance=None)


RANKED = Aggregate(
    "ranked",
    VIEW,
    pk="PAGE#{url}",
    sk="ALL",
    measures={"views": Count(), "weight": Sum("weight")},
    ranking=Ranking(measure="views", leaderboard="PAGES"),
)


class Site(Live):
    """A table whose aggregator counts views as they come."""

    def __init__(self, *declarations: Declaration) -> None:
        super().__init__(*declarations)
        self._views = 0

    def view(self, times: int = 1, at: float | None = None, url: str = "/") -> None:
        for _ in range(times):
            self._views += 1
            moment = self.bench.clock() if at is None else at
            self.bench.counters.accept(VIEW, {"url": url, "at": int(moment), "id": self._views, "weight": 2})
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


def test_before_anything_has_expired_too_much_is_drift() -> None:
    site = Site(VIEWS)
    site.view(3)
    spoil(site.bench, VIEWS, "views", 5, url="/")
    assert site.found() == [("drift", {"views": -5})]


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
    assert site.found() == [("drift", {"views": -7})]
    spoil(site.bench, views, "views", -7, url="/")

    Eraser(site.bench.store, event, {"id": 1}).erase("keep")
    site.stream.deliver()
    assert [site.bench.counters.get(each, url="/")["views"] for each in (views, live)] == [5, 4]
    assert site.found() == [("unknown", {"views": -1, "weight": -2})]
    spoil(site.bench, live, "views", 7, url="/")
    spoil(site.bench, views, "views", -3, url="/")
    assert site.found() == [("drift", {"views": -7}), ("drift", {"views": 2}), ("unknown", {"weight": -2})]


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
        ("heavy", "drift", {"mean.count": 4, "sizes.0": 4}),
        ("heavy", "unknown", {"mean.sum": 1}),
        ("views", "drift", {"views": 17}),
        ("views", "unknown", {"weight": 14}),
    ]
    assert {each.reason for each in told if each.verdict == "drift"} == {
        "at least so much: events may have expired, or been erased, that it counted, too"
    }


def test_a_group_that_is_gone_has_lost_all_there_is() -> None:
    site = Site(VIEWS)
    site.view(3)
    site.expire()
    site.view(4)
    site.lose(VIEWS, url="/")
    assert site.found() == [("drift", {"views": 4, "weight": 8})]


@pytest.mark.parametrize("declaration", [DAYS, HOURS], ids=["a day in its key", "a window"])
def test_a_group_later_than_all_that_has_expired_is_certain(declaration: Aggregate | Window) -> None:
    site = Site(declaration)
    site.view(3)
    site.expire()
    site.view(4)
    later = too_much(site, declaration.name)
    told = site.found()
    assert [verdict for verdict, _ in told].count("drift") == later
    assert {number for verdict, missing in told for number in missing.values() if verdict == "drift"} == {-1}
    assert {number for verdict, missing in told for number in missing.values() if verdict == "unknown"} <= {-3, -4}


def too_much(site: Site, name: str) -> int:
    """Add one to each number of a declaration's items; return how many of them are later than what expired."""
    items = [item for item in site.bench.table.items() if item.get("_type") == {"S": name}]
    for item in items:
        for attribute in item.keys() & {"views", "total"}:
            site.bench.table.update_item(
                TableName=site.bench.table.name,
                Key={"pk": item["pk"], "sk": item["sk"]},
                UpdateExpression="ADD #n :one",
                ExpressionAttributeNames={"#n": attribute},
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
    return len(items) // 2


def test_an_event_from_the_future_expires_long_before_its_time() -> None:
    ahead = Window("ahead", VIEW, pk="URL#{url}", time="at", longest=timedelta(hours=3))
    site = Site(ahead)
    site.view(1, at=site.bench.clock() + 34 * DAY)
    site.bench.clock.advance(34 * DAY)
    for entry in site.bench.counters.quarantined():
        assert site.bench.counters.redrive(entry)
    site.stream.deliver()
    assert not [*site.bench.counters.quarantined()]
    site.expire(2)
    told = site.found()
    assert told
    assert {verdict for verdict, _ in told} == {"unknown"}


def test_later_expiries_are_noted_later() -> None:
    store = Site(DAYS).bench.store
    one, other = ExpiredItems(store), ExpiredItems(store)
    seen = []
    for process, until in ((one, 10.0), (other, 20.0), (one, 15.0), (one, 30.0), (other, math.inf), (one, 40.0)):
        process.note({"days": until})
        seen.append(read_expired(store)["days"])
    assert seen == [10, 20, 20, 30, math.inf, math.inf]


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
    assert lines(done.out)[-1].startswith("2 groups compared: none drifted, 1 of 2 cannot be verified; ")
    assert "views url=/ views -3 unknown: events may have expired, or been erased, that it" in lines(done.out)


def test_drift_comes_before_what_is_unknown(expired: Site) -> None:
    spoil(expired.bench, VIEWS, "views", -2, url="/about")
    assert commands(expired)("verify").code == 1


def test_repair_asks_about_groups_that_may_count_what_has_expired(expired: Site) -> None:
    counters, person = commands(expired), Person()
    assert counters("repair", answer=person).code == 4
    question = "1 group may count what has expired. Set each to what its sources show, too?"
    assert person.asked == [question]
    assert counters("repair", "--yes").code == 4
    assert expired.bench.counters.get(VIEWS, {"url": "/"}).measures["views"] == 7

    spoil(expired.bench, VIEWS, "views", -2, url="/about")
    done = counters("repair", "--yes", "--unknown")
    assert (done.code, lines(done.out)) == (0, ["2 groups repaired"])
    assert expired.bench.counters.get(VIEWS, {"url": "/"}).measures["views"] == 4
    assert expired.bench.counters.get(VIEWS, {"url": "/about"}).measures["views"] == 4
    assert counters("verify").code == 0


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
    site.view(14)
    for name, by in spoiled.items():
        spoil(site.bench, RANKED, name, by, url="/")
    verifying = site.verify()
    assert found(verifying) == [("drift", missing)]
    assert verifying.repair() == (1, 0)
    assert site.found() == []
    [item] = [item for item in site.bench.table.items() if "_score" in item]
    assert {name: item[name]["N"] for name in ("_score", "views", "weight")} == {
        "_score": "14",
        "views": "14",
        "weight": "28",
    }


def test_a_sum_of_many_digits_is_repaired_to_the_last_one() -> None:
    site = Site(VIEWS)
    weight = Decimal("12345678901234567890123456789.0625")
    site.bench.counters.accept(VIEW, {"url": "/", "at": int(site.bench.clock()), "id": 0, "weight": weight})
    site.stream.deliver()
    spoil(site.bench, VIEWS, "weight", -12345678901234567890123456789, url="/")
    site.verify().repair()
    assert site.bench.counters.get(VIEWS, {"url": "/"}).measures["weight"] == weight
