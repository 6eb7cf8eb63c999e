"""Every kind of item in words, from what the console or the AWS CLI shows of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Extremes, Percentiles
from dynamodb_counters._declarations import Declarable
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters.testing import counters_in_memory
from simulation.workbench import Workbench
from tests.unit.cli.commands.test_quarantine import SALE, SHOPS
from tests.unit.cli.in_process import Done, run
from tests.unit.test_architecture import DECLARATIONS, EXAMPLES
from tests.unit.test_architecture import every_kind as every_kind  # noqa: PLC0414 - a fixture
from tests.unit.test_architecture import written as written  # noqa: PLC0414 - a fixture

WORDS = {
    "Event": "an event 'view': clientId=c1 time=2026-11-20T10:30:00Z url=/",
    "Event: with a version": "an event 'order', or a group whose watermarks are gone: id=1 revision=2 total=95",
    "Event: discarded": "an event 'sale'",
    "Event: counted by `record_once`": "the transaction that wrote it has counted it in: customers",
    "Chunk": "chunk 0 of the events 'click' in the bucket that begins 2026-11-20T10:30:00Z: 2 rows",
    "Chunk: with an erased event": "1 events were erased from it",
    "Layout": "where the chunks of the events 'click' are",
    "Quota": "the quota 'calls', 7, in the period (day) that begins 2026-11-20T00:00:00Z: 1 calls are reserved",
    "Crossing": "the threshold 'busy', url=/: views up across 0.2 of the limit 10, 0 → 2",
    "Page": "a page of the aggregate 'by_url', level 1: 1 groups",
    "Page: of a day, which expires": "  time:day=2026-11-20 url=/ by_day=2",
    "Group": "a group of the aggregate 'views', url=/: views=2",
    "Group: sum, average, histogram": "a group of the aggregate 'shops', shop=a: ",
    "Group: ranked": "a group of the aggregate 'players', player=ann: paths=1",
    "Group: one of its write shards": "a group of the aggregate 'site'",
    "Group: a key too long": "a group of the aggregate 'views', url=/search?q=",
    "Group: a distinct member": "a group of the aggregate 'visitors-members', ",
    "Group: distinct members": "a group of the aggregate 'visitors', ",
    "Group: of the next generation": "a group of the aggregate 'customers~1', ",
    "Bucket: minute": "a bucket of the window 'views_24h', url=/: 2 in the minute 2026-11-20T10:30",
    "Bucket: hour": "2 in the hour 2026-11-20T10",
    "Bucket: day": "by slot: h10=2",
    "Bucket: month": "2 in the month 2026-11",
    "Quarantined image": "The insertion of the sale SALE#5 / SALE could not be counted by shops.",
    "Quarantined image: redriven": "The insertion of the sale SALE#6 / SALE could not be counted by shops.",
    "Quarantined delta": "could not be added to its item.",
    "Checkpoint": "the checkpoint of shardId-00000001795161600000-f55eea83: all records through 44215845000000000174",
    "Witness": "if the checkpoint is gone, it was lost",
    "History": "all records: deployment ",
    "Deployment": "  views: event view by url: views (count)",
    "Generations": "  customers: generation 1, which counts everything",
    "Run": "the backfill run 1r0000000000000001, complete: it begins with records of ",
    "Cut": "a cut of the run 1r0000000000000001",
    "Log page": "a log page of the run 1r0000000000000001",
    "Scan page": "a scan page of the run 1r0000000000000001",
    "Heartbeat": "a heartbeat of the run 1r0000000000000001",
    "Expired": "players counts items that have expired",
    "Expired: groups with a time": "views_24h counts items that have expired, in groups before",
}


def printed(item: Any) -> str:
    """As the AWS CLI prints an item: binary as base64."""
    return json.dumps(item, default=lambda binary: base64.b64encode(bytes(binary)).decode())


def decode(tmp_path: Path, text: str, *arguments: str, **outside: Any) -> Done:
    (tmp_path / "item.json").write_text(text)
    return run("decode", str(tmp_path / "item.json"), *arguments, **outside)


def test_there_are_words_for_every_kind() -> None:
    assert WORDS.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("example", WORDS)
def test_an_item_is_written_in_words(example: str, written: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    known = ("--declarations", encode(DECLARATIONS)) if example.startswith(("Group", "Page", "Bucket")) else ()
    done = decode(tmp_path, printed(written[example]), *known)
    assert (done.code, done.err) == (0, "")
    assert WORDS[example] in done.out
    [told] = decode(tmp_path, printed(written[example]), "--json").document
    assert told["words"]
    kind = "event or group" if "version" in example else example.partition(":")[0].lower()
    assert told["kind"] == ("quarantine entry" if kind.startswith("quarantined") else kind)


def test_a_chunks_rows_and_a_groups_watermarks_are_listed(written: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    [chunk] = decode(tmp_path, printed(written["Chunk"]), "--json").document
    assert [row["is"] for row in chunk["rows"]] == ["accepted", "accepted"]
    assert chunk["rows"][0]["values"]["clientId"]
    group = decode(tmp_path, printed(written["Group"])).out
    assert "watermark of the shard BoQ5bwk4LFsF: counted through 4421584500000000017450439" in group


def test_groups_of_measures_beyond_sums_are_written_by_what_their_texts_stand_for(tmp_path: Path) -> None:
    view = Event("view", key=("url", "time", "client"))
    declared: list[Declarable] = [
        ActiveMembers("users", view, by="url", member="client", time="time"),
        Percentiles("paces", view, by="url", attribute="ms", time="time"),
        Percentiles("sizes", view, attribute="ms"),
        Extremes("slowest", view, by="url", attribute="ms", show="client"),
    ]
    with counters_in_memory(declared) as counters:
        for client, ms in (("c1", 250), ("c2", 250), ("c2", -3)):
            at = f"2026-11-20T10:30:{abs(ms) % 60:02}Z"
            counters.accept(view, {"url": "/a#b", "time": at, "client": client, "ms": ms})
        found = counters.client.scan(TableName=counters.table_name)["Items"]
        items = [item for item in found if item["pk"]["S"].startswith(("users", "paces", "s"))]
        done = decode(
            tmp_path, printed(items), "--table", counters.table_name, client=counters.client, clock=counters.clock
        )
    assert done.code == 0, done.err
    for line in (
        "  url=/a#b time:day=2026-11-20 gap=30 active=2",
        "  url=/a#b client=c2 time:342d=2026-03-08 time:day=2026-11-20 items=2",
        "  url=/a#b time:hour=2026-11-20T10 ms:log0.01=250.787 values=2",
        "  ms:log0.01=-2.97099 values=1",
        "a group of the aggregate 'slowest', url=/a#b ms:order=250 client=c2: items=1",
    ):
        assert f"{line}\n" in done.out, done.out


def test_a_groups_tally_is_shown(tmp_path: Path) -> None:
    group = {"pk": {"S": "A"}, "sk": {"S": "B"}, "_type": {"S": "t"}, "n": {"N": "5"}, "_tally_n": {"N": "2"}}
    assert "its sources do not show: n 2" in decode(tmp_path, json.dumps(group)).out


def test_answers_of_the_aws_cli_and_lists_are_taken(written: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    one, two = written["Event"], written["Expired"]
    assert decode(tmp_path, printed({"Item": one})).out == decode(tmp_path, printed(one)).out
    both = decode(tmp_path, printed({"Items": [one, two], "Count": 2, "ScannedCount": 2})).out
    assert both == decode(tmp_path, printed([one, two])).out
    assert both.count("\n\n") == 1


def test_with_a_table_shards_and_declarations_are_known_by_name(tmp_path: Path) -> None:
    bench = Workbench([SHOPS])
    bench.counters.accept(SALE, {"id": 1, "shop": "a", "price": 2})
    bench.deliver(bench.records())
    [item] = [item for item in bench.table.items() if item["pk"] == {"S": "SHOP#a"}]
    done = decode(tmp_path, printed(item), "--table", bench.table.name, client=bench.table)
    assert "a group of the aggregate 'shops', shop=a: n=1 taken=2" in done.out
    assert f", {bench.shards()[0]}: counted through " in done.out
    # Once its watermarks are pruned, its type says what it is.
    pruned = {name: value for name, value in item.items() if not name.startswith("_w")}
    assert "a group of the aggregate" in decode(tmp_path, printed(pruned), "--declarations", encode((SHOPS,))).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no item in DynamoDB's JSON"),
        ("[" * 100_000, "no item in DynamoDB's JSON"),
        ("7", "expected a JSON object"),
        ("{}", "expected a JSON object of attributes"),
        ('{"pk": "x"}', "expected attributes such as"),
        ('{"pk": [["S", "x"]]}', "expected attributes such as"),
        ('{"pk": {"S": 1}}', "expected attributes such as"),
        ('{"pk": {"S": "x", "N": "1"}}', "expected attributes such as"),
        ('{"pk": {"BS": [1]}}', "expected attributes such as"),
        ('{"pk": {"NS": "1"}}', "expected attributes such as"),
        ('{"pk": {"B": "?"}}', "base64"),
        (
            '{"pk": {"S": "PACK#a#0"}, "sk": {"S": "x"}, "_type": {"S": "a#pack"}, "_chunk": {"B": "eNo="}}',
            "cannot be read",
        ),
        ('{"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "DEPLOYMENTS"}, "history": {"S": "?"}}', "cannot be read"),
        ('{"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "DEPLOYMENT#1"}}', "another version wrote them"),
        ('{"pk": {"S": "a"}, "_type": {"S": "a"}, "_wx": {"B": "eNo="}}', "the item a / ? cannot be read"),
        ('{"pk": {"S": "a"}, "_type": {"S": "a"}, "_wx": {"B": ""}}', "cannot be read"),
        ('{"pk": {"S": "a"}, "_type": {"S": "a"}, "n": {"N": "x"}}', "cannot be read"),
    ],
)
def test_text_that_is_no_item_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    done = decode(tmp_path, text)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert said in done.err
