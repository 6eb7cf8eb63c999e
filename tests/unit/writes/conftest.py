"""A table in memory, whose stream nothing counts, and a process that writes to it."""

from __future__ import annotations

import pytest

from dynamodb_counters import Counters
from simulation.world import World


@pytest.fixture
def site() -> World:
    return World(founds=False)


@pytest.fixture
def counters(site: World) -> Counters:
    return site.counters
