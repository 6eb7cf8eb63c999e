"""The CDK CLI against an emulator: real `cdk deploy` of an app, into an account that is bootstrapped at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dynamodb_counters._dev.emulator import Emulator
from dynamodb_counters.errors import CountersError

_MAX_SECONDS: Final = 600
_TAIL_LINES: Final = 60
_QUALIFIER: Final = "hnb659fds"
# Nothing but the qualifier changes a template: the same one must go to the emulator and to AWS.
_FLAGS: Final = ("--no-notices", "--no-color", "--ci", "--context", f"@aws-cdk/core:bootstrapQualifier={_QUALIFIER}")

QUIET: Final = {
    # The CDK's built-in rules take two thirds of a synth and change no template: tests of the app apply them.
    "CDK_VALIDATION": "false",
    # The CLI and its libraries print many lines about the age of Node on every call.
    "NODE_NO_WARNINGS": "1",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "CDK_DISABLE_VERSION_CHECK": "true",
}

_SUFFIXES: Final = (".css", ".html", ".js", ".json", ".jsx", ".mjs", ".py", ".toml", ".ts", ".tsx", ".yaml", ".yml")
_NO_SOURCES: Final = frozenset(("__pycache__", "build", "cdk.context.json", "cdk.out", "dist", "node_modules", "tests"))


class CdkError(CountersError):
    """The CDK CLI failed or is missing; `lines` are what it printed last."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = list(lines)


def source_files(directory: Path) -> set[tuple[str, int]]:
    """Return the source files below a directory, each with when it was written last."""
    found = set()
    for folder, folders, names in os.walk(directory):
        inner = (name for name in folders if name not in _NO_SOURCES and not name.startswith("."))
        folders[:] = [name for name in inner if not Path(folder, name, "pyvenv.cfg").exists()]
        for name in names:
            if name.endswith(_SUFFIXES) and not name.startswith("test_") and name not in _NO_SOURCES:
                path = Path(folder, name)
                with suppress(OSError):  # It may be gone since it was listed.
                    found.add((str(path.relative_to(directory)), path.stat().st_mtime_ns))
    return found


def bootstrap(emulator: Emulator) -> None:
    """Make what `cdk bootstrap` leaves: the bucket of assets, and its version, newer than any app asks for."""
    bucket = f"cdk-{_QUALIFIER}-assets-{emulator.account}-{emulator.region}"
    emulator.client("s3").create_bucket(Bucket=bucket)
    emulator.client("ssm").put_parameter(Name=f"/cdk-bootstrap/{_QUALIFIER}/version", Value="30", Type="String")


def deploy(emulator: Emulator, directory: Path, app: str | None = None) -> dict[str, dict[str, str]]:
    """Deploy the app of a directory; return the outputs of all its stacks."""
    # "direct", because the emulator cannot replace the change set of an earlier deployment. The CLI waits most of the
    # time, for a stack's state to change: hence many at once.
    options = ["--require-approval", "never", "--method", "direct", "--progress", "events", "--concurrency", "8"]
    run(emulator, directory, ["deploy", "--all", *options], app)
    return outputs(emulator)


def outputs(emulator: Emulator) -> dict[str, dict[str, str]]:
    """Return the outputs of what is deployed, by stack."""
    stacks = emulator.client("cloudformation").describe_stacks()["Stacks"]
    return {
        stack["StackName"]: {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
        for stack in stacks
    }


def run(emulator: Emulator, directory: Path, command: Sequence[str], app: str | None = None) -> list[str]:
    """Run a command of the CLI, on an `app` other than that of its cdk.json; return the lines that it printed."""
    options = ["--app", app] if app else []
    # The emulator has one shard per stream and does not name it.
    options += ["--context", "single_shard_stream=true", *_FLAGS]
    options += ["--output", tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory)]
    try:
        done = subprocess.run(
            ["cdk", *command, *options],
            cwd=directory,
            env=_environment(emulator, directory),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            # What it starts, such as the app, ends with the emulator at the latest.
            process_group=emulator.group,
            timeout=_MAX_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        reason = "the CDK CLI is missing: install Node 20 or newer, then `npm install aws-cdk@2`"
        raise CdkError(reason) from None
    except subprocess.TimeoutExpired as error:
        raise CdkError(f"`cdk {command[0]}` took longer than {_MAX_SECONDS} s") from error
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    if done.returncode:
        raise CdkError(f"`cdk {command[0]}` ended with status {done.returncode}", lines[-_TAIL_LINES:])
    return lines


def _environment(emulator: Emulator, directory: Path) -> dict[str, str]:
    environment = emulator.environment()
    # The project's own CLI comes first; a bare "python" in cdk.json must be this one.
    own = [str(place / "node_modules" / ".bin") for place in (directory, *directory.parents)]
    path = [str(Path(sys.executable).parent), *own, environment.get("PATH", os.defpath)]
    settings = {"CDK_HOME": str(emulator.directory / "cdk-home"), "TMPDIR": str(emulator.directory)}
    return {**environment, **QUIET, **settings, "PATH": os.pathsep.join(path)}
