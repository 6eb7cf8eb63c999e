"""Processes that share a clock and a table in memory."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Counters
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import Hook, HookedClient
from simulation.memory.memory_client import paginator
from simulation.memory_table import MemoryTable


class Site:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table: Any = MemoryTable(self.clock)

    def process(self, hook: Hook | None = None) -> Counters:
        """A process that knows nothing yet, perhaps with a hook that each of its requests goes through."""
        client: Any = HookedClient(self.table, hook) if hook else self.table
        if hook:
            client.get_paginator = lambda operation: paginator(getattr(client, operation))
        return Counters(self.table.name, client=client, clock=self.clock)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def counters(site: Site) -> Counters:
    return site.process()
