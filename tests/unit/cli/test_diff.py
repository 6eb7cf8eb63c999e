"""`counters diff` before a deployment: what it says, and what it exits with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Counter, Event, Sum, Threshold
from dynamodb_counters._declarations import Declaration, flatten
from simulation.world import World
from tests.unit.cli.blog import Described
from tests.unit.cli.in_process import Done, mistake, run_on, write_template

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count(), "taken": Sum("price")})
BIG = replace(SHOPS, where=Attr("price").gt(100))
TOTAL = Aggregate("total", SHOPS, pk="TOTAL", sk="ALL", measures={"taken": Sum("taken")})


def _template(folder: Path, **aggregators: tuple[Declaration, ...]) -> Path:
    return write_template(folder / "Stack.template.json", **aggregators)


def _diff(world: World, *arguments: str | Path) -> Done:
    return run_on(world, "diff", "--template", *map(str, arguments))


def test_json_has_each_name_and_threshold_that_is_new_changed_or_no_longer_declared(tmp_path: Path) -> None:
    stock = Counter("stock", by="sku")
    many = Threshold("many", SHOPS, at=[5], measure="sales")
    world = World(SHOPS, many, Threshold("gone", SHOPS, at=[9], measure="sales"), TOTAL)

    declared = flatten([BIG, replace(many, aggregate=BIG, at=[6]), stock, Threshold("low", stock, at=[1])])
    done = _diff(world, _template(tmp_path, Stack=declared), "--json")

    assert (done.code, done.document["first_deployment"]) == (1, False)
    assert [(entry["name"], entry["kind"], entry["next"].partition(",")[0]) for entry in done.document["names"]] == [
        ("shops", "changed", "declare the new one as 'shops_v2'"),
        ("stock", "new", ""),
        ("total", "undeclared", "counters drop total"),
        ("threshold gone", "undeclared", "counters drop gone"),
        ("threshold low", "new", ""),
        ("threshold many", "changed", "give the new one another name"),
    ]
    shops = done.document["names"][0]
    assert ("where" in shops["before"], shops["after"]["where"]["attribute"]) == (False, "price")


def test_what_may_change_freely_is_no_difference(tmp_path: Path) -> None:
    world = World(SHOPS)
    sale = replace(SALE, retention=timedelta(days=9), attributes={"id": int, "shop": str, "price": int})
    changed = replace(SHOPS, source=sale)
    done = _diff(world, _template(tmp_path, Stack=(changed,)))
    assert (done.code, done.out) == (0, "Nothing changes.\n")


def test_a_table_that_nothing_counts_yet(tmp_path: Path) -> None:
    done = _diff(World(founds=False), _template(tmp_path, Stack=(SHOPS,)))
    assert done.code == 1
    assert done.out.startswith("Nothing counts this table yet")


def test_diff_asks_which_of_several_aggregators(tmp_path: Path) -> None:
    world = World(SHOPS)
    file = _template(tmp_path, One=(BIG,), Two=(SHOPS,))

    message = "which aggregator? name one with --aggregator, or its --template; there is: One, Two"
    assert message in mistake(_diff(world, file))
    assert _diff(world, file, "--aggregator", "Two").code == 0
    assert _diff(world, file, "--aggregator", "One").code == 1
    # Stages of an app have the same names.
    (tmp_path / "Other.template.json").write_text(_template(tmp_path, One=(SHOPS,)).read_text())
    assert _diff(world, tmp_path).code == 0
    _template(tmp_path, One=(BIG,))
    assert _diff(world, tmp_path).code == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "is no template") for content in ("", "[]", '{"Resources": {"a": 5}}')),
        ('{"Resources": {}}', "there is: no aggregator"),
        (None, "run `cdk synth`, or name a template"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "Stack.template.json"
    if content is not None:
        file.write_text(content)
    assert message in mistake(_diff(World(founds=False), file))


def test_describe_shows_the_state_of_names_and_what_code_declares_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.world.MemoryTable", Described)
    world = World(SHOPS, TOTAL)
    world.deploy(BIG, replace(SHOPS, name="later", pk="LATER#{shop}"))
    streams = SimpleNamespace(describe_stream=lambda **_: {"StreamDescription": {"Shards": []}})
    outside: dict[str, Any] = {"clients": {"dynamodbstreams": streams}, "endpoint_url": "http://memory"}
    lines = run_on(world, "describe", **outside).out.splitlines()
    section = lines[lines.index("Names") + 3 :][:3]
    assert [" ".join(line.split()) for line in section] == [
        "later waiting - - as counted",
        "shops complete - - otherwise",
        "total complete - - not",
    ]
    document = run_on(world, "describe", "--json", **outside).document
    assert document["problems"][:3] == [
        "later is waiting",
        "shops is declared otherwise: a name keeps its definition",
        "total is declared no longer: `counters drop` ends it",
    ]
    assert "where" not in document["declarations"]["shops"]
