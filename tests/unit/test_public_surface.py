"""The public surface is a contract: names, signatures and members, held in a file that a diff shows."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from constructs import Construct

from dynamodb_counters import Counters

_RECORDED = Path(__file__).parents[1] / "snapshots" / "public_surface.txt"
_PACKAGES = (
    *("dynamodb_counters", "dynamodb_counters.exactly_once", "dynamodb_counters.testing"),
    *("cdk_dynamodb_counters", "cdk_dynamodb_counters.testing"),
)
_HANDLERS = ("aggregator", "api", "ingest_http", "ingest_queue", "notifier")


def _surface() -> Iterator[str]:
    for package in _PACKAGES:
        for name in sorted(importlib.import_module(package).__all__):
            yield from _described(f"{package}.{name}", getattr(importlib.import_module(package), name))
    for module in _HANDLERS:
        yield f"counters_lambda.handlers.{module}.handler"


def _described(name: str, thing: Any) -> Iterator[str]:
    yield f"{name}{_signature(thing)}"
    if not inspect.isclass(thing):
        return
    for member, value in sorted(_members(thing).items()):
        if isinstance(value, property):
            yield f"{name}.{member}: {inspect.get_annotations(value.fget)['return']}"  # type: ignore[arg-type]
        elif isinstance(value, staticmethod | classmethod):
            yield f"{name}.{member}{_signature(value.__func__)}"
        elif callable(value):
            yield f"{name}.{member}{_signature(value)}"
        else:
            yield f"{name}.{member}"
    if issubclass(thing, Construct | Counters):
        attributes = (item for base in _own_classes(thing) for item in inspect.get_annotations(base).items())
        yield from sorted(f"{name}.{field}: {kind}" for field, kind in attributes if not field.startswith("_"))
    if dataclasses.is_dataclass(thing):
        fields = [field for field in dataclasses.fields(thing) if not field.name.startswith("_")]
        yield from sorted(f"{name}.{field.name}: {field.type}" for field in fields)


def _members(kind: type) -> dict[str, Any]:
    """Public members that our own classes define; fields of dataclasses are listed by themselves."""
    members = {
        name: value for base in _own_classes(kind) for name, value in vars(base).items() if not name.startswith("_")
    }
    fields = getattr(kind, "__dataclass_fields__", {})  # with those that only the constructor takes
    return {name: value for name, value in members.items() if name not in fields}


def _own_classes(kind: type) -> list[type]:
    return [base for base in reversed(kind.__mro__) if base.__module__.partition(".")[0] in _PACKAGES]


def _signature(thing: Any) -> str:
    if inspect.isclass(thing) and type(thing).__call__ is not type.__call__:
        # jsii makes constructs, from any arguments; theirs are those of the constructor.
        whole = inspect.signature(thing.__init__)
        return str(whole.replace(parameters=list(whole.parameters.values())[1:]))
    try:
        return str(inspect.signature(thing))
    except (TypeError, ValueError):  # A union is no callable.
        return ""


@pytest.mark.snapshot
def test_the_public_surface_changes_only_on_purpose() -> None:
    text = "\n".join(_surface()) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _RECORDED.write_text(text)
    assert text == _RECORDED.read_text(), "if that was meant: make snapshot, and a line in CHANGELOG.md"


def test_no_signature_hides_its_arguments() -> None:
    assert [line for line in _surface() if "(*args: Any, **kwargs" in line] == []
