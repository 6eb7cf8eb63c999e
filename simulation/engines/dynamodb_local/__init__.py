"""DynamoDB Local, AWS's own engine, as a process on the loopback interface."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from simulation.engines import Engine, EngineUnavailableError, connect
from simulation.engines.dynamodb_local.install import find_java, installed_jars

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DynamoDBLocal", "EngineUnavailableError", "start"]

NAME = "dynamodb_local"
LAUNCHER = Path(__file__).parent / "Launcher.java"
START_SECONDS = 60.0
COMMAND_SECONDS = 30.0
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class DynamoDBLocal(Engine):
    """A running DynamoDB Local, and what only it can be told to do."""

    process: subprocess.Popen[bytes] = field(kw_only=True)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, kw_only=True)

    def rollover(self) -> None:
        """Close every open shard of every stream and open a child of each."""
        self._command("rollover")

    def age(self, hours: int) -> None:
        """Make tables, shards and stream records that much older.

        Parameters
        ----------
        hours : int
            How much older.
        """
        self._command(f"age {hours}")

    def _command(self, command: str) -> None:
        with self._one_at_a_time:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(f"{command}\n".encode())
            answer = _read_line(self.process.stdout, COMMAND_SECONDS)
        if answer != "ok":
            raise RuntimeError(f"DynamoDB Local answered {answer!r} to {command!r}")


@contextmanager
def start() -> Iterator[DynamoDBLocal]:
    """Start an empty DynamoDB Local, in memory, and stop it on exit.

    Yields
    ------
    DynamoDBLocal
        The running engine.

    Raises
    ------
    EngineUnavailableError
        If Java is missing or unsuitable, or Maven cannot provide the engine.
    """
    java, jars = find_java(), installed_jars()
    command = [
        java,
        "-Xmx1g",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dsqlite4java.library.path={jars}",
        "-cp",
        f"{jars}/*",
        str(LAUNCHER),
    ]
    # Ctrl-C in the terminal would reach the engine before the tests that still use it.
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            env={**os.environ, "DDB_LOCAL_TELEMETRY": "0"},
            start_new_session=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = _read_line(process.stdout, START_SECONDS)
            if not port.isdigit():
                process.kill()
                log.seek(0)
                raise RuntimeError(f"DynamoDB Local did not start:\n{port}\n{log.read().decode(errors='replace')}")
            clients = connect(NAME, f"http://127.0.0.1:{port}")
            yield DynamoDBLocal(
                name=NAME,
                client=clients.client,
                streams=clients.streams,
                endpoint_url=clients.endpoint_url,
                process=process,
            )
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    # The end of its input tells the launcher to leave; the kernel sends the same when this process dies.
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _read_line(pipe: IO[bytes], seconds: float) -> str:
    ready, _, _ = select.select([pipe], [], [], seconds)
    return pipe.readline().decode().strip() if ready else ""
