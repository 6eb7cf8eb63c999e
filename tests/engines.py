"""The engines tests run on besides DynamoDB Local."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

from moto import mock_aws

from simulation.engines import Engine, connect

# Longer than any test session: only the emulator's own safety net, since it ends with the session.
MAX_SECONDS = 7200


@contextmanager
def start_moto() -> Iterator[Engine]:
    """Mock AWS inside this process, empty, until the block ends."""
    with mock_aws():
        engine, lock = connect("moto"), Lock()
        client: Any = engine.client
        call = client._make_api_call

        def one_at_a_time(*arguments: Any) -> Any:
            # moto checks a condition and writes in two steps, between which another thread may write.
            with lock:
                return call(*arguments)

        client._make_api_call = one_at_a_time
        yield engine


def has_ministack() -> bool:
    """Return whether the emulator is installed."""
    return find_spec("ministack") is not None


@contextmanager
def start_ministack() -> Iterator[Engine]:
    """Start the emulator the demo deploys to, empty, for its DynamoDB only; stop it on exit."""
    from counters_cli.emulator import Emulator  # noqa: PLC0415 - the other engines must work without it

    # Tests make clients of their own.
    with Emulator.start(max_seconds=MAX_SECONDS, key="testing") as emulator:
        clients = emulator.client("dynamodb"), emulator.client("dynamodbstreams")
        yield Engine("ministack", *clients, emulator.endpoint_url)
