"""Events typed by hand, or lines of a file, are checked as declared, accepted once, taken back, and erased."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dynamodb_counters import Aggregate, Attr, Attribute, Count, Event, Sum
from dynamodb_counters._declarations.codec import decode, encode
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient
from simulation.world import World
from tests.unit.cli.in_process import Done, mistake, run_on

CALL = Event(
    "call",
    key=("tenant", "id"),
    attributes={
        "tenant": Attribute(str, min_length=1),
        "id": str,
        "at": datetime,
        "status": int,
        "ms": Attribute(int, minimum=0),
        "cached": Attribute(bool, required=False),
    },
)
GOOD = Aggregate("good", CALL, by="tenant", where=Attr("status").lt(500), calls=Count())
TIME = Aggregate("time", CALL, by="tenant", ms=Sum("ms"))
_READS = ("query", "get_item")
RIGHT = ("tenant=a", "id=1", "at=2026-11-20T10:00:00Z", "status=200", "ms:=5", "cached=true")


class Calls:
    """A table that is counted as the function's environment says."""

    def __init__(self) -> None:
        self.world = World(*decode(encode((GOOD, TIME), attributes=True)))

    def __call__(self, *arguments: str, **outside: Any) -> Done:
        return run_on(self.world, "accept", *arguments, **outside)

    def items(self) -> list[Any]:
        return [item for item in self.world.table.items() if item["_type"]["S"] == "call"]

    def counts(self) -> tuple[int, int]:
        self.world.deliver_all()
        get = self.world.counters.get
        return get(GOOD, tenant="a").measures["calls"], get(TIME, tenant="a").measures["ms"]


@pytest.fixture
def accept() -> Calls:
    return Calls()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("tenant=", "invalid tenant='': expected a string of at least 1 characters"),
        ("status=ok", "invalid status='ok': expected a whole number"),
        ("ms:=-5", "invalid ms=-5: expected a whole number of at least 0"),
        ("cached=yes", "invalid cached='yes': expected true or false"),
        ("id:=1", "invalid id=1: expected a string"),
    ],
)
def test_what_the_deployment_does_not_declare_is_refused(accept: Calls, wrong: str, message: str) -> None:
    name = wrong.partition("=")[0].removesuffix(":")
    fields = [field for field in RIGHT if field.partition("=")[0].removesuffix(":") != name]
    assert message in mistake(accept("call", *fields, wrong))
    assert accept.items() == []


def test_texts_are_taken_as_they_are_declared_once_and_back(accept: Calls) -> None:
    assert accept("call", *RIGHT, "tags:=[9.5]", "note=", "shop=a=b").out == "accepted\n"
    again = accept("call", *RIGHT, "tags:=[9.5]", "note=", "shop=a=b", "--json")
    assert again.document == {"status": "duplicate", "reason": None}
    other = accept("call", *RIGHT, "tags:=[9]")
    assert (other.code, other.out.partition(":")[0]) == (1, "conflict")
    [item] = accept.items()
    assert (item["id"], item["status"], item["cached"]) == ({"S": "1"}, {"N": "200"}, {"BOOL": True})
    assert (item["shop"], item["tags"]) == ({"S": "a=b"}, {"L": [{"N": "9.5"}]})
    assert accept.counts() == (1, 5)

    assert accept("call", "tenant=a", "id=1", "--retract").out == "retracted\n"
    assert accept.counts() == (0, 0)
    result = accept("call", "tenant=a", "id=1", "--retract")
    assert (result.code, result.out) == (1, "there is no such event\n")
    assert accept("call", "tenant=a", "--retract", "--json").code == 2


def write_lines(path: Path, count: int) -> Path:
    times = {"at": "2026-11-20T10:00:00Z", "status": 200}
    path.write_text("".join(f"{json.dumps({'tenant': 'a', 'id': str(n), 'ms': n, **times})}\n" for n in range(count)))
    return path


def rejects(file: Path) -> list[tuple[int, str, str]]:
    lines = map(json.loads, file.with_name(f"{file.name}.rejects.jsonl").read_text().splitlines())
    return [(entry["line"], entry["status"], entry["reason"].partition(":")[0]) for entry in lines]


