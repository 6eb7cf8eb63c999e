"""Example stacks, one folder each; their declarations are separate, for those who write and read the tables."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aws_cdk import Stack


def stacks() -> dict[str, type[Stack]]:
    """Find every folder's stack: folder `blog` holds the class `BlogStack`, deployed as `CountersBlog`."""
    names = sorted(module.name for module in iter_modules(__path__) if module.ispkg)
    return {
        f"Counters{name.title()}": getattr(import_module(f"{__name__}.{name}.stack"), f"{name.title()}Stack")
        for name in names
    }
