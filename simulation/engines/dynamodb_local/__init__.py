"""DynamoDB Local, AWS's own engine, as a process on the loopback interface."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from simulation.engines import Engine, connect, maven

PROGRAM = "DynamoDB Local"
POM = Path(__file__).parent / "pom.xml"
LAUNCHER = Path(__file__).parent / "Launcher.java"
# Only a failure takes this long.
START_SECONDS = 180.0
COMMAND_SECONDS = 120.0
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class DynamoDBLocal(Engine):
    """A running DynamoDB Local, with the commands only it takes."""

    process: subprocess.Popen[bytes] = field(kw_only=True)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, kw_only=True)

    def rollover(self) -> None:
        """Close every open shard of every stream and open one child of each."""
        self._command("rollover")

    def age(self, hours: int) -> None:
        """Make tables, shards and stream records that many hours older."""
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
    """Start an empty DynamoDB Local, in memory, and stop it on exit."""
    java, jars = maven.find_java(PROGRAM), maven.installed_jars(PROGRAM, POM)
    # Tests end before the second compiler and parallel collection pay off: a third less processor time.
    options = ["-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]
    command = [java, *options, f"-Dsqlite4java.library.path={jars}", "-cp", f"{jars}/*", str(LAUNCHER)]
    # In a session of its own: Ctrl-C in the terminal would stop the engine before the tests that still use it.
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
            engine = connect("dynamodb_local", f"http://127.0.0.1:{port}")
            yield DynamoDBLocal(**vars(engine), process=process)
        finally:
            # The end of its input ends the launcher; the kernel closes the pipe too when this process dies.
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _read_line(pipe: IO[bytes], seconds: float) -> str:
    ready, _, _ = select.select([pipe], [], [], seconds)
    return pipe.readline().decode().strip() if ready else ""