@pytest.mark.parametrize("crash_at", range(1, 5))
def test_a_file_is_accepted_once_however_often_it_is_killed(accept: Calls, tmp_path: Path, crash_at: int) -> None:
    file, calls = write_lines(tmp_path / "calls.jsonl", 120), 0

    def die(name: str, send: Any, request: dict[str, Any]) -> Any:
        nonlocal calls
        calls += name not in _READS
        if calls == crash_at and name not in _READS:
            raise Crashed
        return send()

    with pytest.raises(Crashed):
        accept("call", "--file", str(file), client=HookedClient(accept.world.table, die))
    (tmp_path / "calls.jsonl.rejects.jsonl").touch()
    again = accept("call", "--file", str(file), "--json").document
    assert (again["accepted"] + again["duplicate"], again["rejects"]) == (120, None)
    assert accept.counts() == (120, sum(range(120)))
    assert [path.name for path in tmp_path.iterdir()] == ["calls.jsonl"]


def test_lines_that_are_not_accepted_are_among_the_rejects(accept: Calls, tmp_path: Path) -> None:
    first, second = write_lines(file := tmp_path / "calls.jsonl", 2).read_text().splitlines()
    other, wrong = first.replace('"ms": 0', '"ms": 7'), second.replace("200", '"200"')
    file.write_text(f"{first}\n\n{first}\n{other}\n{wrong}\n")
    done = accept("call", "--file", str(file))
    lines = [" ".join(line.split()) for line in done.out.splitlines()[:4]]
    assert (done.code, lines) == (1, ["accepted 1", "duplicate 1", "conflict 1", "rejected 1"])
    assert [(place, status) for place, status, _ in rejects(file)] == [(4, "conflict"), (5, "rejected")]
    assert rejects(file)[1][2] == "invalid status='200'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n[]\n", "line 2 cannot be read: expected an object in each line"),
        ('{"url": "/"', "line 1 cannot be read: "),
        ("[" * 100_000, "line 1 cannot be read: "),
        ('{"a":"\xe4"}', "line 1 cannot be read: 'utf-8' codec"),
    ],
)
def test_a_line_that_cannot_be_read_ends_it(accept: Calls, tmp_path: Path, text: str, message: str) -> None:
    (file := tmp_path / "calls.jsonl").write_bytes(text.encode("latin-1"))
    assert message in mistake(accept("call", "--file", str(file)))


def test_erasing_asks_first_and_reports_by_place(accept: Calls) -> None:
    for number in "12":
        accept("call", *(text.replace("id=1", f"id={number}") for text in RIGHT))

    def erase(*arguments: str, **outside: Any) -> Done:
        parts = ("call", "id=1", "--counts", "take_back", *arguments)
        return run_on(accept.world, "erase", *parts, **outside)

    refuse = Mock(return_value=False)
    assert erase("--dry-run", "--json").document["found"]["events"] == 1
    assert erase().code == 2, "no question was asked"
    assert erase(answer=refuse).code == 1
    refuse.assert_called_once_with("Erase events=1 packed=0 quarantined=0 left=0? Counts: take_back.")
    assert len(accept.items()) == 2
    done = erase("--yes", "--json")
    assert (done.code, done.document["erased"]["events"], len(accept.items())) == (0, 1, 1)
    assert erase("town=x").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("call", "tenant=a"), "invalid id=None"),
        (("call", ":=1"), "':=1' is no field=value"),
        (("call", "id=1", "id:=2"), "the field 'id' is given twice"),
        (("call", "id:={"), "invalid id:={: expected JSON ("),
        (("calls", "id=1"), "no event 'calls' is declared; there is: call"),
        (("call",), "which event?"),
        (("call", "id=1", "--file", __file__), "which event?"),
        (("call", "--retract", "--file", __file__), "which event?"),
        (("call", "--file", "none.jsonl"), "does not exist"),
    ],
)
def test_mistakes_are_one_line(accept: Calls, arguments: tuple[str, ...], says: str) -> None:
    assert says in mistake(accept(*arguments))
