"""Run a command that cannot outlive the process that started it.

A small process between the two kills the command and everything it started when the caller says so, the caller ends
(even killed), or the time is up. It uses the standard library and POSIX process groups only, so it behaves the same on
Linux and macOS, and the caller needs no signal handlers.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_PULSE_SECONDS = 0.25
_GRACE_SECONDS = 60.0
TIME_IS_UP = 124


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: IO[bytes] | int,
    max_seconds: int,
    directory: Path,
    remove_directory: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a command under a supervisor that ends with its exit status or `TIME_IS_UP`; pass it to `stop`."""
    return subprocess.Popen(
        # -I keeps the caller's directory and PYTHON* settings out of the supervisor.
        [sys.executable, "-I", __file__, str(os.getpid()), str(max_seconds), str(int(remove_directory)), *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=dict(environment),
        # Its own session: Ctrl-C in the caller's terminal must not kill the supervisor before it has cleaned up.
        start_new_session=True,
    )


def stop(supervisor: subprocess.Popen[bytes]) -> int:
    """End a supervised command in whatever state, wait until nothing of it is left, and return the exit status."""
    if supervisor.stdin is not None and not supervisor.stdin.closed:
        # A byte, not only closing the pipe: a forked child of the caller may still hold it open.
        with contextlib.suppress(OSError):
            supervisor.stdin.write(b".")
        with contextlib.suppress(OSError):
            supervisor.stdin.close()
    return supervisor.wait(timeout=_GRACE_SECONDS)


def _supervise(caller: int, max_seconds: float, command: Sequence[str]) -> int:
    deadline = time.monotonic() + max_seconds
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    status = None
    try:
        while status is None and time.monotonic() < deadline and os.getppid() == caller:
            if select.select([sys.stdin], [], [], _PULSE_SECONDS)[0]:
                break
            status = process.poll()
    finally:
        # Killed, not asked to end: nothing here is worth saving, and one signal reaches the whole group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status is None and time.monotonic() >= deadline:
        print(f"stopped: {max_seconds:g} seconds have passed", flush=True)
        return TIME_IS_UP
    return status or 0


def _remove(directory: Path) -> None:
    # Repeat while it exists: another command being killed for the same reason may still write there.
    deadline = time.monotonic() + _GRACE_SECONDS / 2
    shutil.rmtree(directory, ignore_errors=True)
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(_PULSE_SECONDS)
        shutil.rmtree(directory, ignore_errors=True)


def _main(caller: str, max_seconds: str, remove_directory: str, *command: str) -> int:
    signal.signal(signal.SIGTERM, lambda signum, _: sys.exit(128 + signum))
    try:
        return _supervise(int(caller), float(max_seconds), command)
    finally:
        # The caller does not wait for the removal of thousands of files: a process of its own goes on with it.
        if int(remove_directory) and os.fork() == 0:
            _remove(Path.cwd())
            os._exit(0)


if __name__ == "__main__":
    raise SystemExit(_main(*sys.argv[1:]))
