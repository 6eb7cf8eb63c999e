"""Waiting for other processes, and for what happens in them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for a condition; return whether it holds. Only a failure takes all the seconds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def execute(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and take what it prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def runs(pid: int) -> bool:
    # An orphan that has ended stays visible until init collects it: that is not running.
    state = execute(["ps", "-o", "stat=", "-p", str(pid)]).stdout
    return bool(state.strip()) and not state.lstrip().startswith("Z")
