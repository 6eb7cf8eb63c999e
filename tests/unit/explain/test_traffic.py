"""Explanations while events come, change and are counted: the group's items are the position, whatever comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Sum
from dynamodb_counters._backfill.feeds import Feeds
from dynamodb_counters._commit.checkpoints import BOOK, LAST_SEQUENCE, checkpoint_key
from dynamodb_counters._explain.explainer import REDRIVEN_MEANWHILE, REPAIRED_MEANWHILE, Explainer, make_explainer
from dynamodb_counters._fold.page_layout import is_split
from dynamodb_counters._items.bookkeeping import Watermark, packed, sequence_of, shard_digest
from dynamodb_counters._quarantine.quarantine import quarantine_item, quarantine_key
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.schedules.housekeeping import narrow_pages
from tests.unit.explain.test_explanations import NOW, SALE, SHOPS, sale

CLOCKS = 60.0


@contextmanager
def meanwhile(counters: CountersInMemory, change: Callable[[], Any]) -> Iterator[None]:
    """Have something happen once, before the first Query that follows the read of the group."""
    asked, acts = counters._memory.query, [change]

    def query(**request: Any) -> Any:
        if acts and "sale" in repr(request):
            acts.pop()()
        return asked(**request)

    counters._memory.query = query  # type: ignore[method-assign]
    yield
    counters._memory.query = asked  # type: ignore[method-assign]
    assert not acts


@pytest.mark.parametrize(
    "change",
    [
        lambda counters: counters.accept(SALE, sale(3, 9)),
        lambda counters: counters.accept(SALE, sale(2, 9, revision=2)),
        lambda counters: counters.retract(SALE, sale(1)),
        lambda counters: [counters.accept(SALE, sale(2, price, revision=price)) for price in (7, 8)],
    ],
    ids=["accepted", "replaced", "retracted", "replaced twice"],
)
def test_a_change_after_the_group_was_read_is_in_neither(change: Callable[[Any], Any]) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept_many(SALE, [sale(1), sale(2)])
        with meanwhile(counters, lambda: change(counters)):
            found = counters.explain(SHOPS, shop="a")
        assert found.numbers == {"sales": 2, "taken": 10}
        assert [(line.key["id"], dict(line.adds)) for line in found.lines()] == [
            ("s2", {"sales": 1, "taken": 5}),
            ("s1", {"sales": 1, "taken": 5}),
        ]


def test_the_first_change_of_a_group_in_a_page_is_the_one_that_made_the_page() -> None:
    by_kind = Aggregate("by_kind", SALE, pk="sale#{shop}", sk="KIND#{kind}", n=Count(), pages=True)
    over = Aggregate("over", by_kind, pk="OVER#{shop}", sk="ALL", n=Sum("n", cap=5))
    with counters_in_memory([by_kind, over], now=NOW) as counters:
        with meanwhile(counters, lambda: [counters.accept(SALE, sale(number, kind="k")) for number in (1, 2)]):
            found = counters.explain(over, shop="a")
        assert (found.numbers, found.difference, list(found.lines())) == ({}, {}, [])
        assert counters.explain(over, shop="a").numbers == {"n": 2}


def test_a_split_shows_no_group_that_was_changed_and_counted_since() -> None:
    by_kind = Aggregate("by_kind", SALE, pk="sale#{shop}", sk="KIND#{kind}", n=Count(), pages=True)
    over = Aggregate("over", by_kind, pk="OVER#{shop}", sk="ALL", n=Sum("n"))
    with narrow_pages(1), counters_in_memory([by_kind, over], now=NOW) as counters:
        for number in range(12):
            counters.accept(SALE, sale(number, kind=f"k{number % 4}"))
        stream = counters._tables[0].stream
        [shard] = stream.shards()
        every = list(stream.records(shard.id, ""))
        split = [one["eventID"] for one in every if is_split(*map(one["dynamodb"].get, ("OldImage", "NewImage")))]

        class SplitElsewhere:
            def shards(self) -> Any:
                return [shard, replace(shard, id="other")]

            def records(self, asked: str, after: str) -> Any:
                return [
                    one for one in stream.records(shard.id, after) if (one["eventID"] in split) == (asked == "other")
                ]

        feeds: Any = Feeds(SplitElsewhere(), None, 0.0)  # type: ignore[arg-type]
        found = make_explainer(counters._table, feeds, over, {"shop": "a"}).explained()
        assert split
        assert (found.numbers, found.difference) == ({"n": 12}, {})


def test_a_group_that_a_transaction_counted_in_is_explained_again() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        slept = list[float]()
        table = replace(counters._table, sleep=slept.append)
        with meanwhile(counters, lambda: counters.record_once(SALE, sale(2), [SHOPS])):
            found = make_explainer(table, counters._feeds(None), SHOPS, {"shop": "a"}).explained()
        assert (found.numbers, found.difference, len(slept)) == ({"sales": 2, "taken": 10}, {}, 1)


def test_the_stream_is_read_again_once_it_shows_all_that_was_written_before() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        slept = list[float]()
        stream = counters._tables[0].stream

        class Slow:
            def shards(self) -> Any:
                return stream.shards()

            def records(self, shard: str, after: str) -> Any:
                return stream.records(shard, after) if sum(slept) >= CLOCKS else []

        table: Any = replace(counters._table, sleep=slept.append)
        feeds: Any = Feeds(Slow(), None, CLOCKS)  # type: ignore[arg-type]
        with meanwhile(counters, lambda: counters.accept(SALE, sale(2))):
            found = make_explainer(table, feeds, SHOPS, {"shop": "a"}).explained()
        assert (found.numbers, found.difference, slept) == ({"sales": 1, "taken": 5}, {}, [1, 2, 4, 8, 16, CLOCKS - 31])


def test_a_group_that_was_lost_and_repaired_has_an_unknown_position() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        [group] = [one for one in counters.client.scan(TableName="counters")["Items"] if one["_type"] == {"S": "shops"}]
        kept = {name: value for name, value in group.items() if not name.startswith("_w")}
        counters.client.put_item(TableName="counters", Item=kept | {"_r": {"S": "run"}})
        [line] = counters.explain(SHOPS, shop="a").rest
        assert (line.kind, line.reason) == ("difference", REPAIRED_MEANWHILE)


def test_records_that_were_given_up_before_all_others_are_part_of_the_position() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        [group] = [one for one in counters.client.scan(TableName="counters")["Items"] if one["_type"] == {"S": "shops"}]
        [shard] = [one.id for one in counters._tables[0].stream.shards()]
        early, name = shard + BOOK, Watermark(shard, shard).name
        moved = {Watermark(shard, early).name: group.pop(name)}
        checkpoint = {**checkpoint_key(shard_digest(early)), "successor": {"S": "9" * 40}}
        for item in (group | moved, checkpoint):
            counters.client.put_item(TableName="counters", Item=item)
        assert counters.explain(SHOPS, shop="a").difference == {}


def test_a_group_may_count_what_was_redriven_to_another_shard() -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        [group] = [one for one in counters.client.scan(TableName="counters")["Items"] if one["_type"] == {"S": "shops"}]
        [shard] = [one.id for one in counters._tables[0].stream.shards()]
        sequence = sequence_of(group.pop(Watermark(shard, shard).name))
        other = {Watermark("other", "other").name: {"B": packed(sequence)}}
        entry = quarantine_item(quarantine_key(shard, f"{sequence}#NewImage"), "early", {}, (), 2**32)
        for item in (group | other, entry | {"state": {"S": "released"}}):
            counters.client.put_item(TableName="counters", Item=item)
        [line] = counters.explain(SHOPS, shop="a").rest
        assert (dict(line.adds), line.reason) == ({"sales": 1, "taken": 5}, REDRIVEN_MEANWHILE)


def test_a_shard_that_was_counted_to_its_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with counters_in_memory([SHOPS], now=NOW) as counters:
        counters.accept(SALE, sale(1))
        stream = counters._tables[0].stream
        [shard] = stream.shards()

        class WithParent:
            def shards(self) -> Any:
                return [replace(shard, id="parent"), replace(shard, parent="parent")]

            def records(self, shard: str, after: str) -> Any:
                assert shard != "parent"
                return stream.records(shard, after)

        monkeypatch.setattr(Explainer, "_position_of", lambda *_: {"parent": LAST_SEQUENCE, shard.id: ""})
        feeds: Any = Feeds(WithParent(), None, 0.0)  # type: ignore[arg-type]
        found = make_explainer(counters._table, feeds, SHOPS, {"shop": "a"}).explained()
        assert (found.numbers, found.position) == ({"sales": 1, "taken": 5}, {"parent": "end"})
