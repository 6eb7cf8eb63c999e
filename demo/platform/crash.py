"""A crash: the process of a function ends in the middle of a batch, as a machine's failure would end it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

from demo.platform.aggregators import crashes
from dynamodb_counters._dev.emulator import Emulator

_POLL_SECONDS: Final = 0.05
_NOTICE_SECONDS: Final = 2.0
_PROC: Final = Path("/proc")


class Crash(Thread):
    """Kills a function once, as soon as its counts move, and again if that came between two batches.

    `counted` reads a number that each batch moves: between a change of it and the answer of the function lies the
    middle of a batch.
    """

    def __init__(self, emulator: Emulator, function: str, counted: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self._emulator, self.function, self._counted = emulator, function, counted
        self._over = Event()
        self.happened = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        before = self._counted()
        while not self._over.wait(_POLL_SECONDS):
            now = self._counted()
            if now != before and self._kill():
                self.happened = True
                return
            before = now

    def _kill(self) -> bool:
        """Kill the process; return whether the emulator says that an invocation failed by it."""
        before = crashes(self._emulator, self.function)
        for pid in _processes(f"ministack-lambda-{self.function}-"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _NOTICE_SECONDS
        while time.monotonic() < deadline:
            if crashes(self._emulator, self.function) > before:
                return True
            time.sleep(_POLL_SECONDS)
        return False


def _processes(text: str) -> Iterator[int]:
    """The processes whose command line contains a text."""
    if _PROC.is_dir():
        for path in _PROC.glob("[0-9]*/cmdline"):
            with suppress(OSError):  # It has ended meanwhile.
                if text in path.read_text(errors="replace"):
                    yield int(path.parent.name)
        return
    listing = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    yield from (int(line.split()[0]) for line in listing.splitlines() if text in line)
