"""The pinned CDK CLI, with the caller's own credentials and settings."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from demo.aws_smoke.account import Account
from dynamodb_counters._dev.cdk import QUIET

_PROJECT: Final = Path(__file__).resolve().parents[2]
_CLI: Final = _PROJECT / "node_modules" / ".bin" / "cdk"


class DeploymentError(Exception):
    """The CDK CLI failed; it has printed why."""


def deploy(account: Account, name: str, directory: Path) -> dict[str, str]:
    outputs = directory / "outputs.json"
    app = f"{shlex.quote(sys.executable)} -m demo.aws_smoke.stack {name}"
    command = [str(_CLI), "deploy", name, "--app", app, "--output", str(directory / "cdk.out")]
    command += ["--outputs-file", str(outputs), "--require-approval", "never", "--method", "direct"]
    # A failed deployment stays for a look at its events until it is removed, moments later.
    command += ["--no-rollback", "--no-notices", "--ci", "--progress", "events"]
    if account.emulated:
        command += ["--context", "single_shard_stream=true"]
    place = {"AWS_REGION": account.region, "CDK_DEFAULT_ACCOUNT": account.number, "CDK_DEFAULT_REGION": account.region}
    with (directory / "cdk.log").open("wb") as log:
        done = subprocess.run(
            command,
            cwd=_PROJECT,
            env={**os.environ, **place, **QUIET},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        last = (directory / "cdk.log").read_text(errors="replace").splitlines()[-40:]
        raise DeploymentError("\n".join([f"`cdk deploy` ended with status {done.returncode}. Last lines:", *last]))
    found: dict[str, dict[str, str]] = json.loads(outputs.read_text())
    return found[name]
