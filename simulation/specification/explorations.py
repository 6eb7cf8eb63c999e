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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from simulation.engines import maven

MODULES: Final = Path(__file__).parents[2] / "docs" / "spec"
PROGRAM: Final = "TLC"
_POM: Final = Path(__file__).parent / "pom.xml"
_STATES: Final = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found", re.MULTILINE)
_VIOLATED: Final = re.compile(r"^Error: (?:Invariant (\w+) is violated|Deadlock reached)", re.MULTILINE)
DEADLOCK: Final = "Deadlock"
_STEP: Final = re.compile(r"^State (\d+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of TLC: `violated` names the invariant, and `trace` is the shortest way to violate it."""

    states: int
    seconds: float
    violated: str | None
    trace: list[str]
    output: str

    @property
    def steps(self) -> int:
        return len(self.trace) - 1


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
) -> Verdict:
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
        command = [
            java,
            f"-Djava.io.tmpdir={folder}",
            "-Xmx2g",
            "-Xss16m",
            "-XX:+UseSerialGC",
            "-cp",
            f"{jars}/*",
            "tlc2.TLC",
            "-nowarning",
        ]
        command += ["-workers", "1", "-metadir", f"{folder}/states", module]
        command[1:1] = ["-XX:TieredStopAtLevel=1"] if compiled_in_haste else []
        begun = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as expired:
            raise RuntimeError(f"TLC did not end within {seconds:.0f} s: {module}") from expired
        took = time.monotonic() - begun
    found, violated = _STATES.findall(done.stdout), _VIOLATED.search(done.stdout)
    if not found or (violated is None and "No error has been found" not in done.stdout):
        raise RuntimeError(f"TLC could not check {module}:\n{done.stdout}{done.stderr[-1000:]}")
    trace = _STEP.split(done.stdout)[2::2] if violated else []
    states = int(found[-1][1].replace(",", ""))
    return Verdict(
        states, took, (violated[1] or DEADLOCK) if violated else None, [step.strip() for step in trace], done.stdout
    )


@dataclass(frozen=True, slots=True)
class Specification:
    """A module of docs/spec, what must hold in it, and the constants of most explorations."""

    name: str
    invariants: tuple[str, ...]
    defaults: Mapping[str, str]
    constraint: str = ""

    @property
    def module(self) -> str:
        """The module for TLC, which extends the one with the actions."""
        return f"{self.name}MC"

    @property
    def guards(self) -> set[str]:
        """All guards that the module names."""
        text = (MODULES / f"{self.name}.tla").read_text()
        [listed] = re.findall(r"^AllGuards == \{(.*?)\}", text, re.DOTALL | re.MULTILINE)
        return set(re.findall(r'"([^"]+)"', listed))


@dataclass(frozen=True, slots=True)
class Configuration:
    """Constants of one exploration; those with a known number of `states` take part in every run of the tests."""

    specification: Specification
    name: str
    about: str
    constants: Mapping[str, str] = field(default_factory=dict)
    states: int | None = None

    def text(self, **changed: str) -> str:
        of = self.specification
        constants = {**of.defaults, **self.constants, **changed}
        lines = ["INIT Init", "NEXT Next", "VIEW View", "CHECK_DEADLOCK FALSE"]
        lines += [f"CONSTRAINT {of.constraint}"] if of.constraint else []
        lines += [f"INVARIANTS {' '.join(of.invariants)}", "CONSTANTS"]
        return "\n".join([*lines, *(f"  {name} {value}" for name, value in constants.items())]) + "\n"


@dataclass(frozen=True, slots=True)
class Removal:
    """A guard that is removed from a configuration, or constants of it that are made wrong."""

    about: str
    configuration: Configuration
    guard: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False

    @property
    def text(self) -> str:
        changed = dict(self.constants)
        if self.guard is not None:
            changed["Without"] = f'= {{"{self.guard}"}}'
        return self.configuration.text(**changed)


@dataclass(frozen=True, slots=True)
class Explorations:
    specification: Specification
    configurations: tuple[Configuration, ...]
    removals: tuple[Removal, ...]

    @classmethod
    def read(cls, name: str) -> Self:
        data: dict[str, Any] = tomllib.loads((MODULES / f"{name}.toml").read_text())
        specification = Specification(name, tuple(data["invariants"]), data["constants"], data.get("constraint", ""))
        configurations = {
            key: Configuration(specification, key, **values) for key, values in data["configurations"].items()
        }
        removals = [
            Removal(about, configurations[values.pop("from")], **values) for about, values in data["removals"].items()
        ]
        return cls(specification, tuple(configurations.values()), tuple(removals))


EXPLORATIONS: Final = tuple(
    map(Explorations.read, ("Counters", "Backfill", "Verify", "Pages", "Thresholds", "Registry"))
)
