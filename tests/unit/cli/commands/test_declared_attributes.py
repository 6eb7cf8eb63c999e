"""Commands that write events check what their deployment declares of attributes, and say what became of each."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Attribute, Count, Event, Sum
from dynamodb_counters._declarations.codec import decode, encode
from simulation.engines import Engine
from simulation.engines.tables import create_table
from simulation.workbench import Workbench
from tests.integration.stores import Store
from tests.unit.cli.in_process import Done, run

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
RIGHT = ("tenant=a", "id=1", "at=2026-11-20T10:00:00Z", "status=200", "ms:=5", "cached=true")
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count()})


class Deployed:
    """A table that is counted as the function's environment says."""

    def __init__(self) -> None:
        self.bench = Workbench(decode(encode((GOOD, TIME), attributes=True)))
        self.bench.aggregator.handle({})

    def __call__(self, *arguments: str) -> Done:
        table, clock = self.bench.table, self.bench.clock
        return run(*arguments, client=table, table_name=table.name, clock=clock, sleep=clock.advance)

    def items(self) -> list[Any]:
        return [item for item in self.bench.table.items() if item["_type"]["S"] == "call"]

    def counts(self) -> tuple[int, int]:
        self.bench.deliver_all()
        get = self.bench.counters.get
        return get(GOOD, tenant="a").measures["calls"], get(TIME, tenant="a").measures["ms"]


@pytest.fixture
def counters() -> Deployed:
    return Deployed()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("tenant=", "invalid tenant='': expected a string of at least 1 characters"),
        ("status=ok", "invalid status='ok': expected a whole number"),
        ("ms:=-5", "invalid ms=-5: expected a whole number of at least 0"),
        ("at=yesterday", "invalid at='yesterday': expected an ISO 8601 time with an offset"),
        ("status=1.5", "invalid status=1.5: expected a whole number"),
        ("cached=yes", "invalid cached='yes': expected true or false"),
        ("id:=1", "invalid id=1: expected a string"),
    ],
)
def test_accept_refuses_what_the_deployment_does_not_declare(counters: Deployed, wrong: str, said: str) -> None:
    name = wrong.partition("=")[0].removesuffix(":")
    given = [one for one in RIGHT if one.partition("=")[0].removesuffix(":") != name]
    done = counters("accept", "call", *given, wrong)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert counters.items() == []


def test_accept_and_retract_take_texts_as_they_are_declared(counters: Deployed) -> None:
    assert counters("accept", "call", *RIGHT).out == "accepted\n"
    [item] = counters.items()
    assert (item["id"], item["status"], item["cached"]) == ({"S": "1"}, {"N": "200"}, {"BOOL": True})
    assert counters.counts() == (1, 5)

    assert counters("retract", "call", "tenant=a", "id=1").out == "retracted\n"
    assert counters.counts() == (0, 0)
    gone = counters("retract", "call", "tenant=a", "id=1")
    assert (gone.code, gone.out) == (1, "there is no such event\n")
    assert counters("retract", "call", "tenant=a", "--json").code == 2


def test_replay_converts_columns_by_their_types_and_rejects_the_others(counters: Deployed, tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    at = "2026-11-20T10:00:00Z"
    rows = [f"a,1,{at},200,5", f"a,2,{at},503,7", f"a,3,{at},ok,9", "a,4,yesterday,200,9", f"a,5,{at},200,-9"]
    file.write_text("\n".join(["tenant,id,at,code,ms,cached", *(f"{row},false" for row in rows)]))
    done = counters("replay", str(file), "--event", "call", "--map", "status=code")
    assert done.code == 1
    rejects = [json.loads(line) for line in (tmp_path / "calls.csv.rejects.jsonl").read_text().splitlines()]
    assert [(one["line"], one["reason"].partition(":")[0]) for one in rejects] == [
        (4, "invalid status='ok'"),
        (5, "invalid at='yesterday'"),
        (6, "invalid ms=-9"),
    ]
    assert counters.counts() == (1, 12)
    assert counters.items()[0]["cached"] == {"BOOL": False}


def test_json_has_types_of_its_own(counters: Deployed, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_text('{"tenant":"a","id":"1","at":"2026-11-20T10:00:00Z","status":"200","ms":1}')
    assert counters("replay", str(file), "--event", "call").code == 1
    assert counters.items() == []


@pytest.fixture
def store(moto_engine: Engine) -> Store:
    create_table(moto_engine.client, "sales", expires=False)
    store = Store(moto_engine, "sales")
    store.deploy(SHOPS)
    return store


def accept(store: Store, *arguments: str) -> Done:
    return run("accept", *arguments, client=store.client, table_name="sales", clock=store.clock)


def test_an_event_is_accepted_once_with_the_types_it_is_given(store: Store) -> None:
    sale = ("sale", "id=1", "shop=a=b", "price:=9.50", "tags:=[1]", "note=")

    assert accept(store, *sale).out == "accepted\n"
    assert accept(store, *sale, "--json").document == {"status": "duplicate", "reason": None}
    item = store.item("SALE#1", "SALE")
    assert (item["shop"], item["price"], item["tags"]) == ({"S": "a=b"}, {"N": "9.50"}, {"L": [{"N": "1"}]})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sale", "shop=a"), "invalid id=None"),
        (("sale", "id"), "invalid attribute 'id': expected attribute=text or attribute:=JSON"),
        (("sale", "=1"), "invalid attribute '=1'"),
        (("sale", "id=1", "id:=2"), "the attribute 'id' is given twice"),
        (("sale", "id:={"), "expected JSON after :="),
        (("sales", "id=1"), "no event 'sales' is declared; there is: sale"),
    ],
)
def test_mistakes_are_one_line(store: Store, arguments: tuple[str, ...], says: str) -> None:
    done = accept(store, *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1
