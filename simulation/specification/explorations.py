"""Explorations for TLC: a module with constants, and the same with one of its guards removed.

They stand beside the modules in docs/spec, as TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from simulation.specification.tlc import MODULES


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
