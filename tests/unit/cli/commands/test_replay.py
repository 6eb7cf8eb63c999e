"""Files of events are accepted once, whatever their format, however often a replay is killed and repeated."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.gateway_requests import MAX_BODY_BYTES
from dynamodb_counters.cli.commands.replay import _STATUSES
from dynamodb_counters.cli.log_lines import log_request
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run
from tests.unit.writes.clients import failure

HIT = Event("hit", pk="URL#{url}", sk="T#{time}#{client}")
PAGES = Aggregate("pages", HIT, pk="URL#{url}", sk="STATISTICS", measures={"hits": Count(), "bytes": Sum("bytes")})


class World:
    def __init__(self) -> None:
        self.bench = Workbench([PAGES])
        self.bench.counters.increment(PAGES, {"url": "/none"}, amount={"hits": 0})

    def replay(self, file: Path, *arguments: str, client: Any = None, **outside: Any) -> Done:
        clock = self.bench.clock
        outside |= {"clock": clock, "sleep": clock.advance}
        shared = ("--table", self.bench.table.name, "--declarations", encode((PAGES,)))
        return run(
            "replay", str(file), "--event", "hit", *arguments, *shared, client=client or self.bench.table, **outside
        )

    def counts(self, url: str) -> tuple[Any, Any]:
        """The hits and the bytes of a page, once all is counted."""
        self.bench.deliver(self.bench.records(), by=self.bench.process())
        measures = self.bench.counters.get(PAGES, {"url": url}).measures
        return measures["hits"], measures["bytes"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def _put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Insert by PutItem, so that a test may stop between two."""
    monkeypatch.setattr("dynamodb_counters._writes.insert._STATEMENTS_PER_CALL", 1)


def write_lines(path: Path, count: int) -> Path:
    lines = ({"url": f"/{n % 3}", "time": f"2026-11-20T10:{n:02}", "client": "c", "bytes": n} for n in range(count))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_json_lines_are_accepted_once(world: World, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 30)
    done = world.replay(file, "--json")
    assert (done.code, done.document["accepted"], done.document["duplicate"]) == (0, 30, 0)
    assert world.counts("/0") == (10, sum(range(0, 30, 3)))
    again = world.replay(file)
    assert (again.code, again.out.split()) == (0, ["duplicate", "30"])
    assert world.counts("/0") == (10, sum(range(0, 30, 3)))
    assert [path.name for path in tmp_path.iterdir()] == ["hits.jsonl"]


def test_a_csv_has_columns_numbers_and_other_names(world: World, tmp_path: Path) -> None:
    file = tmp_path / "hits.csv.gz"
    text = 'page,time,size,note\n/0,2026-11-20,5,"two\nlines"\n/0,2026-11-21,0.5,\n/0,2026-11-22,many,\n/0,2026-11-23\n'
    file.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    options = ("--map", "url=page", "--map", "bytes=size", "--number", "size", "--set", "client=import")
    done = world.replay(file, *options)
    assert (done.code, done.err) == (1, "")
    assert str(world.counts("/0")) == "(2, Decimal('5.5'))"
    [one, two] = [json.loads(line) for line in (tmp_path / "hits.csv.gz.rejects.jsonl").read_text().splitlines()]
    assert (one["line"], one["status"], one["reason"]) == (3, "unreadable", "size 'many' is no number")
    assert (two["line"], two["reason"], two["text"]) == (4, "2 cells; expected 4", "/0,2026-11-23")


