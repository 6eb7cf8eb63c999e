"""World of a page's blocks: tables in memory, on which writes are counted, and a stack for their constructs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from aws_cdk import Stack, aws_lambda
from moto import mock_aws

import dynamodb_counters
from dynamodb_counters import ActiveMembers, Aggregate, Counters, Distinct, Extremes, Percentiles, Window
from dynamodb_counters._declarations import flatten
from simulation.counters_in_memory import CountersInMemory, Faults
from tests.site.blocks import Block
from tests.unit.infra.support import new_stack, synthesized

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""The time on all pages."""

_COUNTED = (ActiveMembers, Aggregate, Distinct, Extremes, Percentiles, Window)
_DECLARATIONS = {*(kind.__name__ for kind in _COUNTED), "Counter", "Event", "Items", "TableKeys"}


class World:
    """The names that a page's blocks share, and what stands for a deployment."""

    def __init__(self, blocks: list[Block], folder: Path) -> None:
        self._folder = folder
        self._stack: Stack | None = None
        self.names: dict[str, Any] = {"__name__": "page", "table_name": "counters"}
        self._declared = declarations(blocks)

    @cached_property
    def _counters(self) -> CountersInMemory:
        return CountersInMemory(flatten(self._declared), NOW, 0, Faults())

    def client(self) -> Any:
        """Return a client of the page's tables."""
        return self._counters.client

    def before(self, block: Block) -> None:
        """Offer a stack: a new one to a block that imports constructs, as it stands for an app of its own."""
        if block.file:
            self.names["__file__"] = str(self._folder / block.file)
            (self._folder / block.file).write_text(block.code, encoding="utf-8")
        elif ("(self" in block.code or "    self,\n" in block.code) and (
            "self" not in self.names or "from cdk_dynamodb_counters" in block.code
        ):
            self.synthesize()
            self._stack = stack = new_stack()
            code, runtime = aws_lambda.Code.from_inline("pass"), aws_lambda.Runtime.PYTHON_3_14
            function = aws_lambda.Function(stack, "Function", code=code, handler="index.handler", runtime=runtime)
            self.names |= {"self": stack, "function": function}

    def synthesize(self) -> None:
        """Synthesize the stack of the blocks so far."""
        if self._stack is not None:
            synthesized(self._stack)
            self._stack = None

    def _boto3_client(self, service: str, **more: Any) -> Any:
        return self.client() if service == "dynamodb" else boto3.Session().client(service, **more)  # type: ignore[call-overload]

    @contextmanager
    def running(self) -> Iterator[None]:
        defaults = {**(Counters.__init__.__kwdefaults__ or {}), "clock": NOW.timestamp}
        tables = {"TABLE_NAME": "counters", "COUNTERS_TABLE": "counters", "ORDERS_TABLE": "source"}
        with (
            mock_aws(),
            patch("dynamodb_counters._counters.make_client", self.client),
            patch("boto3.client", self._boto3_client),
            patch.object(Counters.__init__, "__kwdefaults__", defaults),
            patch.dict("os.environ", tables),
        ):
            yield
            self.synthesize()


def declarations(blocks: list[Block]) -> list[Any]:
    """Return declarations of a page over events, found without running the rest of it."""
    names: dict[str, Any] = vars(dynamodb_counters) | {name: getattr(dynamodb_counters, name) for name in _DECLARATIONS}
    names = {name: value for name, value in names.items() if not name.startswith("_")}
    for statement in (statement for block in blocks for statement in block.statements()):
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        value = getattr(statement, "value", None)
        declares = isinstance(value, ast.Call) and getattr(value.func, "id", "") in _DECLARATIONS
        if is_import or declares or isinstance(value, ast.Constant | ast.Dict | ast.Tuple | ast.ListComp):
            try:
                exec(compile(ast.Module([statement], []), "page", "exec"), names)
            except (ImportError, NameError):
                continue  # a page's own file, or what its prelude gives
    values = (item for value in names.values() for item in (value if isinstance(value, list) else [value]))
    return [*{id(value): value for value in values if isinstance(value, _COUNTED)}.values()]
