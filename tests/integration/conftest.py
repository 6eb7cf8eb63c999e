"""The store that integration tests share, on each engine in turn."""

from __future__ import annotations

import pytest

from simulation.engines import Engine
from tests.integration.stores import Store


@pytest.fixture
def store(engine: Engine, table: str) -> Store:
    return Store(engine, table)
