"""Imports of users are typed: mypy and pyright, both strict, pass right.py and refuse each marked line of wrong.py."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_PROJECT = _HERE.parents[1]
_PYRIGHT = _PROJECT / "node_modules" / ".bin" / "pyright"
_SECONDS = 600


def _marked(name: str) -> set[tuple[str, int]]:
    lines = (_HERE / name).read_text().splitlines()
    return {(name, number) for number, line in enumerate(lines, 1) if line.endswith("# refused")}


def _by_mypy() -> set[tuple[str, int]]:
    # The project's own settings and cache: `make lint` needs the same answers.
    files = [f"tests/typing/{name}" for name in ("right.py", "wrong.py")]
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", *files]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode in (0, 1), done.stderr
    errors = re.findall(r"^(\S+?):(\d+): error:", done.stdout, re.MULTILINE)
    assert all(path in files for path, _ in errors), done.stdout
    return {(Path(path).name, int(line)) for path, line in errors}


def _by_pyright() -> set[tuple[str, int]]:
    if shutil.which("node") is None or not _PYRIGHT.exists():
        message = "pyright needs node, and `make setup`"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    command = [str(_PYRIGHT), "--project", str(_HERE), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2, report
    return {
        (Path(entry["file"]).name, entry["range"]["start"]["line"] + 1)
        for entry in report["generalDiagnostics"]
        if entry["severity"] == "error"
    }


def _cdk_modules(source: str) -> set[str]:
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    modules = {node.module for node in imports if node.module and node.module.startswith("aws_cdk.")}
    named = {alias.name for node in imports if node.module == "aws_cdk" for alias in node.names}
    return modules | {f"aws_cdk.{name}" for name in named if name.islower()}


@pytest.mark.night
def test_mypy_reads_every_module_of_the_cdk_that_is_imported() -> None:
    settings = tomllib.loads((_PROJECT / "pyproject.toml").read_text())["tool"]["mypy"]
    [read] = [override["module"] for override in settings["overrides"] if override.get("follow_imports") == "normal"]
    places = [_PROJECT / name for name in settings["files"]]
    sources = [path for place in places for path in (place.rglob("*.py") if place.is_dir() else (place,))]

    imported = {module for path in sources for module in _cdk_modules(path.read_text())}

    assert imported | {"aws_cdk", "aws_cdk._jsii.*", "aws_cdk.interfaces.*"} == set(read)


def test_declarations_that_type_checkers_pass_can_be_made() -> None:
    assert runpy.run_path(str(_HERE / "right.py"))["VIEWS"].fields == ("url",)


@pytest.mark.night
@pytest.mark.parametrize("check", [_by_mypy, _by_pyright], ids=["mypy", "pyright"])
def test_right_lines_pass_and_each_marked_line_is_refused(check: Callable[[], set[tuple[str, int]]]) -> None:
    errors = check()

    assert errors == _marked("wrong.py")
    assert len(errors) >= 15
