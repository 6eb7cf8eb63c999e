"""Facts of a table, as they are shown."""

from __future__ import annotations

from dynamodb_counters.cli.commands.describe import _shard


def test_a_shard_keeps_a_number_of_zeros() -> None:
    names = ["shardId-00000000000000000000-00000000", "shardId-00000001795157600000-3f6a1c9e", "shardId-000000000000"]
    shown = [_shard({"shard": name, "open": True, "checkpoint": None}) for name in names]
    assert [name for name, *_ in shown] == ["0-00000000", "1795157600000-3f6a1c9e", "0"]
