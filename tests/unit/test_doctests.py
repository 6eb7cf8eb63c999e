"""The examples in the documentation of runtime, simulation and benchmarks give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import counters_cli
import counters_lambda
import dynamodb_counters

_MODULES = ["dynamodb_counters"] + [
    module.name
    for package in (dynamodb_counters, counters_lambda, counters_cli)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.startswith("counters_lambda.handlers.")
]
_MODULES += ["benchmarks.cost_model", "benchmarks.databases", "simulation.queue.throttled_table"]


def test_examples_give_what_they_say() -> None:
    results = {name: doctest.testmod(importlib.import_module(name), report=True) for name in _MODULES}

    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 20
