"""Imports go one way: from a room only to the rooms before it, never in a circle, type-only imports included.

Declaring and folding needs no AWS library: it is imported when a table is first touched, and never the CDK.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dynamodb_counters

_PROJECT = Path(__file__).parents[2]
_RUNTIME = "dynamodb_counters"
_CONSTRUCTS = "cdk_dynamodb_counters"

# In the order of imports; rooms of one line never import each other.
_ROOMS = {
    _RUNTIME: """
        errors
        exactly_once
        _timeline
        _assumptions
        _items
        _declarations
        _fold
        _clients
        _table
        _layouts _quarantine
        _control
        _writes _commit _reads
        _backfill _erase
        _counters
        _http
        _dev
        handlers cli
        testing
        _pytest_plugin
        __init__
    """,
    _CONSTRUCTS: """
        _arguments _staging _synth
        _functions _http _tables
        dedup_counter_table
        _streams
        stream_aggregator threshold_events event_ingest counter_api
        testing
        __init__
    """,
    "simulation": """
        __init__
        clock night memory
        memory_table
        aws
        engines
        delivery
        faults
        queue
        oracle
        pairs
        handler_process world throttled_burst
        counters_in_memory
        mutations nightly hostile
        specification
    """,
}
_LEVELS = {
    package: {room: level for level, line in enumerate(rooms.split("\n")) for room in line.split()}
    for package, rooms in _ROOMS.items()
}
_PURE = ("errors", "_timeline", "_assumptions", "_items", "_declarations", "_fold")

_SHARED_WITH_CONSTRUCTS = (
    "errors",
    "_assumptions",
    "_declarations",
    "_items.derived_fields",
    "_items.table_schema",
    "_http.json_schema",
    "_reads.question",
)
"""Modules for both packages: declarations, schema, and the checks that hold at synth as at run time."""

_IMPURE_MODULES = {"asyncio", "io", "os", "pathlib", "random", "secrets", "socket", "subprocess", "sys", "threading"}
_IMPURE_MODULES |= {"time", "uuid", "boto3", "botocore", "aws_lambda_powertools", "mypy_boto3_dynamodb"}
_IMPURE_CALLS = {"now", "today", "utcnow", "open", "print", "input"}

_READ = (ast.Import, ast.ImportFrom, ast.Call)
_ROOTS = {
    _RUNTIME: _PROJECT / "lambdas",
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
    """Every module that a module imports, wherever in it, with the line."""
    known, found = _modules(module.partition(".")[0]), []
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                package = f"{base}.__init__"
                found.append((full if full in known else package if package in known else base, node.lineno))
    return found


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def _offenders(package: str) -> list[str]:
    levels, found = _LEVELS[package], []
    for module, path in _modules(package).items():
        room = _room(module)
        assert room in levels, f"{module} is in no known room"
        for imported, line in _imports(module, path):
            if imported.partition(".")[0] != package or _room(imported) == room:
                continue
            if levels[_room(imported)] >= levels[room]:
                allowed = ", ".join(name for name, level in levels.items() if level < levels[room])
                found.append(f"{module}:{line} imports {imported}; {room} may import only {allowed}")
    return found


@pytest.mark.parametrize("package", _ROOMS)
def test_rooms_import_one_way(package: str) -> None:
    assert _offenders(package) == []


@pytest.mark.parametrize("package", [_RUNTIME, _CONSTRUCTS, "demo", "benchmarks", "simulation"])
def test_there_are_no_import_circles(package: str) -> None:
    graph = {
        module: {imported for imported, _ in _imports(module, path) if imported.partition(".")[0] == package}
        for module, path in _modules(package).items()
    }
    try:
        TopologicalSorter({module: used - {module} for module, used in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import circle: {' -> '.join(reversed(error.args[1]))}")


def test_handlers_never_load_rooms_of_operators() -> None:
    paths = _modules(_RUNTIME)
    reached = {module for module in paths if _room(module) == "handlers"}
    left = list(reached)
    while left:
        module = left.pop()
        found = {imported for imported, _ in _imports(module, paths[module]) if imported in paths} - reached
        reached |= found
        left += found
    assert {_room(module) for module in reached} & {"_dev", "cli", "testing"} == set()


@pytest.mark.parametrize("room", _PURE)
def test_pure_rooms_have_no_clock_and_no_io(room: str) -> None:
    found = []
    for module, path in _modules(_RUNTIME).items():
        if _room(module) != room:
            continue
        found += [
            f"{module}:{line} imports {imported}"
            for imported, line in _imports(module, path)
            if imported.partition(".")[0] in _IMPURE_MODULES
        ]
        for node in _nodes(path):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in _IMPURE_CALLS:
                    found.append(f"{module}:{node.lineno} calls {name}()")
    assert found == []


def test_the_runtime_never_imports_the_constructs_and_neither_knows_the_other_folders() -> None:
    others = {"demo", "benchmarks", "simulation", "tests", "examples"}
    forbidden = {_RUNTIME: others | {_CONSTRUCTS, "aws_cdk", "constructs"}, _CONSTRUCTS: others}
    forbidden |= {"simulation": {"tests", "benchmarks", "demo"}, "benchmarks": {"tests"}}
    forbidden |= {"demo": {"tests", "benchmarks"}}
    found = [
        f"{module}:{line} imports {imported}"
        for package, names in forbidden.items()
        for module, path in _modules(package).items()
        for imported, line in _imports(module, path)
        if imported.partition(".")[0] in names
    ]
    assert found == []


def test_the_constructs_import_only_what_both_must_agree_on() -> None:
    allowed = tuple(f"{_RUNTIME}.{name}" for name in _SHARED_WITH_CONSTRUCTS)
    found = [
        f"{module}:{line} imports {imported}"
        for module, path in _modules(_CONSTRUCTS).items()
        for imported, line in _imports(module, path)
        if imported.partition(".")[0] == _RUNTIME and not imported.startswith(allowed)
    ]
    assert found == []


def test_no_two_modules_of_a_folder_have_nearly_the_same_name() -> None:
    stems = Counter((path.parent.name, path.stem.strip("_").removesuffix("s")) for path in _modules(_RUNTIME).values())
    assert [stem for stem, times in stems.items() if times > 1] == []


def test_unit_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (_PROJECT / "tests" / "unit").iterdir() if any(path.glob("test_*.py"))}
    rooms = {room.strip("_") for room in _LEVELS[_RUNTIME] if (_ROOTS[_RUNTIME] / _RUNTIME / room).is_dir()}
    # Erasures are asked about in worlds alone.
    assert rooms <= folders | {"erase"}
    assert folders <= rooms | {"infra", "demo", "benchmarks", "simulation"}


_PURE_MODULES = [
    module.removesuffix(".__init__") for module in _modules(_RUNTIME) if _room(module) in (*_PURE, "__init__")
]
_DECLARING = "Aggregate, Attr, Condition, Count, CountersError, Event, Group, InvalidArgumentError, Sum, Window"


def _loaded(statement: str, modules: str) -> set[str]:
    seen = f"print(*(name for name in {modules!r}.split() if name in sys.modules))"
    script = f"import sys; sys.path[:0] = {sys.path!r}; {statement}; {seen}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("imported", "modules", "loaded"),
    [
        (", ".join(_PURE_MODULES), "boto3 botocore aws_cdk jsii aws_lambda_powertools", set()),
        ("dynamodb_counters.handlers.aggregator", "aws_cdk jsii cdk_dynamodb_counters boto3 botocore", {"botocore"}),
        # Functions that count nothing load no fold.
        *(
            (
                f"dynamodb_counters.handlers.{name}",
                "dynamodb_counters._fold.fold dynamodb_counters._fold.updates",
                set(),
            )
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
before = {count}
import dynamodb_counters.handlers.aggregator
print({count} - before)
"""
    assert int(subprocess.check_output([sys.executable, "-c", script])) <= 20


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynamodb_counters.Nothing  # type: ignore[attr-defined]
