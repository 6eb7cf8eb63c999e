"""Facts of a table in an emulator, as they are shown."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from dynamodb_counters.cli.commands.describe import _shards, _table


def _shown(content: RenderableType) -> str:
    Console(file=(file := StringIO()), width=120, color_system=None).print(content)
    return file.getvalue()


def _facts(*expiring: str) -> dict[str, Any]:
    return {
        "name": "t",
        "status": "ACTIVE",
        "items": 0,
        "bytes": 0,
        "billing": "PAY_PER_REQUEST",
        "indexes": [],
        "stream": {"enabled": True, "view": "NEW_AND_OLD_IMAGES"},
        "ttl": {"status": "DISABLED", "attribute": None},
        "expiring": [*expiring],
    }


def test_a_table_without_ttl_names_what_would_expire() -> None:
    assert "disabled: daily, view would expire, but stay (an emulator deletes nothing)" in _shown(
        _table(_facts("daily", "view"))
    )
    assert "disabled: nothing would expire" in _shown(_table(_facts()))


def test_a_shard_keeps_a_number_of_zeros() -> None:
    known = {"moved": None, "lost_before": None}
    names = ["shardId-00000000000000000000-00000000", "shardId-00000001795157600000-3f6a1c9e", "shardId-000000000000"]
    shown = _shown(_shards([{"shard": name, "open": True, "checkpoint": known} for name in names]))
    assert [line.split()[0] for line in shown.splitlines()[2:]] == ["0", "0-00000000", "1795157600000-3f6a1c9e"]
