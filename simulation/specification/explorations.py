"""Explorations for TLC: a module with constants, and the same with one of its guards removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simulation.specification.tlc import MODULES


@dataclass(frozen=True, slots=True)
class Specification:
    """A module of docs/spec for TLC, what must hold in it, and the constants of most explorations."""

    module: str
    invariants: tuple[str, ...]
    defaults: Mapping[str, str]
    constraint: str = ""

    @property
    def guards(self) -> set[str]:
        """All guards that the module above it names."""
        text = (MODULES / f"{self.module.removesuffix('MC')}.tla").read_text()
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
    configuration: str
    guard: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False

    def of(self, configurations: Iterable[Configuration]) -> Configuration:
        [found] = (each for each in configurations if each.name == self.configuration)
        return found

    def text(self, configurations: Iterable[Configuration]) -> str:
        changed = dict(self.constants)
        if self.guard is not None:
            changed["Without"] = f'= {{"{self.guard}"}}'
        return self.of(configurations).text(**changed)
