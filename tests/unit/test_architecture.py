"""docs/architecture.md against the code: its rooms, every kind of item in the table, and the update of a batch.

``make snapshot`` writes the page's examples again; review them as you would a change of the stored format.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import pytest

from counters_lambda.counting.batch import Aggregator, put_pulse
from dynamodb_counters import Aggregate, Attr, Distinct, Event, Items, Quota, Threshold, Window
from dynamodb_counters._declarations import Average, Count, Histogram, Packed, Ranking, Sum, flatten
from dynamodb_counters._items import schema as table_schema
from dynamodb_counters._items.schema import typed_values
from dynamodb_counters._registry import SOURCE, typed_runs, write_registry
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.world import World

Item = dict[str, dict[str, Any]]

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "architecture.md"
SNAPSHOT = PROJECT / "tests" / "snapshots" / "items.json"

NOW = int(datetime(2026, 11, 20, 10, 30, 5, tzinfo=UTC).timestamp())

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
CLICK = Event("click", pk="AD#{ad}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7), packed=Packed("time"))
ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", version="revision")
JOB = Event("job", pk="JOB#{id}", sk="JOB")
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
PATH = Items("path", where=Attr("user_submitted_path").exists())

VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"views": Count()}, write_shards=8)
VISITORS = Distinct(
    "visitors", VIEW, pk="URL#{url}", sk="VISITORS#{time:day}", member="clientId", retention=timedelta(days=31)
)
_SPANS: Any = {"precision": timedelta(seconds=1), "retention": timedelta(days=61), "longest": timedelta(days=61)}
VIEWS_WINDOW = Window("views_24h", VIEW, pk="URL#{url}", time="time", **_SPANS)
CUSTOMERS = Aggregate("customers", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS", measures={"jobs": Count()})
_PRICES: Any = {"price": Average("price"), "prices": Histogram("price", bounds=[0, 10, 100])}
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="STATISTICS", measures={"taken": Sum("price"), **_PRICES})
_RANKING = Ranking(measure="paths", leaderboard="PLAYERS")
PLAYERS = Aggregate("players", PATH, pk="PLAYER#{player}", sk="STATISTICS", paths=Count(), ranking=_RANKING)
BY_URL = Aggregate("by_url", VIEW, by="url", pages=True)
BY_DAY = Aggregate("by_day", VIEW, by=("time:day", "url"), retention=timedelta(days=31), pages=True)
CALLS = Quota("calls", limit=10_000, per="day", by=("customer",))
BUSY = Threshold("busy", VIEWS, at=[2])
DECLARATIONS = flatten([BUSY, VIEWS, SITE, VISITORS, VIEWS_WINDOW, CUSTOMERS, SHOPS, PLAYERS, BY_URL, BY_DAY])

LONG_URL = "/search?q=" + "x" * 2100

_WIDTH = 116
"""Characters of a line of an example."""

EXAMPLES = {
    "Event": "URL#/ T#2026-11-20T10:30:00Z#CID#c1",
    "Event: with a version": "ORDER#1 ORDER",
    "Event: counted by `record_once`": "JOB#1 JOB",
    "Chunk": "PACK#click#0 *T10:30*#000000",
    "Chunk: with an erased event": "PACK#click#0 *T10:20*#000000",
    "Layout": "PACK#click LAYOUT",
    "Quota": "LEASES#calls#7 day#*Z",
    "Page": "by_url#~0 PAGE#by_url#0",
    "Page: of a day, which expires": "by_day#2026-11-20#~0 PAGE#by_day#0",
    "Crossing": "CROSSING#busy#* *#2#up#*",
    "Group": "URL#/ STATISTICS",
    "Group: sum, average, histogram": "SHOP#a STATISTICS",
    "Group: filled by a backfill": "CUSTOMER#7 STATISTICS",
    "Group: ranked": "PLAYER#ann STATISTICS",
    "Group: one of its write shards": "SITE#~* STATISTICS",
    "Group: a key too long": "URL#/search* STATISTICS",
    "Group: a distinct member": "URL#/ VISITORS#2026-11-20#MEMBER#c1",
    "Group: distinct members": "URL#/ VISITORS#2026-11-20",
    "Bucket: minute": "URL#/ WINDOW#views_24h#M#2026-11-20T10:30",
    "Bucket: hour": "URL#/ WINDOW#views_24h#H#2026-11-20T10",
    "Bucket: day": "URL#/ WINDOW#views_24h#D#2026-11-20",
    "Bucket: month": "URL#/ WINDOW#views_24h#N#2026-11",
    "Quarantined image": "QUARANTINE#* shardId-*#NewImage",
    "Quarantined image: redriven": "QUARANTINE#* shardId-*#NewImage",
    "Quarantined delta": "QUARANTINE#* shardId-*#shops",
    "Checkpoint": "CHECKPOINT#?* CHECKPOINT",
    "Registry": "CHECKPOINT# DECLARED",
    "Name": "CHECKPOINT# DECLARED#views",
    "Name: filled by a backfill": "CHECKPOINT# DECLARED#customers",
    "Name: of a threshold": "CHECKPOINT# DECLARED#threshold busy",
    "Run": "CHECKPOINT# RUN#*",
    "Cut": "CHECKPOINT#run~* CUT#*",
    "Log page": "CHECKPOINT#run~*~log~* *",
    "Scan page": "CHECKPOINT#run~*~scan~0 00000000",
    "Heartbeat": "CHECKPOINT#run~*~beat~* BEAT",
    "Pulse": "CHECKPOINT#PULSE PULSE",
}
"""Kind of item to the key of its example: `pk`, a space and `sk`."""


def test_the_page_has_a_row_for_every_kind_of_item_and_no_other() -> None:
    assert set(_rows()) == {_row_of(example) for example in EXAMPLES}


def test_the_files_on_the_page_exist() -> None:
    roots = [PROJECT, *(PROJECT / "lambdas" / name for name in ("", "counters_lambda", "dynamodb_counters"))]
    text = PAGE.read_text(encoding="utf-8").partition("## Words of the commit path")[0]
    names = set(re.findall(r"`(\w+(?:/\w+)+(?:\.py)?|\w+\.py)`", text))
    assert len(names) > 30
    assert [name for name in names if not any((root / name).with_suffix(".py").exists() for root in roots)] == []


def test_the_words_of_the_commit_path_are_names_in_the_code() -> None:
    rows = [line.split("|") for line in _section("## Words of the commit path").splitlines() if "| `" in line]
    assert len(rows) > 10
    for _, _, column, *_ in rows:
        module = ""
        for name in re.findall(r"`([\w.]+)`", column):
            module = name.rpartition(".")[0] or module
            package = "counters_lambda" if module.startswith("counting") else "dynamodb_counters"
            resolve_name(f"{package}.{module}.{name.rpartition('.')[2]}")


@pytest.mark.snapshot
def test_items_are_stored_as_they_were(examples: dict[str, Item]) -> None:
    body = ",\n".join(f"{json.dumps(example)}: {_view(examples[example])}" for example in EXAMPLES)
    text = f"{{\n{body}\n}}\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text, "if that was meant: make snapshot"


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_row_of_a_kind_has_the_layout_of_keys_and_every_attribute(example: str, examples: dict[str, Item]) -> None:
    item = examples[example]
    layouts, names = _rows()[_row_of(example)]
    assert len(layouts) in (0, 2), "both keys, or 'as declared'"
    for layout, name in zip(layouts, ("pk", "sk"), strict=False):
        assert re.fullmatch(_pattern(layout), item[name]["S"])
    pattern = re.compile("|".join(map(_pattern, names)))
    assert [name for name in item if not pattern.fullmatch(name)] == []


def test_every_bookkeeping_attribute_on_the_page_is_written(examples: dict[str, Item]) -> None:
    attributes = {(_row_of(example), attribute) for example, item in examples.items() for attribute in item}
    missing = [
        (row, name)
        for row, (_, names) in _rows().items()
        for name in names
        if not name.startswith("<")
        and not any(kind == row and re.fullmatch(_pattern(name), attribute) for kind, attribute in attributes)
    ]

    assert missing == []


@pytest.mark.snapshot
def test_the_update_of_a_batch_is_the_one_that_is_sent() -> None:
    world = World(VIEWS, clock=VirtualClock(NOW))
    requests: list[dict[str, Any]] = []

    def note(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        requests.extend([request] if name == "update_item" else [])
        return send()

    table = world.reached(HookedClient(world.table, note))
    # What it sends again would else be an UPDATE of PartiQL.
    aggregator = Aggregator(table, world.declared, quarantine_retention_seconds=1e6, single_shard=True)
    _view_twice(world)
    first = world.deliver(world.records(), by=aggregator)
    items = [*world.table.items()]
    again = world.deliver(world.records(), by=aggregator)

    assert (first.updated, first.skipped) == (1, 0)
    assert (again.updated, again.skipped) == (0, 1)
    assert [*world.table.items()] == items
    once, repeated = requests
    assert once == {**repeated, "ReturnValues": "ALL_NEW"}
    _hold("### The update", _shown_request(once))


def test_a_redriven_item_differs_in_its_state_and_its_time_alone(every_kind: World) -> None:
    before, at = _items(every_kind), every_kind.clock()
    every_kind.redrive()
    after = _items(every_kind)
    changed = [key for key in before if after[key] != before[key] and key.startswith("QUARANTINE#")]
    state = {"state": {"S": "released"}, "changed_at": {"N": f"{at:.0f}"}}
    assert [{**before[key], **state} for key in changed] == [after[key] for key in changed]
    assert len(changed) == 2


def _items(world: World) -> dict[str, Item]:
    """All items by `pk`, a space and `sk`."""
    items = sorted(world.table.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    return {
        f"{item['pk']['S']} {item['sk']['S']}": {name: _stored(item[name]) for name in sorted(item)} for item in items
    }


def _view_twice(world: World) -> None:
    for time, client in (("2026-11-20T10:30:00Z", "c1"), ("2026-11-20T10:30:02Z", "c2")):
        world.counters.accept(VIEW, {"url": "/", "time": time, "clientId": client})


@pytest.fixture(scope="module")
@patch("dynamodb_counters._table.CONCURRENCY", 1)  # Threads would race for sequence numbers.
def every_kind() -> World:
    """Return a table with items of every kind, at one fixed time until its backfill."""
    world = World(*DECLARATIONS, clock=VirtualClock(NOW))
    counters = world.counters
    _view_twice(world)
    counters.accept(VIEW, {"url": LONG_URL, "time": "2026-11-20T10:30:03Z", "clientId": "c1"})
    clicks = [{"ad": "7", "time": "2026-11-20T10:30:00Z", "clientId": client} for client in ("c1", "c2")]
    counters.accept_many(CLICK, clicks)
    counters.accept(ORDER, {"id": 1, "revision": 1, "total": 90})
    counters.accept(ORDER, {"id": 1, "revision": 2, "total": 95})
    counters.record_once(JOB, {"id": 1, "customer": "7"}, [CUSTOMERS])
    for number, shop, price in ((1, "a", 5), (2, "a", 12), (3, "c", 10**38 - 1), (4, "c", 2)):
        counters.accept(SALE, {"id": number, "shop": shop, "price": price})
    counters.accept(SALE, {"id": 5, "shop": "b"})
    world.put("PATHS", "1", player="ann", user_submitted_path="a>b")
    world.settle()
    world.end_window(world.records())
    counters.accept(CLICK, {"ad": "7", "time": "2026-11-20T10:20:00Z", "clientId": "c3"})
    counters.erase(CLICK, {"clientId": "c3"}, counts="keep")
    numbers = (f"{number:016x}" for number in count(1))
    with patch("secrets.token_hex", lambda _: next(numbers)):
        for progress in world.backfill("customers", segments=1, page_items=20).steps():
            if progress.phase == "scanning":
                counters.record_once(JOB, {"id": 2, "customer": "7"}, [CUSTOMERS])
                world.settle()
    world.put("JOB#3", "JOB", _type="job", id=3, customer="8", ttl=int(world.clock()))
    world.settle()
    assert world.table.expire()
    counters.leases(CALLS, {"customer": "7"}).take()
    counters.accept(SALE, {"id": 6, "shop": "b"})
    world.settle()
    counters.redrive(next(entry for entry in counters.quarantined() if "SALE#6" in str(entry.content)))
    put_pulse(world.store)
    # As a verification does at its end, and an aggregator with a source table.
    header = typed_values({SOURCE: "arn:aws:dynamodb:us-east-1:123456789012:table/orders"})
    write_registry(world.store, world.registry, (), attributes=header | typed_runs(()))
    return world


@pytest.fixture(scope="module")
def examples(every_kind: World) -> dict[str, Item]:
    """One item of each kind, as the code writes it now."""
    items = _items(every_kind)
    matches = {
        example: [item for key, item in items.items() if fnmatchcase(key, EXAMPLES[example])] for example in EXAMPLES
    }
    for several in ("Log page", "Heartbeat"):
        matches[several] = matches[several][:1]
    for example, state in (("Quarantined image", "waiting"), ("Quarantined image: redriven", "released")):
        matches[example] = [item for item in matches[example] if item["state"] == {"S": state}]
    assert {example: len(items) for example, items in matches.items()} == dict.fromkeys(EXAMPLES, 1)
    return {example: item for example, [item] in matches.items()}


def _stored(value: dict[str, Any]) -> dict[str, Any]:
    """Return a number as DynamoDB writes it: without zeros at its end."""
    return {"N": f"{Decimal(value['N']).normalize(Context(prec=38)):f}"} if "N" in value else value


def _row_of(example: str) -> str:
    return example.partition(":")[0]


def _view(item: Item) -> str:
    """Show an item as the console's JSON view does, its keys on the first line, with long texts cut."""
    order = {"pk": 0, "sk": 1, "_type": 2, "ttl": 9}
    names = sorted(item, key=lambda name: (order.get(name, 8 if name.startswith("_") else 5), name))
    lines = [""]
    for name in names:
        part = f'"{name}": {_json(_cut(name, item[name]))}'
        if name == "_type" or len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else '  '}{part}"
    return "{\n" + ",\n".join(lines) + "\n}"


