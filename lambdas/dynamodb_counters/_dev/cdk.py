"""The CDK CLI against an emulator: real `cdk deploy` of an app, into an account that is bootstrapped at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dynamodb_counters._dev import supervisor
from dynamodb_counters._dev.emulator import Emulator
from dynamodb_counters.errors import CountersError

_CLI: Final = Path("node_modules", ".bin", "cdk")
_TAIL_LINES: Final = 60
# Quiet, but nothing that changes a template: the same one must go to the emulator and to AWS.
_FLAGS: Final = ("--no-notices", "--no-color", "--ci")
_STACKS_AT_ONCE: Final = 8
"""The CLI waits most of the time, for a stack's state to change."""

QUIET: Final = {
    # The CDK's built-in rules take two thirds of a synth and change no template: tests of the app apply them.
    "CDK_VALIDATION": "false",
    # The CLI and its libraries print many lines about the age of Node on every call.
    "NODE_NO_WARNINGS": "1",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
}

_SUFFIXES: Final = (".css", ".html", ".js", ".json", ".jsx", ".mjs", ".py", ".toml", ".ts", ".tsx", ".yaml", ".yml")
_NO_SOURCES: Final = frozenset(("__pycache__", "build", "cdk.out", "dist", "node_modules", "tests"))
_WRITTEN_BY_THE_CLI: Final = "cdk.context.json"
_QUALIFIER: Final = "hnb659fds"
_BOOTSTRAP_VERSION: Final = "30"
"""Newer than any app asks for."""


class CdkError(CountersError):
    """The CDK CLI failed or is missing; `lines` are what it printed last."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = list(lines)


@dataclass(frozen=True)
class App:
    """A CDK app: its directory, the CLI that deploys it, and what it is run with; by default as its cdk.json says."""

    directory: Path
    cli: Sequence[str]
    command: str | None = None


class SourceFiles:
    """The source files below a directory; tests, virtual environments and hidden folders are left out."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._known = self._stamps()

    def changed(self) -> list[str]:
        before, self._known = self._known, self._stamps()
        return sorted({name for name, _ in self._known.items() ^ before.items()})

    def _stamps(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for folder, folders, names in os.walk(self._directory):
            sources = [name for name in folders if name not in _NO_SOURCES and not name.startswith(".")]
            folders[:] = [name for name in sources if not Path(folder, name, "pyvenv.cfg").exists()]
            for path in (Path(folder, name) for name in names if name.endswith(_SUFFIXES)):
                if not path.name.startswith("test_") and path.name != _WRITTEN_BY_THE_CLI:
                    with suppress(OSError):  # It may be gone since it was listed.
                        status = path.stat()
                        stamps[str(path.relative_to(self._directory))] = status.st_mtime_ns, status.st_size
        return stamps


def find_cli(directory: Path, which: Callable[[str], str | None] = shutil.which) -> tuple[str, ...]:
    """The command of the CLI: the project's own, or the one on the PATH; CdkError without any."""
    for place in (directory, *directory.parents):
        if (place / _CLI).exists():
            return (str(place / _CLI),)
    if found := which("cdk"):
        return (found,)
    raise CdkError("the CDK CLI is missing: install Node 20 or newer, then `npm install aws-cdk@2`")


def bootstrap(emulator: Emulator) -> None:
    """Make what `cdk bootstrap` leaves: the bucket of assets, and its version."""
    bucket = f"cdk-{_QUALIFIER}-assets-{emulator.account}-{emulator.region}"
    emulator.client("s3").create_bucket(Bucket=bucket)
    emulator.client("ssm").put_parameter(
        Name=f"/cdk-bootstrap/{_QUALIFIER}/version", Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )


def deploy(emulator: Emulator, app: App, stacks: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Deploy stacks of the app, by default all; return their outputs by stack name."""
    outputs = Path(tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory), "outputs.json")
    # "direct", because the emulator cannot replace the change set of an earlier deployment.
    options = [*(stacks or ["--all"]), "--require-approval", "never", "--method", "direct", "--progress", "events"]
    options += ["--concurrency", str(_STACKS_AT_ONCE), "--outputs-file", str(outputs)]
    run(emulator, app, ["deploy", *options])
    # Without outputs there is no file.
    found: dict[str, dict[str, str]] = json.loads(outputs.read_text()) if outputs.exists() else {}
    return found


def run(emulator: Emulator, app: App, command: Sequence[str]) -> list[str]:
    """Run a command of the CLI; return the lines that it printed."""
    options = ["--app", app.command] if app.command else []
    # The emulator has one shard per stream and does not name it.
    options += ["--context", "single_shard_stream=true"]
    options += ["--context", f"@aws-cdk/core:bootstrapQualifier={_QUALIFIER}"]
    process = supervisor.start(
        [*app.cli, *command, *options, "--output", tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory), *_FLAGS],
        environment=_environment(emulator),
        output=subprocess.PIPE,
        max_seconds=600,
        directory=app.directory,
    )
    assert process.stdout is not None
    try:
        with process.stdout:
            lines = [line.decode(errors="replace").rstrip() for line in process.stdout]
    finally:
        status = supervisor.stop(process)
    if status:
        raise CdkError(f"`cdk {command[0]}` ended with status {status}", lines[-_TAIL_LINES:])
    return lines


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
        **QUIET,
    }
