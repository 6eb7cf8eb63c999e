"""The table in docs/changing-declarations.md: each change made to a table with data, and what is read meanwhile.

UPDATE_SNAPSHOTS=1 writes it again.
"""

# ruff: noqa: E501

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Count,
    Counters,
    Distinct,
    Event,
    Histogram,
    Items,
    Ranking,
    Sum,
    Threshold,
    UncountedError,
    Window,
)
from dynamodb_counters._changes.effective import merged
from dynamodb_counters._declarations import Declarable, Declaration, flatten
from dynamodb_counters._declarations.codec import encode
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, backfill
from tests.unit.cli.in_process import run
from tests.unit.fold.world import Source, source_item

_PAGE: Final = Path(__file__).parents[3] / "docs" / "changing-declarations.md"

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate(
    "shops",
    SALE,
    pk="SHOP#{shop}",
    sk="SALES",
    measures={"sales": Count(), "taken": Sum("price"), "sizes": Histogram("price", bounds=[0, 100])},
)
BIG = Attr("price").gt(100)
PATHS = Items("carts", where=Attr("price").exists())
RECENT = Window("recent", SALE, pk="SHOP#{shop}", time="at", retention=timedelta(days=2))
BUYERS = Distinct("buyers", SALE, pk="BUYERS", sk="ALL", member="buyer")
DAILY = Distinct("buyers", SALE, pk="BUYERS", sk="DAY#{at:day}", member="buyer")
MONTHS = timedelta(days=90)


def _over(shops: Aggregate, name: str = "all-shops") -> Aggregate:
    return Aggregate(name, shops, pk="ALL", sk="SHOPS", measures={"sales": Sum("sales")})


def _shops(**changes: Any) -> Aggregate:
    return replace(SHOPS, **changes)


@dataclass(frozen=True)
class Row:
    """One change, and the measure of a name to look at."""

    change: str
    before: tuple[Declarable, ...]
    after: tuple[Declarable, ...]
    name: str = "shops"
    measure: str = "sales"


_BIG_SHOPS = _shops(where=BIG)
_MOVED = _shops(sk="MOVED")
_EACH = _shops(pk="SHOPS", sk="{shop}")

