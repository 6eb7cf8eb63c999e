"""Files of events are accepted once, however often a replay is killed and repeated; a wrong line ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.requests import MAX_BODY_BYTES
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run
from tests.unit.writes.clients import failure

ATTRIBUTES = {"url": str, "time": str, "client": str, "bytes": int}
HIT = Event("hit", pk="URL#{url}", sk="T#{time}#{client}", attributes=ATTRIBUTES)
PAGES = Aggregate("pages", HIT, pk="URL#{url}", sk="STATISTICS", measures={"hits": Count(), "bytes": Sum("bytes")})


class World:
    def __init__(self) -> None:
        self.bench = Workbench([PAGES])

    def replay(self, file: Path, *arguments: str, client: Any = None, event: str = "hit") -> Done:
        clock = self.bench.clock
        shared = ("--table", self.bench.table.name, "--declarations", encode((HIT, PAGES), attributes=True))
        given = ("replay", str(file), "--event", event, *arguments, *shared)
        return run(*given, client=client or self.bench.table, clock=clock, sleep=clock.advance)

    def counts(self, url: str) -> tuple[Any, Any]:
        """Return the hits and the bytes of a page, once all is counted."""
        self.bench.deliver(self.bench.records(), by=self.bench.process())
        measures = self.bench.counters.get(PAGES, {"url": url}).measures
        return measures["hits"], measures["bytes"]


@pytest.fixture
def world() -> World:
    return World()


def write_lines(path: Path, count: int) -> Path:
    lines = ({"url": f"/{n % 3}", "time": f"2026-11-20T10:{n:02}", "client": "c", "bytes": n} for n in range(count))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def rejects(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.with_name(f"{file.name}.rejects.jsonl").read_text().splitlines()]


def test_json_lines_are_accepted_once(world: World, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 30)
    done = world.replay(file, "--json")
    assert (done.code, done.document) == (0, {"accepted": 30, "duplicate": 0, "rejects": None})
    again = world.replay(file)
    assert (again.code, again.out.split()) == (0, ["duplicate", "30"])
    assert world.counts("/0") == (10, sum(range(0, 30, 3)))
    assert [path.name for path in tmp_path.iterdir()] == ["hits.jsonl"]


def test_a_csv_has_columns_of_declared_types_and_other_names(world: World, tmp_path: Path) -> None:
    file = tmp_path / "hits.csv"
    text = 'page,time,size,client\n/0,2026-11-20,5,"a, ""b"""\r\n/0,2026-11-21,,c\n/0,1,many,c\n\n/0,3,7,c\n'
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    done = world.replay(file, "--map", "url=page", "--map", "bytes=size")
    assert (done.code, done.err) == (1, "")
    assert world.counts("/0") == (2, 12)
    found = [(each["line"], each["status"], each["reason"].partition(":")[0]) for each in rejects(file)]
    assert found == [
        (3, "rejected", "invalid bytes=None"),
        (4, "rejected", "invalid bytes='many'"),
    ]


