"""An entry changes only from the state in which it was seen: another process may have been first."""

from __future__ import annotations

from dynamodb_counters._quarantine.redrive_entries import list_quarantined, redrive, stored_key
from dynamodb_counters._table import Table
from simulation.metered_table import MeteredTable
from tests.unit.quarantine.test_waiting import memory, quarantine, table

__all__ = ["memory", "table"]


def test_an_entry_is_redriven_once_and_stays(table: Table, memory: MeteredTable) -> None:
    quarantine(table, 1)
    [entry] = list_quarantined(table, redriven=False)
    assert redrive(table, entry)
    before = [dict(item) for item in memory.items()]
    assert not redrive(table, entry)
    assert list(memory.items()) == before


def test_an_entry_that_is_gone_stays_gone(table: Table, memory: MeteredTable) -> None:
    quarantine(table, 1)
    [entry] = list_quarantined(table, redriven=False)
    memory.delete_item(TableName=table.name, Key=stored_key(entry))
    assert not redrive(table, entry)
    assert list(memory.items()) == []
