"""Waiting for what happens in other processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for a condition; return whether it holds. Only a failure takes all the seconds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def runs(pid: int) -> bool:
    # An orphan that has ended stays visible until init collects it: that is not running.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.lstrip().startswith("Z")
