"""An erasure leaves entries that change meanwhile as the other process left them."""

from __future__ import annotations

from typing import Any

from dynamodb_counters import Event
from dynamodb_counters._erase.eraser import Eraser, Wanted, reduced
from dynamodb_counters._fold.fold import Unfoldable
from dynamodb_counters._quarantine.quarantine import Quarantine, list_quarantined, pack, redrive
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient, once
from simulation.memory_table import MemoryTable
from tests.unit.fold.streams import image, record

VALUES = {"url": "/" + "u" * 3000, "time": "1", "client": "ann"}
VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}")


def test_a_hashed_key_is_known_by_all_of_its_values() -> None:
    keys = {"pk": {"S": VIEW._pk_template.render(VALUES)}, "sk": {"S": VIEW._sk_template.render(VALUES)}}
    huge: Any = {"eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
    assert reduced(huge, Wanted(VIEW, VALUES)) == (1, None)


def test_an_entry_within_an_entry_holds_nothing_of_what_is_erased() -> None:
    sold, other = (image("view", client=client) for client in ("ann", "bob"))
    inner = {**image("quarantine"), "record": pack(record(1, sold, other))}
    found, left = reduced(record(2, inner), Wanted(VIEW, {"client": "ann"}))
    assert (found, "ann" in str(left), "bob" in str(left)) == (1, False, True)


def test_an_entry_that_goes_meanwhile_stays_gone() -> None:
    clock = VirtualClock()
    memory: Any = MemoryTable(clock)
    table = Table(memory.name, memory, clock=clock)
    kept = record(1, {"_type": {"S": "view"}, "url": {"S": "/"}, "time": {"N": "1"}, "client": {"S": "ann"}})
    Quarantine(table, 86_400).keep("shard-1", [Unfoldable("1", "NewImage", kept, "malformed")])
    [entry] = list_quarantined(table, redriven=False)
    assert redrive(table, entry)

    def expire() -> None:
        memory.delete_item(TableName=memory.name, Key={"pk": {"S": entry.key[0]}, "sk": {"S": entry.key[1]}})

    late: Any = HookedClient(memory, once(["update_item"], expire))
    eraser = Eraser(Table(memory.name, late, clock=clock), VIEW, {"client": "ann"})
    assert eraser._sweep_entries(writes=True) == (1, 0)
    assert list(memory.items()) == []
