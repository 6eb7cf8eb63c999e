"""The pinned CDK CLI against an emulator: the real `cdk bootstrap`, `cdk deploy` and `cdk diff` of the real app."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from demo import supervisor
from demo.emulator import Emulator

_PROJECT = Path(__file__).resolve().parents[1]
_CLI = Path("node_modules", ".bin", "cdk")
_APP = f"{shlex.quote(sys.executable)} app.py"
_MAX_SECONDS = 600
_TAIL_LINES = 60
# Quiet, but nothing that changes a template: the same one must go to the emulator and to AWS.
_FLAGS = ("--no-notices", "--no-color", "--ci")
_NO_DIFFERENCE = "Number of stacks with differences: 0"

Progress = Callable[[str], None]


class CdkError(RuntimeError):
    """The CDK CLI failed. The message ends with what it printed last."""


def bootstrap(emulator: Emulator, *, project: Path = _PROJECT, progress: Progress | None = None) -> None:
    """Prepare the emulated account for deployments, as `cdk bootstrap` does.

    Parameters
    ----------
    emulator
        The emulator to prepare.
    project
        The directory whose ``node_modules`` hold the CLI.
    progress
        Called with every line the CLI prints.

    Raises
    ------
    CdkError
        If the CLI is not installed, or fails.
    """
    # Run where no app is, since none is needed: it would only be synthesized in vain.
    account = f"aws://{emulator.account}/{emulator.region}"
    _run(emulator, ["bootstrap", account], project=project, directory=emulator.directory, progress=progress)


def deploy(
    emulator: Emulator,
    *stacks: str,
    app: str = _APP,
    context: Mapping[str, str] | None = None,
    project: Path = _PROJECT,
    progress: Progress | None = None,
) -> dict[str, dict[str, str]]:
    """Deploy stacks of an app, as `cdk deploy` does.

    Parameters
    ----------
    emulator
        A bootstrapped emulator.
    *stacks
        The stacks to deploy. All of them, if none is named.
    app
        The command that synthesizes the app, run in `project`.
    context
        Context values for the app.
    project
        The directory of the app, its ``cdk.json`` and ``node_modules``.
    progress
        Called with every line the CLI prints.

    Returns
    -------
    dict[str, dict[str, str]]
        The outputs of each deployed stack that has any.

    Raises
    ------
    CdkError
        If the CLI is not installed, or fails.
    """
    outputs = _fresh_directory(emulator) / "outputs.json"
    # "direct", because the emulator cannot replace the change set of an earlier deployment.
    options = [
        "--require-approval",
        "never",
        "--method",
        "direct",
        "--progress",
        "events",
        "--outputs-file",
        str(outputs),
    ]
    command = ["deploy", *(stacks or ["--all"]), *options, *_app_options(emulator, app, context)]
    _run(emulator, command, project=project, directory=project, progress=progress)
    found: dict[str, dict[str, str]] = json.loads(outputs.read_text()) if outputs.exists() else {}
    return found


def diff(
    emulator: Emulator,
    *stacks: str,
    app: str = _APP,
    context: Mapping[str, str] | None = None,
    project: Path = _PROJECT,
    progress: Progress | None = None,
) -> str:
    """Compare stacks of an app with what is deployed, as `cdk diff` does.

    Parameters
    ----------
    emulator
        A bootstrapped emulator.
    *stacks
        The stacks to compare. All of them, if none is named.
    app
        The command that synthesizes the app, run in `project`.
    context
        Context values for the app.
    project
        The directory of the app, its ``cdk.json`` and ``node_modules``.
    progress
        Called with every line the CLI prints.

    Returns
    -------
    str
        What differs. Empty if nothing does.

    Raises
    ------
    CdkError
        If the CLI is not installed, or fails.
    """
    command = ["diff", *stacks, "--method", "template", *_app_options(emulator, app, context)]
    printed = _run(emulator, command, project=project, directory=project, progress=progress)
    return "" if _NO_DIFFERENCE in printed else printed


def _app_options(emulator: Emulator, app: str, context: Mapping[str, str] | None) -> list[str]:
    values = [word for name, value in (context or {}).items() for word in ("--context", f"{name}={value}")]
    return ["--app", app, "--output", str(_fresh_directory(emulator)), *values]


def _fresh_directory(emulator: Emulator) -> Path:
    return Path(tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory))


def _run(
    emulator: Emulator, command: Sequence[str], *, project: Path, directory: Path, progress: Progress | None
) -> str:
    cli = project / _CLI
    if not cli.exists():
        raise CdkError(f"The CDK CLI is not installed in {project.name}/{_CLI.parent}: run `npm ci` first.")
    process = supervisor.start(
        [str(cli), *command, *_FLAGS],
        environment=_environment(emulator),
        output=subprocess.PIPE,
        max_seconds=_MAX_SECONDS,
        directory=directory,
    )
    lines: list[str] = []
    try:
        for raw in process.stdout or ():
            lines.append(raw.decode(errors="replace").rstrip())
            if progress:
                progress(lines[-1])
    finally:
        if process.stdout:
            process.stdout.close()
        status = supervisor.stop(process)
    if status:
        last = "\n".join(deque(lines, _TAIL_LINES))
        raise CdkError(f"`cdk {command[0]}` ended with status {status}. It printed last:\n{last}")
    return "\n".join(lines)


def _environment(emulator: Emulator) -> dict[str, str]:
    environment = emulator.environment()
    search = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    return {
        **environment,
        # cdk.json may say just "python": it has to be this one.
        "PATH": os.pathsep.join(search),
        "TMPDIR": str(emulator.directory),
        "CDK_HOME": str(emulator.directory / "cdk-home"),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # The CDK's built-in rules take two thirds of a synth and change no template: tests of the app apply them.
        "CDK_VALIDATION": "false",
        # The CLI and its libraries warn of the age of Node in many lines, at every call.
        "NODE_NO_WARNINGS": "1",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
