"""`counters diff` before a deployment: what it says, and what it exits with."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._declarations.groups import generation
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.cli.in_process import Done, run

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count(), "taken": Sum("price")})
BIG = replace(SHOPS, where=Attr("price").gt(100))


@pytest.fixture
def store(moto_engine: Any) -> Store:
    create_table(moto_engine.client, "sales", expires=False)
    return Store(moto_engine, "sales")


def _template(folder: Path, **aggregators: tuple[Declaration, ...]) -> Path:
    resources: dict[str, Any] = {"Table": {"Type": "AWS::DynamoDB::GlobalTable"}}
    for name, declared in aggregators.items():
        variables = {"DECLARATIONS": encode(declared), "TABLE_NAME": {"Ref": "Table"}}
        properties = {
            "Handler": "dynamodb_counters.handlers.aggregator.handler",
            "Environment": {"Variables": variables},
        }
        resources[name] = {"Type": "AWS::Lambda::Function", "Properties": properties}
    file = folder / "Stack.template.json"
    file.write_text(json.dumps({"Resources": resources}))
    return file


def _diff(store: Store, *arguments: str | Path) -> Done:
    return run("diff", "--table", "sales", *map(str, arguments), client=store.client)


def test_a_changed_filter_says_what_was_and_what_happens(store: Store, tmp_path: Path) -> None:
    store.deploy(SHOPS)
    over = Aggregate("total", BIG, pk="TOTAL", sk="ALL", measures={"taken": Sum("taken")})

    # The folder of `cdk synth` will do.
    _template(tmp_path, Stack=(BIG, over))
    done = _diff(store, "--template", tmp_path)

    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[:4] == [
        "shops: changed, waits for a backfill",
        "  next: counters backfill shops",
        "--- table",
        "+++ deployment",
    ]
    assert '+    "attribute": "price",' in lines
    assert "total: new, waits for a backfill of shops" in lines


def test_a_changed_source_is_shown(store: Store) -> None:
    store.deploy(SHOPS)
    order = Event("order", pk="ORDER#{id}", sk="ORDER")

    done = _diff(store, "--declarations", encode((replace(SHOPS, source=order),)))

    changed = [line for line in done.out.splitlines() if line[:1] in ("+", "-")]
    assert changed == ["--- table", "+++ deployment", '-  "source": "sale"', '+  "source": "order"']


def test_json_holds_the_same_and_says_what_is_not_whole(store: Store) -> None:
    store.deploy(SHOPS)
    key = {"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "GENERATIONS"}}
    status = {"S": json.dumps({"shops": {"reads": 0, "whole": False}})}
    store.client.put_item(TableName="sales", Item={**key, "status": status})

    done = _diff(store, "--json", "--declarations", encode((BIG,)))

    assert done.code == 1
    [shops] = done.document["names"]
    assert ("where" in shops["before"], shops["after"]["where"]["attribute"]) == (False, "price")
    assert (shops["name"], shops["kind"], shops["whole"]) == ("shops", "waits", False)
    assert shops["next"] == "counters backfill shops"


def test_the_generation_that_readers_use_is_what_is_compared_with(store: Store) -> None:
    store.deploy(generation(BIG, 2))
    key = {"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "GENERATIONS"}}
    store.client.put_item(TableName="sales", Item={**key, "status": {"S": '{"shops": {"reads": 2}}'}})

    assert _diff(store, "--declarations", encode((BIG,))).code == 0
    assert _diff(store, "--declarations", encode((SHOPS,))).code == 1


def test_a_table_that_nothing_counts_yet(store: Store) -> None:
    done = _diff(store, "--declarations", encode((SHOPS,)))

    assert done.code == 1
    assert done.out.startswith("Nothing counts this table yet")


def test_diff_asks_which_of_several_aggregators(store: Store, tmp_path: Path) -> None:
    store.deploy(SHOPS)
    file = _template(tmp_path, One=(BIG,), Two=(SHOPS,))

    refused = _diff(store, "--template", file)
    assert (refused.code, refused.out) == (2, "")
    assert "which aggregator? name one with --aggregator: One, Two" in refused.err
    assert _diff(store, "--template", file, "--aggregator", "Two").code == 0
    assert _diff(store, "--template", file, "--aggregator", "One").code == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is no template"),
        ("[]", "is no template"),
        ('{"Resources": {"a": 5}}', "is no template"),
        ('{"Resources": {}}', "no aggregator in"),
        (None, "run `cdk synth`, or name a template"),
    ],
)
def test_wrong_input_is_one_line(store: Store, tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "Stack.template.json"
    if content is not None:
        file.write_text(content)

    done = _diff(store, "--template", file)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_a_template_or_declarations_not_both(store: Store) -> None:
    assert _diff(store, "--template", "x", "--declarations", encode((SHOPS,))).code == 2


@pytest.fixture
def waiting(store: Store) -> Store:
    """A table whose last deployment has changed a definition, and added one over it: both wait for a backfill."""
    over = Aggregate("total", BIG, pk="TOTAL", sk="ALL", measures={"taken": Sum("taken")})
    for declared in ((SHOPS,), (BIG, over)):
        Aggregator(store.table, declared, quarantine_retention_seconds=10**9).handle({})
    return store


def test_a_definition_that_waits_is_still_a_difference_once_it_is_deployed(waiting: Store) -> None:
    over = Aggregate("total", BIG, pk="TOTAL", sk="ALL", measures={"taken": Sum("taken")})
    done = _diff(waiting, "--declarations", encode((BIG, over)))
    assert done.code == 1
    assert "shops: changed, waits for a backfill" in done.out
    assert done.out.splitlines()[1] == "  next: counters backfill shops"


def test_describe_shows_the_definition_in_force_and_what_waits_in_its_place(waiting: Store) -> None:
    streams = boto3.client("dynamodbstreams", region_name="us-east-1")
    outside: dict[str, Any] = {"client": waiting.client, "clients": {"dynamodbstreams": streams}}
    outside |= {"endpoint_url": "http://moto", "width": 150}
    shown = run("describe", "--table", "sales", **outside).out
    assert re.search(r'shops waits for a backfill: *\n.*"name": "shops".*"where": \{', shown, re.DOTALL)
    facts = run("describe", "--table", "sales", "--json", **outside).document["declarations"]
    assert [(one["name"], one["counts"] is None, one["waits"] is None) for one in facts] == [
        ("sale", False, True),
        ("shops", False, False),
        ("total", False, True),
    ]