def test_an_access_log_in_either_format(world: World, tmp_path: Path) -> None:
    lines = (
        '10.0.0.1 - ann [20/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 512',
        '10.0.0.1 - - [20/Nov/2026:10:00:01 +0100] "GET / HTTP/1.1" 304 - "https://a.example/" "Mozilla/5.0 (\\"x\\")"',
        "nothing of the kind",
        '10.0.0.2 - - [20/Nov/2026:10:00:01 +0100] "GET / HTTP/1.1" 200 8 "-" "curl"',
    )
    file = tmp_path / "access.log"
    file.write_bytes("\n".join(lines).encode() + b"\n\n")
    looked = world.replay(file, "--dry-run", "--json")
    assert (looked.code, looked.document["readable"], looked.document["unreadable"]) == (1, 3, 1)
    assert not world.bench.records() or world.counts("/")[0] == 0
    # Those without a size cannot be counted by this aggregate, but are accepted.
    done = world.replay(file, "--json")
    assert (done.code, done.document["accepted"], done.document["unreadable"]) == (1, 3, 1)
    assert world.counts("/") == (2, 520)
    assert log_request(lines[1]) == {
        "client": "10.0.0.1",
        "time": "2026-11-20T09:00:01Z",
        "method": "GET",
        "url": "/",
        "status": 304,
        "referer": "https://a.example/",
        "agent": 'Mozilla/5.0 (\\"x\\")',
    }


def test_a_request_and_its_logged_line_are_one_event(tmp_path: Path) -> None:
    typed = replace(HIT, attributes={"url": str, "time": datetime, "client": str})
    pages = replace(PAGES, source=typed, measures={"hits": Count()})
    bench = Workbench([pages])
    bench.counters.accept(typed, {"url": "/", "time": "2026-11-20T09:00:00.000Z", "client": "10.0.0.1"})
    (file := tmp_path / "access.log").write_text('10.0.0.1 - - [20/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 5\n')
    shared = ("--table", bench.table.name, "--declarations", encode((typed, pages), attributes=True))
    done = run("replay", str(file), "--event", "hit", "--json", *shared, client=bench.table, clock=bench.clock)
    assert (done.document["accepted"], done.document["duplicate"] + done.document["conflict"]) == (0, 1)


