"""Imports go one way: from a room only to the rooms before it, never in a circle, type-only imports included.

Declaring and folding needs no AWS library: it is imported when a table is first touched, and never the CDK.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dynamodb_counters

_PROJECT = Path(__file__).parents[2]
_LIBRARY = "dynamodb_counters"
_CONSTRUCTS = "cdk_dynamodb_counters"
_RUNTIME = (_LIBRARY, "counters_lambda", "counters_cli")

# In the order of imports; rooms of one line never import each other.
_ROOMS = {
    "lambdas": """
        dynamodb_counters.errors
        dynamodb_counters.exactly_once
        dynamodb_counters._tiers
        dynamodb_counters._assumptions
        dynamodb_counters._items
        dynamodb_counters._declarations
        dynamodb_counters._fold
        dynamodb_counters._lean_client
        dynamodb_counters._table
        dynamodb_counters._quarantine
        dynamodb_counters._registry
        dynamodb_counters._writes dynamodb_counters._reads
        dynamodb_counters._erasure
        dynamodb_counters._counters
        dynamodb_counters.__init__
        counters_lambda.counting counters_lambda.http_api counters_lambda.__init__
        counters_lambda.handlers
        dynamodb_counters.testing counters_cli
        dynamodb_counters._pytest_plugin
    """,
    "infra": """
        cdk_dynamodb_counters._arguments cdk_dynamodb_counters._staging cdk_dynamodb_counters._synth
        cdk_dynamodb_counters._functions cdk_dynamodb_counters._http cdk_dynamodb_counters._tables
        cdk_dynamodb_counters.dedup_counter_table
        cdk_dynamodb_counters._streams
        cdk_dynamodb_counters.stream_aggregator cdk_dynamodb_counters.threshold_events
        cdk_dynamodb_counters.event_ingest cdk_dynamodb_counters.counter_api
        cdk_dynamodb_counters.testing
        cdk_dynamodb_counters.__init__
    """,
    "simulation": """
        simulation.__init__
        simulation.clock simulation.night simulation.memory
        simulation.memory_table
        simulation.aws
        simulation.engines
        simulation.delivery
        simulation.faults
        simulation.queue
        simulation.oracle
        simulation.pairs
        simulation.handler_process simulation.world simulation.throttled_burst
        simulation.counters_in_memory
        simulation.mutations simulation.nightly simulation.hostile
        simulation.specification
    """,
}
_LEVELS = {
    room: level for rooms in _ROOMS.values() for level, line in enumerate(rooms.split("\n")) for room in line.split()
}
_PURE = ("errors", "_tiers", "_assumptions", "_items", "_declarations", "_fold")

_SHARED_WITH_CONSTRUCTS = (
    *(f"{_LIBRARY}.{name}" for name in ("errors", "_assumptions", "_declarations", "_items.schema", "_reads.question")),
    "counters_lambda.http_api.json_schema",
)
"""Modules for both packages: declarations, schema, and the checks that hold at synth as at run time."""

_IMPURE_MODULES = {"asyncio", "io", "os", "pathlib", "random", "secrets", "socket", "subprocess", "sys", "threading"}
_IMPURE_MODULES |= {"time", "uuid", "boto3", "botocore", "aws_lambda_powertools", "mypy_boto3_dynamodb"}
_IMPURE_CALLS = {"now", "today", "utcnow", "open", "print", "input"}

_READ = (ast.Import, ast.ImportFrom, ast.Call)
_ROOTS = {
    **dict.fromkeys(_RUNTIME, _PROJECT / "lambdas"),
    _CONSTRUCTS: _PROJECT / "infra",
    **dict.fromkeys(("demo", "benchmarks", "simulation", "tests"), _PROJECT),
}


@cache
def _modules(package: str) -> dict[str, Path]:
    root = _ROOTS[package]
    paths = sorted((root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in paths}


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, _READ)]


@cache
def _imports(module: str, path: Path) -> list[tuple[str, int]]:
    """Return every module that a module imports, wherever in it, with the line."""
    imported = []
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            imported += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            base = node.module or ""
            modules = _modules(base.partition(".")[0]) if base.partition(".")[0] in _ROOTS else {}
            for alias in node.names:
                names = (f"{base}.{alias.name}", f"{base}.__init__")
                imported.append((next((name for name in names if name in modules), base), node.lineno))
    return imported


def _room(module: str) -> str:
    parts = module.split(".")
    return next(room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in _LEVELS)


@pytest.mark.parametrize("packages", [_RUNTIME, (_CONSTRUCTS,), ("simulation",)])
def test_imports_point_down(packages: tuple[str, ...]) -> None:
    wrong = [
        f"{module}:{line} imports {imported}"
        for package in packages
        for module, path in _modules(package).items()
        for imported, line in _imports(module, path)
        if imported.partition(".")[0] in packages and _room(imported) != _room(module)
        if _LEVELS[_room(imported)] >= _LEVELS[_room(module)]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", [*_RUNTIME, _CONSTRUCTS, "demo", "benchmarks", "simulation"])
def test_there_are_no_import_circles(package: str) -> None:
    graph = {
        module: {imported for imported, _ in _imports(module, path) if imported.partition(".")[0] == package}
        for module, path in _modules(package).items()
    }
    try:
        TopologicalSorter({module: used - {module} for module, used in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import circle: {' -> '.join(reversed(error.args[1]))}")


@pytest.mark.parametrize("room", _PURE)
def test_pure_rooms_have_no_clock_and_no_io(room: str) -> None:
    problems = []
    for module, path in _modules(_LIBRARY).items():
        if _room(module) != f"{_LIBRARY}.{room}":
            continue
        problems += [
            f"{module}:{line} imports {imported}"
            for imported, line in _imports(module, path)
            if imported.partition(".")[0] in _IMPURE_MODULES
        ]
        for node in _nodes(path):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in _IMPURE_CALLS:
                    problems.append(f"{module}:{node.lineno} calls {name}()")
    assert problems == []


def test_the_runtime_never_imports_the_constructs_and_neither_knows_the_other_folders() -> None:
    others = {"demo", "benchmarks", "simulation", "tests", "examples"}
    forbidden = {name: others | {_CONSTRUCTS, "aws_cdk", "constructs"} for name in _RUNTIME} | {_CONSTRUCTS: others}
    forbidden |= {"simulation": {"tests", "benchmarks", "demo"}, "benchmarks": {"tests"}}
    forbidden |= {"demo": {"tests", "benchmarks"}}
    problems = [
        f"{module}:{line} imports {imported}"
        for package, names in forbidden.items()
        for module, path in _modules(package).items()
        for imported, line in _imports(module, path)
        if imported.partition(".")[0] in names
    ]
    assert problems == []


def test_the_constructs_import_only_what_both_must_agree_on() -> None:
    wrong = [
        f"{module}:{line} imports {imported}"
        for module, path in _modules(_CONSTRUCTS).items()
        for imported, line in _imports(module, path)
        if imported.partition(".")[0] in _RUNTIME and not imported.startswith(_SHARED_WITH_CONSTRUCTS)
    ]
    assert wrong == []


def test_no_two_modules_of_a_folder_have_nearly_the_same_name() -> None:
    paths = [path for package in _RUNTIME for path in _modules(package).values()]
    stems = Counter((path.parent, path.stem.strip("_").removesuffix("s")) for path in paths)
    assert [stem for stem, times in stems.items() if times > 1] == []


def test_unit_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (_PROJECT / "tests" / "unit").iterdir() if any(path.glob("test_*.py"))}
    rooms = {room.split(".")[1].strip("_") for room in _LEVELS if room.startswith(_RUNTIME) and "." in room}
    packages = {
        path.parent.name.strip("_") for root in _RUNTIME for path in (_PROJECT / "lambdas" / root).glob("*/*.py")
    }
    assert packages <= folders
    assert folders <= rooms | {"cli", "infra", "demo", "benchmarks", "simulation"}


_PURE_MODULES = [
    module.removesuffix(".__init__")
    for module in _modules(_LIBRARY)
    if _room(module).removeprefix(f"{_LIBRARY}.") in (*_PURE, "__init__")
]
_DECLARING = "Aggregate, Attr, Condition, Count, CountersError, Event, Group, InvalidArgumentError, Sum, Window"


def _loaded(statement: str, modules: str) -> set[str]:
    expression = f"print(*(name for name in {modules!r}.split() if name in sys.modules))"
    script = f"import sys; sys.path[:0] = {sys.path!r}; {statement}; {expression}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("imported", "modules", "loaded"),
    [
        (", ".join(_PURE_MODULES), "boto3 botocore aws_cdk jsii aws_lambda_powertools", set()),
        ("counters_lambda.handlers.aggregator", "aws_cdk jsii cdk_dynamodb_counters boto3 botocore", {"botocore"}),
        # Functions that count nothing load no fold.
        *(
            (f"counters_lambda.handlers.{name}", "dynamodb_counters._fold.fold", set())
            for name in ("notifier", "ingest_queue", "ingest_http")
        ),
    ],
)
def test_nothing_is_loaded_that_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, imported: str, modules: str, loaded: set[str]
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert _loaded(f"import {imported}", modules) == loaded


def test_declaring_loads_no_aws_library() -> None:
    assert _loaded(f"from dynamodb_counters import {_DECLARING}", "boto3 botocore aws_cdk jsii") == set()


def test_a_cold_start_looks_for_no_garbage() -> None:
    count = "sum(each['collections'] for each in __import__('gc').get_stats())"
    script = f"""
import sys; sys.path[:0] = {sys.path!r}
import counters_lambda.handlers
before = {count}
import counters_lambda.handlers.aggregator
from dynamodb_counters._table import make_client
make_client()
print({count} - before)
"""
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    assert int(subprocess.check_output([sys.executable, "-c", script], env=environment)) == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynamodb_counters.Nothing  # type: ignore[attr-defined]
