"""One client fills a packed bucket: ``python -m simulation.hostile.flood --events 200000`` shows what another one pays.

A process that knows nothing accepts an event of another client in that bucket, then lists five. The output has the
chunks that it read, and its CPU time; once where all clients share logs, once where each has logs of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._items.table_schema import CHUNK
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.memory_table import MemoryTable

_PACKED: Final = Packed("at", bucket=timedelta(days=1))
_SHARED: Final = Event("view", pk="CUSTOMER#{customer}", sk="T#{at}#ID#{id}", packed=_PACKED)
_APART: Final = replace(_SHARED, packed=replace(_PACKED, tenant="customer"))
_CALL: Final = 20_000
_OWN: Final = 5


def measure(event: Event, events: int) -> dict[str, float]:
    """Fill a bucket with events of one client, and have a process that has read nothing serve another one."""
    clock = VirtualClock()
    table: Any = MemoryTable(clock, 1, 1)
    at = int(clock.now)
    flooder = Counters(table.name, client=table, clock=clock)
    for first in range(0, events, _CALL):
        numbers = range(first, min(events, first + _CALL))
        flooder.accept_many(event, [{"customer": "flooder", "at": at, "id": number} for number in numbers])
    read = [0]

    def counted(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        read[0] += sum(CHUNK in item for item in answer["Items"]) if name == "query" else 0
        return answer

    client: Any = HookedClient(table, counted)
    cold = Counters(table.name, client=client, clock=clock)
    own = [{"customer": "victim", "at": at, "id": number} for number in range(_OWN)]
    begun = time.process_time()
    assert cold.accept(event, own[0]).status == "accepted"
    accepted, looked_at = time.process_time(), read[0]
    cold.accept_many(event, own)
    begun_listing = time.process_time()
    assert len(list(cold.events(event, {"customer": "victim"}))) == _OWN
    chunks = sum(CHUNK in item for item in table.items())
    seconds = {"accept": accepted - begun, "list": time.process_time() - begun_listing}
    return {"events": events, "chunks": chunks, "read": looked_at, **seconds}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulation.hostile.flood", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[50_000, 200_000])
    for events in parser.parse_args().events:
        for name, event in (("shared logs", _SHARED), ("a log each", _APART)):
            found = measure(event, events)
            print(
                f"{name}: {found['events']:,} events of a flooder in {found['chunks']:,} chunks; to accept another "
                f"client's event: {found['read']:,} chunks, {found['accept']:.2f} s CPU; to list its {_OWN}: "
                f"{found['list']:.2f} s CPU",
                flush=True,
            )


if __name__ == "__main__":
    main()