@pytest.mark.parametrize("crash_at", range(1, 60, 7))
def test_a_killed_replay_goes_on_where_it_was(world: World, tmp_path: Path, crash_at: int) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 40)
    with file.open("a") as more:
        more.write('no JSON\n{"url": 1}\n')
        more.writelines(f"{json.dumps({'url': '/x', 'time': str(n), 'client': 'c', 'bytes': 1})}\n" for n in range(20))
    calls = 0

    def die(_: str, send: Any, request: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == crash_at:
            raise Crashed
        return send()

    with pytest.raises(Crashed):
        world.replay(file, "--batch", "7", client=HookedClient(world.bench.table, die))
    kept = tmp_path / "hits.jsonl.progress"
    known = json.loads(kept.read_text())["records"] if kept.exists() else 0
    assert known in range(max(0, crash_at - 15), crash_at + 3)
    done = world.replay(file, "--batch", "7", "--json")
    found = done.document
    assert (done.code, found["rejected"], found["unreadable"]) == (1, 1, 1)
    assert found["accepted"] + found["duplicate"] == 60
    assert found["duplicate"] <= 7, "only what the kill has cut off is sent again"
    assert len((tmp_path / "hits.jsonl.rejects.jsonl").read_text().splitlines()) == 2
    assert world.counts("/0") == (14, sum(range(0, 40, 3)))
    assert world.counts("/x") == (20, 20)
    assert not kept.exists()


def test_events_that_the_table_refuses_for_now_are_tried_again_and_then_reported(world: World, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 3)
    refusals = 5

    def refuse(_: str, send: Any, request: dict[str, Any]) -> Any:
        nonlocal refusals
        refusals -= 1
        if refusals > 0:
            raise failure("ThrottlingException")
        return send()

    assert world.replay(file, client=HookedClient(world.bench.table, refuse)).code == 0
    assert world.counts("/0") == (1, 0)
    refusals = 10**9
    done = world.replay(write_lines(tmp_path / "more.jsonl", 9), client=HookedClient(world.bench.table, refuse))
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "the table keeps refusing" in done.err


def test_a_rate_is_kept(world: World, tmp_path: Path) -> None:
    began = world.bench.clock.now
    world.replay(write_lines(tmp_path / "hits.jsonl", 40), "--rate", "2", "--batch", "10")
    assert world.bench.clock.now - began == pytest.approx(20)


@pytest.mark.parametrize(
    ("name", "text", "arguments", "said"),
    [
        ("x.txt", "", (), "does not show its format: give --format jsonl, csv, log"),
        ("x.csv", "", (), "the first line of a CSV names its columns"),
        ("x.csv", "a,a\n", (), "each once"),
        ("x.csv", 'a," b"\n', (), "without blanks around them"),
        ("x.csv", "a,b\n", ("--number", "c"), "there is no column 'c'; the columns are: a, b"),
        ("x.csv", "url, time,client\n", (), "' time,client' is no CSV: expected a cell without blanks around it"),
        ("x.csv", "url,time,\xe4\n", (), "the first line of the CSV names no columns: bytes that are not UTF-8"),
        (
            "x.csv",
            "url,time,Client\n",
            (),
            "'Client' is no attribute of 'hit', but 'client' is: rename it, as by --map",
        ),
        ("x.csv", "url,time,client\n", ("--set", "Time=1"), "'Time' is no attribute of 'hit', but 'time' is"),
        ("x.csv", "url,time,client\n", ("--map", "URL=url"), "'URL' is no attribute of 'hit', but 'url' is"),
        ("x.jsonl", "", ("--map", "a"), "expected two names joined by ="),
        ("x.jsonl", "", ("--rate", "0"), "--rate"),
        ("x.jsonl.gz", "\x1f\x8bcut", (), "its gzip data is damaged"),
    ],
)
def test_wrong_input_is_one_line(
    world: World, tmp_path: Path, name: str, text: str, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    done = world.replay(tmp_path / name, *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_a_column_that_almost_is_an_attribute_is_refused_before_the_first_event(world: World, tmp_path: Path) -> None:
    file = tmp_path / "hits.csv"
    file.write_text("url,time,client,Client\n" + "/0,2026-11-20,c,\n" * 3 + "/0,2026-11-21,c,d\n")
    assert (world.replay(file, "--batch", "1").code, world.counts("/0")) == (2, (0, 0))
    assert world.replay(file, "--batch", "1", "--map", "visitor=Client").code == 0

    lines = tmp_path / "hits.jsonl"
    lines.write_text(
        '{"url": "/1", "time": "1", "client": "c", "bytes": 1}\n{"url": "/1", "Time": "2", "client": "c"}\n'
    )
    done = world.replay(lines, "--json")
    [reject] = Path(done.document["rejects"]).read_text().splitlines()
    assert (done.document["accepted"], json.loads(reject)["reason"]) == (
        1,
        "'Time' is no attribute of 'hit', but 'time' is",
    )


def test_another_file_or_event_is_refused(world: World, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 3)
    kept = tmp_path / "hits.jsonl.progress"
    for content in ("{", "[]", '{"of": 1}', '{"of": {"event": "view"}}'):
        kept.write_text(content)
        refused = world.replay(file)
        assert (refused.code, "is of another replay" in refused.err) == (2, True)
    kept.unlink()
    assert world.replay(file).code == 0
    unknown = run("replay", str(file), "--event", "hits", "--declarations", encode((PAGES,)), client=world.bench.table)
    assert (unknown.code, "no event 'hits' is declared; there is: hit" in unknown.err) == (2, True)
    gone = world.replay(tmp_path / "none.jsonl")
    assert (gone.code, "does not exist" in gone.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("found", {}),
        ("found", ["accepted"]),
        ("found", dict.fromkeys(_STATUSES, "1")),
        ("found", dict.fromkeys(_STATUSES, True)),
        ("found", dict.fromkeys((*_STATUSES, "lost"), 1)),
        ("records", "1"),
        ("records", -1),
        ("rejects_bytes", None),
        ("rejects_bytes", 0.5),
    ],
)
def test_damaged_progress_is_refused_before_an_event_is_accepted(
    world: World, tmp_path: Path, name: str, value: Any
) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 3)
    kept = tmp_path / "hits.jsonl.progress"
    calls = 0

    def die_at_the_second(_: str, send: Any, request: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise Crashed
        return send()

    with pytest.raises(Crashed):
        world.replay(file, "--batch", "1", client=HookedClient(world.bench.table, die_at_the_second))
    kept.write_text(json.dumps({**json.loads(kept.read_text()), name: value}))

    refused = world.replay(file)

    assert (refused.code, "delete it to start over" in refused.err) == (2, True)
    assert world.counts("/0") == (1, 0)
    assert world.bench.counters.get(PAGES, {"url": "/1"}).measures["hits"] == 0


def test_another_payload_of_a_known_key_is_among_the_rejects(world: World, tmp_path: Path) -> None:
    hit = {"url": "/", "time": "1", "client": "c", "bytes": 1}
    file = tmp_path / "hits.jsonl"
    file.write_text("".join(f"{json.dumps({**hit, 'bytes': size})}\n" for size in (1, 1, 2)))

    done = world.replay(file, "--json")

    [reject] = (tmp_path / "hits.jsonl.rejects.jsonl").read_text().splitlines()
    assert (done.code, done.document["duplicate"], done.document["conflict"]) == (1, 1, 1)
    assert (json.loads(reject)["status"], json.loads(reject)["event"]["bytes"]) == ("conflict", 2)


def _lines_around(kind: str, long: bytes) -> Iterator[bytes]:
    """A file with a long line in its middle, in parts."""
    if kind == "jsonl":
        yield b'{"url": "/", "time": "2026-11-20T10:00", "client": "c"}\n{"url": "'
        end = b'"}\n{"url": "/", "time": "2026-11-20T10:01", "client": "c"}\n'
    elif kind == "log":
        yield b'c - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1\n'
        end = b'\nc - - [20/Nov/2026:10:01:00 +0000] "GET / HTTP/1.1" 200 1\n'
    else:
        yield b"url,time,client\n/,2026-11-20T10:00,c\n"
        end = b",\n/,2026-11-20T10:01,c\n"
    for _ in range(64):
        yield long
    yield end


@pytest.mark.parametrize("kind", ["jsonl", "log", "csv", "record"])
def test_a_line_that_is_too_long_is_skipped_and_never_in_memory(world: World, tmp_path: Path, kind: str) -> None:
    # Many lines that are one record of a CSV, or one line.
    long = (b'"' + b"a" * 100_000 + b'\n",') * 10 if kind == "record" else b"a" * 1_000_000
    file = tmp_path / f"hits.{'csv' if kind == 'record' else kind}.gz"
    with gzip.open(file, "wb", 1) as opened:
        for part in _lines_around(kind, long):
            opened.write(part)
    world.replay(write_lines(tmp_path / "warm.jsonl", 1))
    tracemalloc.start()
    try:
        done = world.replay(file, "--json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert (done.code, done.document["accepted"]) == (1, 2), done
    rejects = [json.loads(line) for line in Path(done.document["rejects"]).read_text().splitlines()]
    assert "a line of more than 1,000,000 bytes" in rejects[0]["reason"]
    assert (rejects[0]["line"], len(rejects[0].get("text", "")) <= 1000) == (2, True)
    assert len(rejects) == 1


def test_a_line_of_just_the_limit_is_read(world: World, tmp_path: Path) -> None:
    start = '{"url": "/", "time": "2026-11-20T10:00", "client": "c", "x": "'
    lines = [f'{start}{"a" * (MAX_BODY_BYTES + more - len(start) - 2)}"}}' for more in (0, 1)]
    (file := tmp_path / "hits.jsonl").write_text("\r\n".join([*lines, lines[0]]))
    told = world.replay(file, "--dry-run", "--json").document
    assert (told["readable"], told["unreadable"]) == (2, 1)


def test_long_lines_fill_no_batch_beyond_memory(world: World, tmp_path: Path) -> None:
    line = json.dumps({"url": "/", "client": "c", "x": "a" * 900_000})
    with gzip.open(file := tmp_path / "hits.jsonl.gz", "wt") as opened:
        opened.writelines(f'{{"time": "2026-11-20T10:{n:02}", {line[1:]}\n' for n in range(60))
    tracemalloc.start()
    try:
        done = world.replay(file, "--json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.document["rejected"] == 60, done
    assert peak < 50_000_000
