"""Imports go one way: tests and benchmarks use the simulation, which uses neither; its rooms look down only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("clock", "dynamodb", "engines", "delivery", "faults", "oracle", "schedules")


def _imported(folder: str) -> Iterator[tuple[Path, str]]:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield path.relative_to(ROOT), node.module
            elif isinstance(node, ast.Import):
                yield from ((path.relative_to(ROOT), alias.name) for alias in node.names)


@pytest.mark.parametrize(
    ("folder", "above"),
    [("simulation", {"benchmarks", "demo", "tests"}), ("benchmarks", {"tests"})],
)
def test_nothing_below_imports_what_uses_it(folder: str, above: set[str]) -> None:
    assert [(str(path), name) for path, name in _imported(folder) if name.partition(".")[0] in above] == []


def test_a_room_imports_only_rooms_before_it() -> None:
    wrong = []
    for path, name in _imported("simulation"):
        own, (package, _, rest) = path.parts[1].removesuffix(".py"), name.partition(".")
        room = rest.partition(".")[0]
        if package == "simulation" and own in ROOMS and (room not in ROOMS or ROOMS.index(room) > ROOMS.index(own)):
            wrong.append((str(path), name))
    assert wrong == []
