"""Cost of calls under a quota, in write units, by the number of processes and the portion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._declarations import Quota
from dynamodb_counters._table import Table
from dynamodb_counters._writes.leases import Leases
from simulation.clock import VirtualClock
from simulation.metered_table import MeteredTable

CALLS: Final = 20_000
_SECONDS: Final = 600.0
_PORTIONS: Final = (1, 10, 100, 1000)
_PROCESSES: Final = (1, 8, 64)


def units_per_call(processes: int, portion: int, limit: int, calls: int = CALLS) -> tuple[float, int]:
    """Write units per call asked for, and how many were granted, of calls that processes make in turn in 10 minutes."""
    clock = VirtualClock()
    client: Any = MeteredTable(clock)
    table = Table(client.name, client, clock=clock, sleep=clock.advance, jitter=lambda: 0.5)
    quota = Quota("calls", limit=limit, per=timedelta(days=1), portion=portion, clock_error=timedelta(0))
    leases = [Leases(table, quota, {}) for _ in range(processes)]
    granted = 0
    for call in range(calls):
        clock.advance(_SECONDS / calls)
        granted += leases[call % processes].take()
    for each in leases:
        each.release()
    return client.usage.writes / calls, granted


def cost_table() -> str:
    """A Markdown table: units per call while the quota lasts, and when as many calls are asked for as it has."""
    rows = [
        "| portion | " + " | ".join(f"{number} processes" for number in _PROCESSES) + " | 64, up to the limit |",
        "|---|" + "---|" * (len(_PROCESSES) + 1),
    ]
    for portion in _PORTIONS:
        ample = [f"{units_per_call(number, portion, 10 * CALLS)[0]:.4f}" for number in _PROCESSES]
        units, granted = units_per_call(_PROCESSES[-1], portion, CALLS)
        rows.append(f"| {portion} | {' | '.join(ample)} | {units:.4f} ({granted:,} of {CALLS:,} granted) |")
    return "\n".join(rows)