def _shown_request(request: dict[str, Any]) -> str:
    """Show a request with what matters first, and typed values on one line."""
    order = ["TableName", "Key", "UpdateExpression", "ConditionExpression", *sorted(request)]
    text = _json({name: request[name] for name in dict.fromkeys(order) if name in request}, indent=2)
    return re.sub(r'\{\s+("[A-Z]+": "[^"]*")\s+\}', r"{\1}", text)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(
        value, indent=indent, ensure_ascii=False, default=lambda binary: base64.b64encode(binary).decode()
    )


_BINARY = {"rows": "eJy…", "_chunk": "eNp…"}  # The batch id of a chunk is random.


def _cut(name: str, value: dict[str, Any]) -> dict[str, Any]:
    if name == "declared":
        return {"S": f"{value['S'][:160]}…"}
    if name in _BINARY:
        return {"B": _BINARY[name]}
    if name.startswith("_n") and value["S"] != "0":  # Its time may be another test's, its end is random.
        return {"S": "655…"}
    if name in ("pk", "url") and len(value.get("S", "")) > 200:
        return {"S": f"{value['S'][:24]}…{value['S'][-60:]}"}
    return value


def _hold(heading: str, text: str) -> None:
    """Hold the first JSON block under a heading to what the code gives now."""
    page = PAGE.read_text()
    section = _section(heading)
    block = re.compile(r"(?<=```json\n).*?(?=\n```)", re.DOTALL)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(page.replace(section, block.sub(lambda _: text, section, count=1)))
    else:
        match = block.search(section)
        assert match is not None, f"no example under {heading!r}"
        assert match[0] == text, "if that was meant: make snapshot"


def _section(heading: str) -> str:
    """Return the page from a heading to the next of its level or above."""
    level = heading.split(maxsplit=1)[0]
    match = re.search(
        rf"^{re.escape(heading)}$.*?(?=^#{{1,{len(level)}}} |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert match is not None, f"no heading {heading!r}"
    return match[0]


def _rows() -> dict[str, tuple[list[str], list[str]]]:
    """Read the catalog: kind of item to its key layouts and the names of its attributes."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in _section("### Catalog").splitlines()
        if line.startswith("| **")
    ]
    return {
        kind.strip("*"): (re.findall(r"`(.+?)`", key), re.findall(r"`(.+?)`", attributes))
        for kind, key, attributes, *_ in cells
    }


def _pattern(text: str) -> str:
    """Return the regular expression of a name or key with ``<fields>``."""
    own = rf"(?!{table_schema.RESERVED_PREFIX}|(pk|sk|ttl)$).+"
    if re.fullmatch(r"<\w+>", text):
        return own
    return "".join(
        r"\d\d" if part == "<nn>" else ".+" if part.startswith("<") else re.escape(part)
        for part in re.split(r"(<.+?>)", text)
    )
