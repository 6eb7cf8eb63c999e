"""Keeps the examples up for whoever wants to look around, and says how."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Callable
from typing import Final

from demo.deployment import Deployment
from demo.inputs import Inputs

KEEP_SECONDS: Final = 3600
"""How long the examples stay up when nobody ends them."""

_SETTINGS: Final = ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def instructions(deployment: Deployment, inputs: Inputs) -> str:
    """Say how to query what is running.

    Parameters
    ----------
    deployment : Deployment
        What is running.
    inputs : Inputs
        What was sent: gives the url used as the example.

    Returns
    -------
    str
        Commands for a shell.
    """
    environment = deployment.emulator.environment()
    url = max(inputs.blog.views, key=lambda candidate: inputs.blog.views[candidate], default="/")
    as_of = f"datetime.fromisoformat({inputs.blog.last.isoformat()!r})" if inputs.blog.last else "None"
    return "\n".join(
        [
            "",
            f"Everything stays up for {KEEP_SECONDS // 60} minutes, or until Ctrl-C.",
            f"The live page of the blog: {deployment.page_url}",
            "To query it, in another terminal and the project's directory:",
            "",
            *(f"export {name}={shlex.quote(environment[name])}" for name in _SETTINGS),
            "export PYTHONPATH=lambdas:infra",
            f"{shlex.quote(sys.executable)} - <<'END'",
            "from datetime import datetime, timedelta",
            "from dynamodb_counters import Counters",
            "from examples.blog_declarations import ROLLING, VIEWS",
            f"counters = Counters({deployment.blog_table!r})",
            f"url = {url!r}",
            'print(counters.get(VIEWS, {"url": url}).measures)',
            f'print(counters.window(ROLLING, {{"url": url}}, last=timedelta(hours=24), as_of={as_of}))',
            "END",
        ]
    )


def keep(deployment: Deployment, inputs: Inputs, sleep: Callable[[float], None] = time.sleep) -> None:
    """Print instructions and wait until interrupted, or an hour.

    Parameters
    ----------
    deployment : Deployment
        What is running.
    inputs : Inputs
        What was sent.
    sleep : callable, optional
        Waits some seconds.
    """
    print(instructions(deployment, inputs), flush=True)
    # Ctrl-C is how to end it, not an accident.
    with contextlib.suppress(KeyboardInterrupt):
        sleep(KEEP_SECONDS)
