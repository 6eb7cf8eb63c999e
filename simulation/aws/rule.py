"""A rule of AWS that simulators follow."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module

import simulation.aws


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of AWS's documentation, and what in this project follows from it.

    `switch` is the argument of a simulator that turns the rule on and off; without one, the constructs check the rule
    at synth. `guard` is the title of the mutation that takes away the code's guard against the rule; its test fails
    with the rule on. A rule without a guard says in `harmless` why none is needed.
    """

    name: str
    sentence: str
    source: str
    switch: str = ""
    guard: str = ""
    harmless: str = ""


def rules() -> tuple[Rule, ...]:
    """The rules of all modules of this folder, by name."""
    modules = (import_module(f"simulation.aws.{each.name}") for each in pkgutil.iter_modules(simulation.aws.__path__))
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Rule))
    return tuple(sorted(found, key=lambda rule: rule.name))
