"""Explorations for TLC: a module with constants, and the same with one of its guards removed.

They stand beside the modules in docs/spec, as TOML.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from simulation.engines import maven

MODULES: Final = Path(__file__).parents[2] / "docs" / "spec"
PROGRAM: Final = "TLC"
_POM: Final = Path(__file__).parent / "pom.xml"
_STATES: Final = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found", re.MULTILINE)
_VIOLATED: Final = re.compile(r"^Error: (?:Invariant (\w+) is violated|Deadlock reached)", re.MULTILINE)
DEADLOCK: Final = "Deadlock"
_STEP: Final = re.compile(r"^State (\d+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of TLC: `violated` names the invariant, and `trace` is the shortest way to violate it."""

    states: int
    seconds: float
    violated: str | None
    trace: list[str]


def installed() -> Path:
    """Return the folder with TLC's jar, downloaded if missing."""
    return maven.installed_jars(PROGRAM, _POM)


def check(
    module: str,
    configuration: str,
    files: Mapping[str, str] | None = None,
    seconds: float = 600,
    *,
    compiled_in_haste: bool = False,
) -> Result:
    """Explore every state of a module, breadth first; `files` are modules that are not in docs/spec.

    A module that is explored in seconds is faster if Java compiles in haste.

    Raises `RuntimeError` if TLC cannot: an error in a module, or no end in time.
    """
    java, jars = maven.find_java(PROGRAM), installed()
    with tempfile.TemporaryDirectory() as folder:
        for path in MODULES.glob("*.tla"):
            shutil.copy(path, folder)
        for name, text in {**(files or {}), f"{module}.cfg": configuration}.items():
            (Path(folder) / name).write_text(text)
        # One worker, so that the first counterexample is a shortest one; states and queue go into the folder.
        # TLC unpacks modules into Java's folder for temporary files, where two at a time would meet.
        options = [f"-Djava.io.tmpdir={folder}", "-Xmx2g", "-Xss16m", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
        options += ["-XX:TieredStopAtLevel=1"] if compiled_in_haste else []
        arguments = ["-nowarning", "-workers", "1", "-metadir", f"{folder}/states", module]
        command = [java, *options, "tlc2.TLC", *arguments]
        begun = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as expired:
            raise RuntimeError(f"TLC did not end within {seconds:.0f} s: {module}") from expired
        took = time.monotonic() - begun
    states, violated = _STATES.findall(done.stdout), _VIOLATED.search(done.stdout)
    if not states or (violated is None and "No error has been found" not in done.stdout):
        raise RuntimeError(f"TLC could not check {module}:\n{done.stdout}{done.stderr[-1000:]}")
    trace = [step.strip() for step in _STEP.split(done.stdout)[2::2] if violated]
    return Result(int(states[-1][1].replace(",", "")), took, violated and (violated[1] or DEADLOCK), trace)


def configured(constants: Mapping[str, str], *lines: str) -> str:
    """Text of a configuration of TLC."""
    return "\n".join([*lines, "CONSTANTS", *(f"  {name} {value}" for name, value in constants.items())]) + "\n"


@dataclass(frozen=True, slots=True)
class Exploration:
    """Constants of a module; a `guard` may be removed, others be made wrong, which some invariant must notice.

    The tests run those with a known number of `states`, and what is `quick`.
    """

    specification: Specification
    name: str
    about: str
    constants: Mapping[str, str] = field(default_factory=dict)
    states: int | None = None
    guard: str | None = None
    quick: bool = False

    def check(self, seconds: float = 600, *, compiled_in_haste: bool = False) -> Result:
        of = self.specification
        removed = {} if self.guard is None else {"Without": f'= {{"{self.guard}"}}'}
        lines = ("INIT Init", "NEXT Next", "VIEW View", "CHECK_DEADLOCK FALSE", *of.lines)
        text = configured({**of.constants, **self.constants, **removed}, *lines)
        # The module for TLC extends the one with the actions.
        return check(f"{of.name}MC", text, seconds=seconds, compiled_in_haste=compiled_in_haste)

    def without(self, about: str, constants: Mapping[str, str] | None = None, **more: Any) -> Exploration:
        return replace(self, about=about, constants={**self.constants, **(constants or {})}, **more)


class Specification:
    """A module of docs/spec, what must hold in it, the constants of most explorations, and all of these."""

    def __init__(self, name: str) -> None:
        data: dict[str, Any] = tomllib.loads((MODULES / f"{name}.toml").read_text())
        self.name, self.invariants = name, data["invariants"]
        self.constants: dict[str, str] = data["constants"]
        self.lines = [f"INVARIANTS {' '.join(self.invariants)}"]
        self.lines += [f"CONSTRAINT {data['constraint']}"] if "constraint" in data else []
        cases = {key: Exploration(self, key, **values) for key, values in data["configurations"].items()}
        self.configurations = [*cases.values()]
        self.removals = [cases[values.pop("from")].without(key, **values) for key, values in data["removals"].items()]

    @property
    def guards(self) -> set[str]:
        """All guards that the module names."""
        text = (MODULES / f"{self.name}.tla").read_text()
        [listed] = re.findall(r"^AllGuards == \{(.*?)\}", text, re.DOTALL | re.MULTILINE)
        return set(re.findall(r'"([^"]+)"', listed))


SPECIFICATIONS: Final = [*map(Specification, ("Counters", "Backfill", "Verify", "Pages", "Thresholds", "Registry"))]
