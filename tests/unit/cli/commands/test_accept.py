"""`counters accept` takes one event, and says what became of it."""

from __future__ import annotations

import pytest

from dynamodb_counters import Aggregate, Count, Event
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.integration.stores import Store
from tests.unit.cli.in_process import Done, run

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count()})


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