ROWS = [
    Row("Another filter", (SHOPS,), (_BIG_SHOPS,)),
    Row("The same with `on_change=\"keep\"`", (SHOPS,), (_shops(where=BIG, on_change="keep"),)),
    Row("The same with `on_change=\"fail\"`", (SHOPS,), (_shops(where=BIG, on_change="fail"),)),
    Row("Another filter of what another aggregate counts", (SHOPS, _over(SHOPS)), (_BIG_SHOPS, _over(_BIG_SHOPS)), "all-shops"),
    Row("The same with `on_change=\"keep\"`", (SHOPS, _over(SHOPS)), (_shops(where=BIG, on_change="keep"), _over(_shops(where=BIG, on_change="keep"))), "all-shops"),
    Row("Another cap, or another measured attribute", (SHOPS,), (_shops(measures={**SHOPS.measures, "taken": Sum("price", cap=100)}),), measure="taken"),
    Row("Other bins", (SHOPS,), (_shops(measures={**SHOPS.measures, "sizes": Histogram("price", bounds=[0, 20])}),), measure="sizes"),
    Row("Another measure added", (_shops(measures={"taken": Sum("price")}),), (_shops(measures={"taken": Sum("price"), "sales": Count()}),)),
    Row("Another group: other fields in the key", (SHOPS,), (_shops(pk="SHOP#{shop}#{buyer}"),)),
    Row("Other keys, same fields", (SHOPS,), (_MOVED,)),
    Row("The same with `on_change=\"keep\"`", (SHOPS,), (_shops(sk="MOVED", on_change="keep"),)),
    Row("`pages=True`, or an item per group again", (_EACH,), (replace(_EACH, pages=True),)),
    Row("The same with `on_change=\"keep\"`", (_EACH,), (replace(_EACH, pages=True, on_change="keep"),)),
    Row("Other `write_shards`", (SHOPS,), (_shops(write_shards=4),)),
    Row("A ranking added, or by another measure", (SHOPS,), (_shops(ranking=Ranking(measure="sales", leaderboard="SHOPS")),)),
    Row("Another `on_expiry`", (SHOPS,), (_shops(on_expiry="subtract"),)),
    Row("Another member of a `Distinct`", (BUYERS,), (replace(BUYERS, member="shop"),), "buyers", "distinct"),
    Row("A `retention` of a `Distinct`, or another one", (DAILY,), (replace(DAILY, retention=MONTHS),), "buyers", "distinct"),
    Row("The same with `on_change=\"keep\"`", (DAILY,), (replace(DAILY, retention=MONTHS, on_change="keep"),), "buyers", "distinct"),
    Row("Another condition of `Items`", (_shops(source=PATHS),), (_shops(source=replace(PATHS, where=BIG)),)),
    Row("Another `retention` of a window, or other `tiers`", (RECENT,), (replace(RECENT, retention=timedelta(days=9)),), "recent"),
    Row("Another `max_groups`, `late` or `future_tolerance`", (SHOPS,), (_shops(max_groups=5000),)),
    Row("Other [thresholds](thresholds.md)", (SHOPS,), (SHOPS, Threshold("high", SHOPS, at=[2], measure="sales"))),
    Row("An aggregate added over an event or `Items`", (RECENT,), (RECENT, SHOPS)),
    Row("An aggregate added over another one", (SHOPS,), (SHOPS, _over(SHOPS)), "all-shops"),
    Row("An aggregate removed", (RECENT, SHOPS), (RECENT,)),
    Row("An aggregate renamed", (SHOPS,), (_shops(name="stores"),), "stores"),
    Row("Another name of what another aggregate counts", (SHOPS, _over(SHOPS)), (_shops(name="stores"), _over(_shops(name="stores"))), "all-shops"),
    Row("A window renamed", (RECENT,), (replace(RECENT, name="lately"),), "lately"),
    Row("An event renamed", (SHOPS,), (_shops(source=replace(SALE, name="order")),)),
    Row("`Items` renamed", (_shops(source=PATHS),), (_shops(source=replace(PATHS, name="baskets")),)),
    Row("The keys of what waits given to another", (SHOPS,), (_MOVED, _shops(name="stores", measures={"sales": Count()})), "stores"),
    Row("An event whose keys change", (SHOPS,), (_shops(source=replace(SALE, pk="ORDER#{id}")),)),
    Row("An event kept longer", (_shops(source=replace(SALE, retention=timedelta(days=8))),), (_shops(source=replace(SALE, retention=timedelta(days=9))),)),
    Row("An event kept for a shorter time", (SHOPS,), (_shops(source=replace(SALE, retention=timedelta(days=9))),)),
    Row("Another order", (SHOPS, RECENT), (RECENT, SHOPS)),
]  # fmt: skip


class _Shop:
    """A table that counts sales, and the sales there are."""

    def __init__(self, declared: tuple[Declaration, ...]) -> None:
        self.bench = Workbench(declared)
        self.stream = Stream(self.bench)
        self.source: Source = _root(declared)
        self.live: dict[str, dict[str, Any]] = {}

    def sell(self, number: int, price: int) -> None:
        values = {
            "id": str(number),
            "shop": "a",
            "buyer": f"b{number % 2}",
            "price": price,
            "at": int(self.bench.clock()),
        }
        self.put(str(number), source_item(self.bench.store, self.source, values, str(number)))

    def put(self, number: str, item: dict[str, Any]) -> None:
        self.live[number] = item
        self.bench.table.put_item(TableName=self.bench.table.name, Item=item)

    def cancel(self, number: int) -> None:
        item = self.live.pop(str(number))
        self.bench.table.delete_item(TableName=self.bench.table.name, Key={"pk": item["pk"], "sk": item["sk"]})

    def backfill(self, name: str) -> None:
        assert [*backfill(self.bench, self.stream, names=[name]).steps()][-1].phase == "complete"
        self.bench.clock.advance(61)

    def read(self, declared: Iterable[Declaration], name: str, measure: str) -> str:
        """The measure, as readers see it; of several definitions, the last one's."""
        wanted = {each.name: each for each in declared}.get(name)
        if wanted is None:
            return "-"
        day = datetime.fromtimestamp(self.bench.clock(), UTC).date().isoformat()
        known = {"shop": "a", "buyer": "b0", "at:day": day}
        group = {name: value for name, value in known.items() if name in wanted.fields}
        counters = Counters(self.bench.table.name, client=cast("Any", self.bench.table), clock=self.bench.clock)
        try:
            return self._shown(counters, wanted, group, measure)
        except UncountedError:
            return "refused"

    @staticmethod
    def _shown(counters: Counters, wanted: Declaration, group: dict[str, str], measure: str) -> str:
        if isinstance(wanted, Window):
            return str(counters.window(wanted, group).last(hours=24).count)
        value = counters.get(wanted, group).measures.get(measure, "-")
        return " / ".join(map(str, value.values())) if isinstance(value, dict) else str(value)

    def exact(self, declared: tuple[Declaration, ...], name: str, measure: str) -> str:
        """Measure of declarations that have been there from the start, over the sales there are."""
        other = _Shop(declared)
        other.bench.clock.advance(self.bench.clock() - other.bench.clock())
        for number, item in self.live.items():
            other.put(number, item)
        other.stream.deliver()
        other.stream.deliver()
        return other.read(declared, name, measure)


