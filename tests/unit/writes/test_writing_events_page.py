"""Every block of docs/writing-events.md runs, one after the other, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from simulation.clock import VirtualClock

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "writing-events.md"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    table: Any = MemoryTable(VirtualClock(), 1, 1)
    monkeypatch.setattr("dynamodb_counters._counters.make_client", lambda: table)
    blocks = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    known: dict[str, Any] = {"table_name": table.name}

    for block in blocks:
        exec(block, known)

    printed = re.findall(r"print\([a-z.]+\)  # (.*)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == printed
    assert len(printed) == 4
