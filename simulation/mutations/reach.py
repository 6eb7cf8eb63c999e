"""The functions of the runtime that each test reaches: calls in a copy of the runtime, and a plugin of pytest.

For each test that passes, the plugin appends a line of JSON to a file of its process in the root folder.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from simulation.mutations.generated import functions

_REACHED: Final = set[str]()
vars(builtins)["reached"] = _REACHED.add


class Reach(NamedTuple):
    """A test, how long it takes, and the functions that it reaches."""

    test: str
    seconds: float
    functions: frozenset[str]


def instrument(runtime: Path) -> None:
    """Let each function of a copy of the runtime say that it was called, to whoever listens in its process."""
    for file in runtime.rglob("*.py"):
        tree = ast.parse(file.read_text())
        for name, function in functions(tree):
            text = f"{file.relative_to(runtime)} {name}"
            call = ast.parse(f"__import__('builtins').__dict__.get('reached', len)({text!r})").body
            for nested in [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)]:
                begin = int(ast.get_docstring(nested) is not None)
                nested.body[begin:begin] = call
        file.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def read(folder: Path) -> Iterator[Reach]:
    """Read what the plugin of each process has written."""
    for file in folder.glob("*.reach"):
        for test, seconds, reached in map(json.loads, file.read_text().splitlines()):
            yield Reach(test, seconds, frozenset(reached))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    failed, begun = item.session.testsfailed, time.monotonic()
    _REACHED.clear()
    result = yield
    if item.session.testsfailed == failed:
        with (item.config.rootpath / f"{os.getpid()}.reach").open("a") as file:
            file.write(json.dumps([item.nodeid, time.monotonic() - begun, sorted(_REACHED)]) + "\n")
    return result
