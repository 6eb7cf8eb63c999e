"""ministack: the emulator the demo deploys to, used for its DynamoDB only."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from simulation.engines import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_available", "start"]

# Longer than any test session: only the emulator's own safety net, since it ends with the session.
MAX_SECONDS = 7200


def is_available() -> bool:
    """Whether this checkout has the demo's emulator."""
    return find_spec("demo") is not None and find_spec("demo.platform.emulator") is not None


@contextmanager
def start() -> Iterator[Engine]:
    """Start an empty emulator and stop it on exit."""
    from demo.platform.emulator import Emulator  # noqa: PLC0415 - the other engines must work without the demo

    with Emulator.start(max_seconds=MAX_SECONDS) as emulator:
        yield Engine(
            name="ministack",
            client=emulator.client("dynamodb"),
            streams=emulator.client("dynamodbstreams"),
            endpoint_url=emulator.endpoint_url,
        )
