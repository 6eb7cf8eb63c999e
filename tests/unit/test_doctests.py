"""The examples in the documentation of runtime, simulation and benchmarks give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dynamodb_counters

_MODULES = ["dynamodb_counters"] + [
    module.name
    for module in pkgutil.walk_packages(dynamodb_counters.__path__, "dynamodb_counters.")
    if not module.name.startswith("dynamodb_counters.handlers.")
]
_MODULES += ["benchmarks.databases", "benchmarks.scale", "simulation.metered_table"]


@pytest.mark.parametrize("name", _MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), report=True)

    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [test for name in _MODULES for test in finder.find(importlib.import_module(name)) if test.examples]

    assert len(examples) > 20
