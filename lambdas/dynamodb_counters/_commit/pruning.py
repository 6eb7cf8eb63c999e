"""Pruning: watermarks that can refuse nothing any more go before they cost their item a write unit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import PK, SK, VERSION, WATERMARK_PREFIX
from dynamodb_counters._items.watermarks import sequence_of
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import MINUTE

PRUNED_AT: Final = 8
"""Fewer watermarks are not worth a write."""

_MOST_PRUNED: Final = 100  # An expression is 4 KB at most.
_SPARE_BYTES: Final = 64
_LOOK_EVERY: Final = 10 * MINUTE
_MOST_REMEMBERED: Final = 20_000


class Pruner:
    """Prunes the items of one table, each at most every ten minutes per process."""

    def __init__(self, table: Table, checkpoints: Checkpoints) -> None:
        self._table = table
        self._checkpoints = checkpoints
        self._looked_at: dict[tuple[str, str], float] = {}

    def wants(self, key: Mapping[str, str]) -> bool:
        """Whether an update should return its item, to be pruned."""
        now, identity = self._table.clock(), (key[PK], key[SK])
        if self._looked_at.get(identity, 0.0) + _LOOK_EVERY > now:
            return False
        if len(self._looked_at) >= _MOST_REMEMBERED:
            self._looked_at.clear()
        self._looked_at[identity] = now
        return True

    def prune(self, key: Mapping[str, Any], item: Mapping[str, Any], own: str) -> float:
        """Remove what guards nothing from the item just written, but not the watermark just set; return the units."""
        watermarks = {name: value for name, value in item.items() if name.startswith(WATERMARK_PREFIX) and name != own}
        if not _saves_a_unit(item, watermarks):
            return 0.0
        try:
            settled = self._settled(watermarks)
            return self._remove(key, settled) if _saves_a_unit(item, settled) else 0.0
        except (ClientError, BotoCoreError):
            # Housekeeping: a later update tries again.
            return write_units(item_bytes(item))

    def _settled(self, watermarks: Mapping[str, Any]) -> dict[str, Any]:
        readable: dict[str, str] = {}
        for name, value in watermarks.items():
            with suppress(LookupError, TypeError, ValueError):  # It may be spoiled.
                readable[name.removeprefix(WATERMARK_PREFIX)] = sequence_of(value)
        settled = {WATERMARK_PREFIX + digest for digest in self._checkpoints.settled(readable)}
        return {name: value for name, value in watermarks.items() if name in settled}

    def _remove(self, key: Mapping[str, Any], watermarks: Mapping[str, Any]) -> float:
        watermarks = dict(list(watermarks.items())[:_MOST_PRUNED])
        names = {f"#w{index}": name for index, name in enumerate(watermarks)}
        answer = self._table.client.update_item(
            TableName=self._table.name,
            Key=dict(key),
            UpdateExpression="REMOVE " + ", ".join(names),
            # Only what was seen is removed: a shard that has moved on keeps its watermark.
            ConditionExpression=" AND ".join(f"#w{index} = :w{index}" for index in range(len(watermarks))),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={f":w{index}": value for index, value in enumerate(watermarks.values())},
            ReturnConsumedCapacity="TOTAL",
        )
        return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)


def _saves_a_unit(item: Mapping[str, Any], watermarks: Mapping[str, Any]) -> bool:
    """Whether an item that is at its next write unit, or nearly, would be a unit smaller without the watermarks."""
    # A page that is too large splits, and never grows together again.
    if len(watermarks) < (1 if VERSION in item else PRUNED_AT):
        return False
    size = item_bytes(item)
    return write_units(size + _SPARE_BYTES) > write_units(size - item_bytes(watermarks))
