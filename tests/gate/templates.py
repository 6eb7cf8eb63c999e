"""Every template that the gate looks at: the examples, and the constructs with their defaults and with everything."""

from __future__ import annotations

from functools import cache

from examples.stacks import stacks
from tests.gate.template import Template
from tests.unit.infra.support import new_app, new_stack, synthesized
from tests.unit.infra.test_snapshots import BUILDS


@cache
def templates() -> dict[str, Template]:
    """All templates by name."""
    found = {name: stack(new_app(), name) for name, stack in stacks().items()}
    for name, build in BUILDS.items():
        found[name] = new_stack(region="us-east-1")
        build(found[name])
    return {name: Template(name, dict(synthesized(stack).to_json())) for name, stack in found.items()}


def names() -> list[str]:
    """The names of all templates, known before any is built."""
    return [*stacks(), *BUILDS]
