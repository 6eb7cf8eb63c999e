"""The pinned CDK CLI against an emulator: real `cdk bootstrap`, `cdk deploy` and `cdk diff`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from demo.platform import supervisor
from demo.platform.emulator import Emulator

_PROJECT = Path(__file__).resolve().parents[2]
_CLI = Path("node_modules", ".bin", "cdk")
_APP = f"{shlex.quote(sys.executable)} app.py"
_MAX_SECONDS = 600
_TAIL_LINES = 60
# Quiet, but nothing that changes a template: the same one must go to the emulator and to AWS.
_FLAGS = ("--no-notices", "--no-color", "--ci")
_NO_DIFFERENCE = "Number of stacks with differences: 0"


class CdkError(RuntimeError):
    """The CDK CLI failed. The message ends with what it printed last."""


def bootstrap(emulator: Emulator) -> None:
    """Prepare the emulated account for deployments."""
    # In a directory without an app, which would be synthesized for nothing.
    _run(emulator, ["bootstrap", f"aws://{emulator.account}/{emulator.region}"], directory=emulator.directory)


def deploy(
    emulator: Emulator, *, context: Mapping[str, str], progress: Callable[[str], None] | None = None
) -> dict[str, dict[str, str]]:
    """Deploy all stacks of the app; return their outputs by stack name."""
    outputs = _fresh_directory(emulator) / "outputs.json"
    # "direct", because the emulator cannot replace the change set of an earlier deployment.
    options = ["--all", "--require-approval", "never", "--method", "direct", "--progress", "events"]
    options += ["--outputs-file", str(outputs), *_app_options(emulator, context)]
    _run(emulator, ["deploy", *options], progress=progress)
    found: dict[str, dict[str, str]] = json.loads(outputs.read_text())
    return found


def diff(emulator: Emulator, *, context: Mapping[str, str]) -> str:
    """Compare the app with what is deployed; return what the CLI printed, empty without differences."""
    printed = _run(emulator, ["diff", "--method", "template", *_app_options(emulator, context)])
    return "" if _NO_DIFFERENCE in printed else printed


def _app_options(emulator: Emulator, context: Mapping[str, str]) -> list[str]:
    values = [word for name, value in context.items() for word in ("--context", f"{name}={value}")]
    return ["--app", _APP, "--output", str(_fresh_directory(emulator)), *values]


def _fresh_directory(emulator: Emulator) -> Path:
    return Path(tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory))


def _run(
    emulator: Emulator,
    command: Sequence[str],
    *,
    directory: Path = _PROJECT,
    progress: Callable[[str], None] | None = None,
) -> str:
    cli = _PROJECT / _CLI
    if not cli.exists():
        raise CdkError(f"The CDK CLI is not installed in {_PROJECT.name}/{_CLI.parent}: run `npm ci` first.")
    process = supervisor.start(
        [str(cli), *command, *_FLAGS],
        environment=_environment(emulator),
        output=subprocess.PIPE,
        max_seconds=_MAX_SECONDS,
        directory=directory,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        with process.stdout:
            for raw in process.stdout:
                lines.append(raw.decode(errors="replace").rstrip())
                if progress:
                    progress(lines[-1])
    finally:
        status = supervisor.stop(process)
    if status:
        last = "\n".join(lines[-_TAIL_LINES:])
        raise CdkError(f"`cdk {command[0]}` ended with status {status}. It printed last:\n{last}")
    return "\n".join(lines)


def _environment(emulator: Emulator) -> dict[str, str]:
    environment = emulator.environment()
    search = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    return {
        **environment,
        # A bare "python" in cdk.json must be this one.
        "PATH": os.pathsep.join(search),
        "TMPDIR": str(emulator.directory),
        "CDK_HOME": str(emulator.directory / "cdk-home"),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # The CDK's built-in rules take two thirds of a synth and change no template: tests of the app apply them.
        "CDK_VALIDATION": "false",
        # The CLI and its libraries print many lines about the age of Node on every call.
        "NODE_NO_WARNINGS": "1",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
