"""Keeps the deployment up for whoever wants to look around, and says how."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from demo.example import Example
from demo.platform.deployment import Deployment

KEEP_SECONDS: Final = 3600

_SETTINGS: Final = ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def instructions(deployment: Deployment, examples: Iterable[Example]) -> str:
    """Say how to query what is running, in commands for a shell."""
    environment = deployment.emulator.environment()
    return "\n".join(
        [
            "",
            f"Everything stays up for {KEEP_SECONDS // 60} minutes, or until Ctrl-C.",
            *(f"The live page of {stack}: {url}" for stack, url in deployment.page_urls().items()),
            "To query it, in another terminal, in the project's directory:",
            "",
            *(f"export {name}={shlex.quote(environment[name])}" for name in _SETTINGS),
            "export PYTHONPATH=lambdas:infra",
            f"{shlex.quote(sys.executable)} - <<'END'",
            *(line for example in examples for line in example.queries(deployment.table(example.stack))),
            "END",
        ]
    )


def keep(deployment: Deployment, examples: Iterable[Example], sleep: Callable[[float], None] = time.sleep) -> None:
    """Print the instructions and wait until interrupted, at most an hour."""
    print(instructions(deployment, examples), flush=True)
    # Ctrl-C is the way to end it, not an error.
    with contextlib.suppress(KeyboardInterrupt):
        sleep(KEEP_SECONDS)