def _root(declared: tuple[Declaration, ...]) -> Source:
    source = declared[0].source
    while isinstance(source, Aggregate):
        source = source.source
    return source


def _line(row: Row) -> str:
    """Make a change, in the words of `counters diff` before it is deployed."""
    before, after = flatten(row.before), flatten(row.after)
    shop = _Shop(before)
    for number, price in ((1, 10), (2, 200), (3, 300)):
        shop.sell(number, price)
    shop.stream.deliver()
    shop.stream.deliver()

    asked = ("diff", "--table", "counters", "--declarations", encode(after))
    done = run(*asked, "--json", client=shop.bench.table)
    assert done.code in (0, 1), done.err
    named = next(each for each in done.document["names"] if each["name"] == row.name)
    heading = rf"^unchanged: .*\b{row.name}\b" if named["title"] == "unchanged" else rf"^{row.name}: {named['title']}"
    assert re.search(heading, run(*asked, client=shop.bench.table).out, re.MULTILINE)

    found = merged(after, before)
    if not found.refused:
        shop.bench.deploy(after, as_declared=True)
    shop.source = _root(after)
    for number, price in ((4, 500), (5, 5), (2, 50)):
        shop.sell(number, price)
    shop.cancel(3)
    if not found.refused:
        shop.stream.deliver()
        shop.stream.deliver()

    known = before if found.refused else (*before, *after)
    read = shop.read(known, row.name, row.measure)
    old = shop.exact(before, row.name, row.measure)
    new = shop.exact(after, row.name, row.measure)
    _check(named, read, old, new)
    if named["next"].startswith("counters backfill"):
        shop.backfill(named["next"].split()[-1])
        assert shop.read(after, row.name, row.measure) == new, row.change
    events = "".join(f"; event {each['name']}: {each['title']}" for each in done.document["events"])
    says = f"{named['title']}{events}"
    # Consequences of an event that has changed, if any, are those of what counts it.
    named = next((each for each in done.document["events"] if each["counts"] != "as before"), named)
    following = f"`{named['next']}`" if named["next"].startswith("counters ") else named["next"]
    return f"| {row.change} | {says} | {named['counts']} | {read} ({old}, {new}) | {following} |"


def _check(named: dict[str, Any], read: str, old: str, new: str) -> None:
    """Reads are what the diff says; nothing that is not exact by the new definition goes unsaid."""
    if "exact" in named["counts"] and old != "-":
        assert read == old
    if named["counts"] == "as before" and named["kind"] != "needed":
        assert read == new
    if read != new:
        assert named["kind"] not in ("unchanged", "adjusted") or named["does"] != "counts on"


def _table() -> str:
    head = [
        "| change | `counters diff` says | the counts until then | read (old, new) | next |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(_line, ROWS)]) + "\n"


@pytest.mark.snapshot
def test_the_documentation_has_what_each_change_does() -> None:
    begin, end = (f"<!-- {mark}: written by a test -->\n" for mark in ("changes", "end of changes"))
    text, made = _PAGE.read_text(), _table()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _PAGE.write_text(f"{before}{begin}{made}{end}{after}")
        return
    assert f"{begin}{made}{end}" in text
