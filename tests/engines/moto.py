"""moto: DynamoDB inside this process, quick to start and to discard."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from moto import mock_aws

from simulation.engines import Engine, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["start"]


@contextmanager
def start() -> Iterator[Engine]:
    """Mock AWS, empty, until the block ends."""
    with mock_aws():
        yield connect("moto")