@pytest.mark.parametrize("crash_at", range(1, 5))
def test_a_killed_replay_is_exact_when_it_is_repeated(world: World, tmp_path: Path, crash_at: int) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 120)
    calls = 0

    def die(_: str, send: Any, request: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == crash_at:
            raise Crashed
        return send()

    with pytest.raises(Crashed):
        world.replay(file, client=HookedClient(world.bench.table, die))
    found = world.replay(file, "--json").document
    assert found["accepted"] + found["duplicate"] == 120
    assert world.counts("/0") == (40, sum(range(0, 120, 3)))


def test_events_that_the_table_refuses_are_among_the_rejects(world: World, tmp_path: Path) -> None:
    def refuse(*_: Any) -> Any:
        raise failure("ThrottlingException")

    file = write_lines(tmp_path / "hits.jsonl", 3)
    assert world.replay(file, client=HookedClient(world.bench.table, refuse)).code == 1
    assert {each["status"] for each in rejects(file)} == {"failed"}
    assert world.replay(file).code == 0


def test_a_rate_is_kept(world: World, tmp_path: Path) -> None:
    began = world.bench.clock.now
    world.replay(write_lines(tmp_path / "hits.jsonl", 40), "--rate", "2")
    assert world.bench.clock.now - began == pytest.approx(20)


@pytest.mark.parametrize(
    ("name", "text", "arguments", "said"),
    [
        ("x.txt", "", (), "invalid file 'x.txt': expected .jsonl or .csv"),
        ("x.csv", "a,a\n", (), "line 1 cannot be read: expected the names of the columns, each once"),
        ("x.csv", "a,\n", (), "line 1 cannot be read: expected the names of the columns, each once"),
        ("x.csv", "url,time,\xe4\n", (), "line 1 cannot be read: 'utf-8' codec"),
        ("x.csv", "url,time,client\n/,1\n", (), "line 2 cannot be read: 2 cells; expected 3"),
        ("x.csv", 'url,time,client\n/,"1\n2,3,4"\n', (), "line 2 cannot be read: unexpected end of data"),
        ("x.csv", 'url,time,client\n/,"1"2,c\n', (), "line 2 cannot be read: ',' expected after '\"'"),
        ("x.csv", "url, time,client\n/,1,c\n", (), "' time' is no attribute, but 'time' is: give --map"),
        ("x.jsonl", "{}\n[]\n", (), "line 2 cannot be read: expected an object in each line"),
        ("x.jsonl", '{"url": "/"', (), "line 1 cannot be read: "),
        ("x.jsonl", "[" * 100_000, (), "line 1 cannot be read: "),
        ("x.jsonl", "", ("--map", "a"), "invalid --map 'a': expected ATTRIBUTE=COLUMN"),
        ("x.jsonl", "", ("--rate", "0"), "--rate"),
        ("x.jsonl", "x" * (MAX_BODY_BYTES + 1), (), "line 1 cannot be read: expected at most 1,000,000 bytes"),
    ],
)
def test_wrong_input_is_one_line(
    world: World, tmp_path: Path, name: str, text: str, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    done = world.replay(tmp_path / name, *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_name_that_almost_is_an_attribute_ends_it(world: World, tmp_path: Path) -> None:
    (file := tmp_path / "hits.csv").write_text("url,time,Client,bytes\n/0,1,c,1\n")
    done = world.replay(file)
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: line 2 cannot be read: 'Client' is no attribute, but 'client' is: give --map\n"
    assert world.replay(file, "--map", "client=Client").code == 0
    assert world.counts("/0") == (1, 1)


def test_what_was_accepted_before_a_line_that_cannot_be_read_is_a_duplicate_later(world: World, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "hits.jsonl", 120)
    whole = file.read_text()
    file.write_text(f"{whole}{{\n")
    assert world.replay(file).code == 2
    file.write_text(whole)
    (stale := tmp_path / "hits.jsonl.rejects.jsonl").touch()
    assert world.replay(file, "--json").document == {"accepted": 20, "duplicate": 100, "rejects": None}
    assert not stale.exists()
    assert world.counts("/0") == (40, sum(range(0, 120, 3)))


def test_an_unknown_event_and_a_missing_file_are_refused(world: World, tmp_path: Path) -> None:
    unknown = world.replay(write_lines(tmp_path / "hits.jsonl", 1), event="hits")
    assert (unknown.code, "no event 'hits' is declared; there is: hit" in unknown.err) == (2, True)
    gone = world.replay(tmp_path / "none.jsonl")
    assert (gone.code, "does not exist" in gone.err) == (2, True)


def test_another_payload_of_a_known_key_is_among_the_rejects(world: World, tmp_path: Path) -> None:
    hit = {"url": "/", "time": "1", "client": "c", "bytes": 1}
    file = tmp_path / "hits.jsonl"
    file.write_text("".join(f"{json.dumps({**hit, 'bytes': size})}\n" for size in (1, 1, 2)))
    assert world.replay(file).code == 1
    assert [(each["status"], each["event"]["bytes"]) for each in rejects(file)] == [("conflict", 2)]
