"""World of a page's blocks: a table in memory that counts before each read, and a stack for their constructs."""

from __future__ import annotations

import ast
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from aws_cdk import Stack, aws_lambda
from moto import mock_aws

import dynamodb_counters
from dynamodb_counters import Counters
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Aggregate, Distinct, Items, TableKeys, Window, flatten
from dynamodb_counters._table import Table
from simulation.memory_table import MemoryTable
from tests.site.blocks import Block
from tests.unit.infra.support import new_stack, synthesized

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
"""The time on all pages."""

SOURCE = "Shop-Orders-1NS4MPL3"
"""The existing table's name: CloudFormation chooses it, so a page must not guess it."""

_READS = ("get_item", "batch_get_item", "query", "scan", "get_paginator")
_DECLARATIONS = {"Aggregate", "Counter", "Distinct", "Event", "Items", "Window", "TableKeys"}


class CountedTable:
    """A client of which the table's stream is counted before each read."""

    name = "counters"

    def __init__(self, declared: list[Any]) -> None:
        self._memory = MemoryTable(self.clock, name=self.name, indexes={"ranking": ("_board", "_score")})
        beside = _source_table(declared)
        self._streams = [self._memory.stream]
        if beside is not None:
            keys = filter(None, (beside.partition_key, beside.sort_key))
            self._streams.append(self._memory.create(SOURCE, *keys, ttl=beside.ttl or "").stream)
        client: Any = self._memory
        table = Table(self.name, client, clock=self.clock, sleep=lambda _: None)
        how: Any = {"declarations": flatten(declared), "quarantine_retention_seconds": 90 * 86_400.0}
        if beside:
            # In place of the page's backfill: registered without a source table, the names are complete.
            Aggregator(table, **how).handle({})
            how["source_table"] = self._streams[1].arn.partition("/stream/")[0]
        self._aggregator = Aggregator(table, **how)
        self._counted: Counter[str] = Counter()
        self._counting = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name in _READS:
            self.count()
        return getattr(self._memory, name)

    def clock(self) -> float:
        return NOW

    def count(self) -> None:
        """Count what is new until nothing is: counts have changes, too. Readers' threads wait."""
        with self._counting:
            self._count()

    def _count(self) -> None:
        is_new = True
        while is_new:
            is_new = False
            for stream, shard in [(one, shard.id) for one in self._streams for shard in one.shards()]:
                book = f"{stream.arn} {shard}"
                records = stream.read(shard, None, 1_000_000).records[self._counted[book] :]
                if records:
                    is_new = True
                    self._aggregator.handle({"shardId": shard, "eventSourceARN": stream.arn, "Records": records})
                    self._counted[book] += len(records)


def _source_table(declared: list[Any]) -> TableKeys | None:
    """The keys of the existing table that the declarations count, if they do."""
    found = [one.source.keys for one in flatten(declared) if isinstance(one.source, Items)]
    return found[0] if found else None


class World:
    """The names that a page's blocks share, and what stands for a deployment."""

    def __init__(self, blocks: list[Block], folder: Path) -> None:
        self._folder = folder
        self._stack: Stack | None = None
        self.names: dict[str, Any] = {"__name__": "page", "table_name": CountedTable.name}
        self._declared = declarations(blocks)
        self._table: CountedTable | None = None

    def client(self) -> CountedTable:
        """The page's one table."""
        self._table = self._table or CountedTable(self._declared)
        return self._table

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
            self.names["self"] = stack
            self.names["function"] = aws_lambda.Function(
                stack,
                "Function",
                code=aws_lambda.Code.from_inline("pass"),
                handler="index.handler",
                runtime=aws_lambda.Runtime.PYTHON_3_14,
            )

    def synthesize(self) -> None:
        """Synthesize the stack of the blocks so far."""
        if self._stack is not None:
            synthesized(self._stack)
            self._stack = None

    def _boto3_client(self, service: str, **more: Any) -> Any:
        return self.client() if service == "dynamodb" else boto3.Session().client(service, **more)  # type: ignore[call-overload]

    @contextmanager
    def running(self) -> Iterator[None]:
        defaults = {**(Counters.__init__.__kwdefaults__ or {}), "clock": lambda: NOW}
        tables = dict.fromkeys(("TABLE_NAME", "COUNTERS_TABLE"), CountedTable.name) | {"ORDERS_TABLE": SOURCE}
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
    """Declarations of a page over events, found without running the rest of it."""
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
    values = (each for value in names.values() for each in (value if isinstance(value, list) else [value]))
    return [*{id(value): value for value in values if isinstance(value, Aggregate | Distinct | Window)}.values()]
