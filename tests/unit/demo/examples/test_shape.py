"""Every folder of `demo/examples` is an example of the same shape."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import demo.examples
from demo.example import Example
from demo.examples import load
from demo.options import EXAMPLES
from examples import stacks
from tests.unit.demo.fakes import setup

_ROOT = Path(demo.examples.__file__).parents[2]
_BORROWED = {"packed": "blog"}
"""Examples that are sent what another one is, which has the same truth."""

_OWN = sorted(set(EXAMPLES) - set(_BORROWED))


def test_every_folder_is_found_and_has_a_stack() -> None:
    assert [example.name for example in load(EXAMPLES)] == EXAMPLES
    assert [example.stack for example in load(EXAMPLES)] == [*stacks()]


def test_borrowed_traffic_is_the_same_traffic() -> None:
    given = setup()
    feeds = {example.name: example.prepare(given).feeds() for example in load(EXAMPLES)}

    for borrower, lender in _BORROWED.items():
        assert [feed.deliveries for feed in feeds[borrower]] == [feed.deliveries for feed in feeds[lender]]
        assert {feed.event for feed in feeds[borrower]}.isdisjoint(feed.event for feed in feeds[lender])


@pytest.mark.parametrize("example", load(EXAMPLES))
def test_a_seed_decides_everything(example: type[Example]) -> None:
    assert example.prepare(setup()) == example.prepare(setup())
    assert example.prepare(setup()) != example.prepare(setup(seed=2))


@pytest.mark.parametrize("name", _OWN)
def test_its_truth_shares_no_code_with_the_runtime(name: str) -> None:
    truth = f"demo.examples.{name}.truth"
    seen: set[str] = set()
    todo = {truth}
    while todo:
        module = todo.pop()
        seen.add(module)
        if module.startswith("demo."):
            path = _ROOT.joinpath(*module.split(".")).with_suffix(".py")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    todo |= {str(node.module)} - seen
                elif isinstance(node, ast.Import):
                    todo |= {alias.name for alias in node.names} - seen

    assert {truth, f"demo.examples.{name}.traffic"} <= seen
    assert not any(module.startswith(("dynamodb_counters", "infra", "cdk_dynamodb_counters")) for module in seen)
