"""The commit as it was before there were checkpoints, frozen: what an older deployment's invocations still do."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._stream.batch import Report
from dynamodb_counters._table import Table


class OldAggregator:
    """Keeps the aggregates current by watermarks alone; what it cannot fold, fails."""

    def __init__(self, table: Table, declarations: tuple[Declaration, ...], deployment: int) -> None:
        self._table = table
        self._plan = Plan(declarations)
        self._deployment = f"old-{deployment}"
        self._shards: set[str] = set()

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float]) -> Report:
        records, shard = event["Records"], event["shardId"]
        if records and shard not in self._shards:
            self._table.client.put_item(
                TableName=self._table.name,
                Item={
                    "pk": {"S": f"QUARANTINE#{zlib.crc32(shard.encode()) % 8}"},
                    "sk": {"S": f"FENCE#{shard}"},
                    "_type": {"S": "quarantine"},
                    "deployment": {"S": self._deployment},
                },
            )
            self._shards.add(shard)
        changes = changes_of(records)
        deltas = fold(self._plan, changes).deltas
        while deltas:
            applied_through: dict[GroupRef, str] = {}
            for delta in deltas:
                if time_left() < 12:
                    raise TimeoutError
                refused = self._write(shard, delta)
                if refused is not None and refused < delta.last:
                    applied_through[delta.ref] = refused
            deltas = fold(self._plan, changes, applied_through).deltas if applied_through else []
        return Report(len(records))

    def _write(self, shard: str, delta: Delta) -> str | None:
        """Add a delta; if its item has applied some of it, return how far the item is."""
        name = f"_w:{shard.removeprefix('shardId-').lstrip('0')}"
        update = Update(delta.layout, delta.group, delta.measures, shard)
        update.set(name, {"S": f"{delta.last}@{int(self._table.clock()) // 3600}"})
        update.require_unset_or_below(name, {"S": delta.first})
        request: Any = update.request(self._table.name)
        try:
            self._table.client.update_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except self._table.client.exceptions.ConditionalCheckFailedException as error:
            refusal: Any = error.response
            return str(refusal["Item"][name]["S"][:40])
        return None
